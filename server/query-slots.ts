import { ProblemError } from './problem.js';

/** Counts the queries that run, and refuses those beyond the bound or after the end has begun. */
export class QuerySlots {
  readonly #max: number;
  #running = 0;
  #isStopping = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a slot; returns what gives it back, once. Throws a `ProblemError`: 429 when all are taken, 503 when stopping. */
  take(): () => void {
    if (this.#isStopping) throw stopping();
    if (this.#running >= this.#max) {
      throw new ProblemError(
        429,
        `${this.#max} queries are running, which is the most that this server runs at once`,
        {
          headers: { 'Retry-After': '1' },
        },
      );
    }
    this.#running++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#running--;
    };
  }

  /** From now on every request is a 503. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Throws the 503 of a server that is stopping. */
  assertOpen(): void {
    if (this.#isStopping) throw stopping();
  }
}

function stopping(): ProblemError {
  return new ProblemError(503, 'the server is shutting down', {
    headers: { 'Retry-After': '5' },
    closes: true,
  });
}
