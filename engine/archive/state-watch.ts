import { pollMs } from '../terms/limits.js';
import type { StateChanges } from '../store/reading/state-changes.js';

/** How a state comes to know of commits of other processes. */
export interface WatchedAccess {
  refresh(): Promise<void>;
  /** Another process may commit. */
  readonly follows: boolean;
}

/** Tells of changes of an agent's state. Where another process may make them, it looks for them while anybody listens. */
export class StateWatch {
  readonly #changes: StateChanges;
  /** Asked anew each time: this process may become the writer. */
  readonly #access: () => WatchedAccess;
  #listeners = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(changes: StateChanges, access: () => WatchedAccess) {
    this.#changes = changes;
    this.#access = access;
  }

  listen(call: () => void): () => void {
    const end = this.#changes.listen(call);
    this.#listeners++;
    this.#timer ??= setInterval(() => this.#look(), pollMs).unref();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      end();
      if (--this.#listeners > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const access = this.#access();
    // What fails is told by the next scan.
    if (access.follows) access.refresh().catch(() => undefined);
  }
}
