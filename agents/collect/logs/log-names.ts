import { capturesOf, nameSuffix } from '../../patterns/file-captures.js';
import { RE2JS } from 're2js';

/** What a file's name says about it. */
export interface LogName {
  readonly name: string;
  /** The name that the log had, or has, before rotation: the same, where nothing was appended. */
  readonly base: string;
  /** The agent's pattern matches the name as it stands; else only the name without what rotation appended. */
  readonly direct: boolean;
  /** Fields that the name gives. */
  readonly captures: ReadonlyMap<string, string>;
}

/** Names that are remembered: looking at a folder must not run the pattern on each of them again. */
const namesKeptMax = 20_000;

/** Tells the names of an agent's logs, and of their rotated generations, from others. */
export class LogNames {
  private readonly pattern: RE2JS;
  private readonly known = new Map<string, LogName | null>();

  constructor(namePattern: string) {
    this.pattern = RE2JS.compile(namePattern);
  }

  /** Null for a name that is none of the agent's. */
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
