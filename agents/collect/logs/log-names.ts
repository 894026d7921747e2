import { nameSuffix, PathPattern, type PathExpressions } from '../../definition/file-captures.js';

/** What a file's name tells about it, with the names of its folders that vary. */
export interface LogName {
  /** The name, behind the folders that vary: `web/logs/access.log`. */
  readonly name: string;
  /** The name of the log before rotation; equal to `name` where rotation appended nothing. */
  readonly base: string;
  /** Whether the agent's pattern matches the full name, not only the name without the suffix that rotation appended. */
  readonly direct: boolean;
  /** Field values that the capture groups of folders and name give. */
  readonly captures: ReadonlyMap<string, string>;
}

/** Limit on remembered names. They are remembered so that surveys do not run the pattern on each name again. */
const namesKeptMax = 20_000;

/** Recognises the names of an agent's logs and of their rotated generations. */
export class LogNames {
  readonly pattern: PathPattern;
  private readonly known = new Map<string, LogName | null>();
  private readonly knownFolders = new Map<string, boolean>();

  constructor(expressions: PathExpressions) {
    this.pattern = new PathPattern(expressions);
  }

  /** Whether the folder of this name, so many levels below the fixed one, may contain logs. */
  isFolder(name: string, level: number): boolean {
    const key = `${level}/${name}`;
    const known = this.knownFolders.get(key);
    if (known !== undefined) return known;
    const matches = this.pattern.folders[level]?.matches(name) ?? false;
    if (this.knownFolders.size >= namesKeptMax) this.knownFolders.clear();
    this.knownFolders.set(key, matches);
    return matches;
  }

  /** Null for a name, behind the folders that vary, that does not belong to the agent. */
  read(name: string): LogName | null {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const read = this.parse(name);
    if (this.known.size >= namesKeptMax) this.known.clear();
    this.known.set(name, read);
    return read;
  }

  private parse(path: string): LogName | null {
    const { pattern } = this;
    if (path.split('/').length !== pattern.folders.length + 1) return null;
    const name = path.slice(path.lastIndexOf('/') + 1);
    const direct = pattern.name.matches(name);
    let base = direct ? name : null;
    for (let rest = name; nameSuffix.test(rest);) {
      rest = rest.replace(nameSuffix, '');
      if (rest !== '' && pattern.name.matches(rest)) base = rest;
    }
    const folders = base === null ? null : pattern.folderCaptures(path);
    if (base === null || folders === null) return null;
    const captures = new Map([...pattern.nameCaptures(name), ...folders]);
    return { name: path, base: path.slice(0, path.length - name.length) + base, direct, captures };
  }
}
