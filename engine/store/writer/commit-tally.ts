import { isLogstrataError } from '../../terms/errors.js';

/** Counts what a writer commits, and what it fails to. */
export class CommitTally {
  /** Commits that became durable: batches of rows, and manifests. */
  done = 0;
  /** Times that storage failed. */
  failed = 0;
  /** Why the last one failed; undefined where it did not. */
  failure: Error | undefined;

  succeed(): void {
    this.done++;
    this.failure = undefined;
  }

  /** What is not the fault of storage, such as a conflict of two loads, is no failure of it. */
  fail(error: unknown): void {
    const isOfStorage = !isLogstrataError(error) || error.code === 'io' || error.code === 'disk_full';
    if (!isOfStorage || !(error instanceof Error)) return;
    this.failed++;
    this.failure = error;
  }

  /** A step of a commit, whose failure fails the commit. */
  async watch<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}
