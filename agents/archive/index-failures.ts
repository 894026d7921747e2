import type { KnownFile } from './discovery.js';
import type { FileProblems } from './file-problems.js';

/** A file that could not be indexed is tried again after this time: it may have to be read to its end to fail. */
const retryMs = 600_000;

interface IndexFailure {
  readonly path: string;
  readonly untilMs: number;
}

/** Attached files that are not indexed for the time being, so that the others are. */
export class IndexFailures {
  /** By id. */
  private readonly failed = new Map<string, IndexFailure>();
  private unreadable: readonly string[] = [];

  constructor(private readonly problems: FileProblems) {}

  /** Takes in what a look at the archive has found: the files that are attached, and the paths that something is wrong with. */
  look(attached: readonly KnownFile[], wrong: ReadonlySet<string>): void {
    this.unreadable = attached.filter(({ path }) => wrong.has(path)).map(({ id }) => id);
    const paths = new Map(attached.map(({ id, path }) => [id, path]));
    for (const [id, { path }] of this.failed) if (wrong.has(path) || paths.get(id) !== path) this.indexed(id);
  }

  /** The ids of files that are not to be tried now. */
  ids(nowMs: number): ReadonlySet<string> {
    const ids = new Set(this.unreadable);
    for (const [id, { untilMs }] of this.failed) if (nowMs < untilMs) ids.add(id);
    return ids;
  }

  /** A file can't be indexed. */
  fail(id: string, path: string, message: string, nowMs: number): void {
    this.failed.set(id, { path, untilMs: nowMs + retryMs });
    this.problems.ofFile(path, `can't be indexed: ${message}`);
  }

  /** Nothing is known any more against a file. */
  indexed(id: string): void {
    const failure = this.failed.get(id);
    if (failure === undefined) return;
    this.failed.delete(id);
    this.problems.clear(failure.path);
  }
}
