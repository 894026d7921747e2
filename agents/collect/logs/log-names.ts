import { capturesOf, nameSuffix } from '../../definition/file-captures.js';
import { RE2JS } from 're2js';

/** What a file's name tells about it. */
export interface LogName {
  readonly name: string;
  /** The name of the log before rotation; equal to `name` where rotation appended nothing. */
  readonly base: string;
  /** Whether the agent's pattern matches the full name, not only the name without the suffix that rotation appended. */
  readonly direct: boolean;
  /** Field values that the name's capture groups give. */
  readonly captures: ReadonlyMap<string, string>;
}

/** Limit on remembered names. They are remembered so that surveys do not run the pattern on each name again. */
const namesKeptMax = 20_000;

/** Recognises the names of an agent's logs and of their rotated generations. */
export class LogNames {
  private readonly pattern: RE2JS;
  private readonly known = new Map<string, LogName | null>();

  constructor(namePattern: string) {
    this.pattern = RE2JS.compile(namePattern);
  }

  /** Null for a name that does not belong to the agent. */
  read(name: string): LogName | null {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const read = this.parse(name);
    if (this.known.size >= namesKeptMax) this.known.clear();
    this.known.set(name, read);
    return read;
  }

  private parse(name: string): LogName | null {
    const direct = this.pattern.matches(name);
    let base = direct ? name : null;
    for (let rest = name; nameSuffix.test(rest);) {
      rest = rest.replace(nameSuffix, '');
      if (rest !== '' && this.pattern.matches(rest)) base = rest;
    }
    if (base === null) return null;
    return { name, base, direct, captures: capturesOf(this.pattern, name) };
  }
}
