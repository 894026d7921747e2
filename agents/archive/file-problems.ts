import type { CollectLog } from '../collect/logs/collect-log.js';
import type { PathProblem } from './found-files.js';

/** Problems that are listed one by one: more of them have one cause. All are counted. */
const listedMax = 100;

/** What is wrong with files and folders of an archive, each told once and listed until it is mended. */
export class FileProblems {
  private readonly files = new Map<string, string>();
  private search = new Map<string, string>();

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** What a search could not look at, in place of what the search before could not. */
  ofSearch(problems: readonly PathProblem[]): void {
    const before = this.search;
    this.search = new Map(problems.map(({ path, message }) => [path, message]));
    for (const { path, message } of problems) if (before.get(path) !== message) this.tell(path, message);
  }

  /** What is wrong with one file. */
  ofFile(path: string, message: string): void {
    if (this.files.get(path) === message) return;
    this.files.set(path, message);
    this.tell(path, message);
  }

  /** Nothing is wrong with a file any more. */
  clear(path: string): void {
    this.files.delete(path);
  }

  /** How many there are. */
  get count(): number {
    return this.search.size + this.files.size;
  }

  /** The first of them. */
  list(): PathProblem[] {
    const listed: PathProblem[] = [];
    for (const [path, message] of [...this.search, ...this.files].slice(0, listedMax))
      listed.push({ path, message });
    return listed;
  }

  private tell(path: string, message: string): void {
    this.log.error({ agent: this.agent, path }, message);
  }
}
