import type { CollectLog } from '../collect/logs/collect-log.js';
import type { PathProblem } from './found-files.js';

/** Limit on the problems that are listed: more than that usually have one cause. All are counted. */
const listedMax = 100;

/** The problems of an archive's files and folders. Each is logged once, and listed until it is solved. */
export class FileProblems {
  private readonly files = new Map<string, string>();
  private search = new Map<string, string>();

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** Replaces the problems of the previous search by those of a new one. */
  ofSearch(problems: readonly PathProblem[]): void {
    const before = this.search;
    this.search = new Map(problems.map(({ path, message }) => [path, message]));
    for (const { path, message } of problems) if (before.get(path) !== message) this.tell(path, message);
  }

  /** Records a problem of one file. */
  ofFile(path: string, message: string): void {
    if (this.files.get(path) === message) return;
    this.files.set(path, message);
    this.tell(path, message);
  }

  /** Removes the problem of a file. */
  clear(path: string): void {
    this.files.delete(path);
  }

  /** The number of problems. */
  get count(): number {
    return this.search.size + this.files.size;
  }

  /** The first of the problems. */
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
