import type { KnownFile } from './discovery.js';
import type { FileProblems } from './file-problems.js';

/** Delay before the next attempt at a file that could not be indexed: to fail, it may have to be read to its end. */
const retryMs = 600_000;

interface IndexFailure {
  readonly path: string;
  readonly untilMs: number;
}

/** Tracks attached files that can't be indexed for now, so that the others are. */
export class IndexFailures {
  /** By the file's id. */
  private readonly failed = new Map<string, IndexFailure>();
  private unreadable: readonly string[] = [];

  constructor(private readonly problems: FileProblems) {}

  /** Takes the result of a search: the attached files, and the paths that have a problem. */
  look(attached: readonly KnownFile[], wrong: ReadonlySet<string>): void {
    this.unreadable = attached.filter(({ path }) => wrong.has(path)).map(({ id }) => id);
    const paths = new Map(attached.map(({ id, path }) => [id, path]));
    for (const [id, { path }] of this.failed) if (wrong.has(path) || paths.get(id) !== path) this.indexed(id);
  }

  /** Ids of the files that are not to be tried now. */
  ids(nowMs: number): ReadonlySet<string> {
    const ids = new Set(this.unreadable);
    for (const [id, { untilMs }] of this.failed) if (nowMs < untilMs) ids.add(id);
    return ids;
  }

  /** Records that a file can't be indexed. */
  fail(id: string, path: string, message: string, nowMs: number): void {
    this.failed.set(id, { path, untilMs: nowMs + retryMs });
    this.problems.ofFile(path, `can't be indexed: ${message}`);
  }

  /** Forgets the failure of a file. */
  indexed(id: string): void {
    const failure = this.failed.get(id);
    if (failure === undefined) return;
    this.failed.delete(id);
    this.problems.clear(failure.path);
  }
}
