import { upkeepMsMax } from '../terms/limits.js';

/** Rounds of upkeep, one at a time. A round waits for the commits of every agent, so that one which does not end says that they don't. */
export class UpkeepRounds {
  readonly #round: () => Promise<void>;
  #current: Promise<void> | undefined;
  #sinceMs = 0;

  constructor(round: () => Promise<void>) {
    this.#round = round;
  }

  /** The round under way; undefined where there is none. */
  get current(): Promise<void> | undefined {
    return this.#current;
  }

  /** Whether rounds still come to their end. */
  get isWell(): boolean {
    return this.#current === undefined || performance.now() - this.#sinceMs < upkeepMsMax;
  }

  /** Begins a round where none is under way. */
  run(): Promise<void> {
    if (this.#current !== undefined) return this.#current;
    this.#sinceMs = performance.now();
    this.#current = this.#round().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }
}
