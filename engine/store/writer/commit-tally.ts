import { isLogstrataError } from '../../core/errors.js';

/** Counts a writer's durable commits and its storage failures. */
export class CommitTally {
  /** Number of durable commits: batches of rows, and manifests. */
  done = 0;
  /** Number of storage failures. */
  failed = 0;
  /** The storage error of the last commit; undefined once a commit has succeeded since. */
  failure: Error | undefined;

  succeed(): void {
    this.done++;
    this.failure = undefined;
  }

  /** Counts a failure of storage. Other errors, such as a conflict of two loads, are ignored. */
  fail(error: unknown): void {
    const isOfStorage = !isLogstrataError(error) || error.code === 'io' || error.code === 'disk_full';
    if (!isOfStorage || !(error instanceof Error)) return;
    this.failed++;
    this.failure = error;
  }

  /** Awaits a step of a commit, and counts its failure. */
  async watch<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}
