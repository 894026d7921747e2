import { idleScansMax, lineJobsMax, lineJobsOfAllMax, turnMs, turnPatienceMs } from '../../terms/limits.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { throwIfAborted } from '../../store/reading/pace.js';

/** A scan, as those see it that wait for its memory. */
export interface Idler {
  /** The turn that it has. */
  readonly turn: Turn | null;
  /** Gives back all that it holds, its turn included, but the piece that its caller has. It goes on when its caller wants the next. */
  pause(): void;
}

/** The right to have lines written ahead. Given back once none of them is in memory any more. */
export class Turn {
  readonly #turns: AnswerTurns;
  readonly #sinceMs = performance.now();
  #isReleased = false;

  constructor(turns: AnswerTurns) {
    this.#turns = turns;
  }

  /** Whether it is somebody else's turn once the lines that are written have been taken. */
  get isOver(): boolean {
    return this.#turns.isWanted && performance.now() - this.#sinceMs >= turnMs;
  }

  /** May be called again. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#turns.pass();
  }
}

interface Waiter {
  readonly take: (turn: Turn) => void;
}

/**
 * Bounds what long answers take of the memory together, however many there are: lines are written ahead for a few of them at a time, which
 * take turns. One whose client takes nothing for a moment is paused where others wait.
 */
export class AnswerTurns {
  #free: number;
  /** Those that have given nothing yet, and the others: served alternately, so that nobody waits long for the first lines. */
  readonly #waiting: Readonly<Record<'first' | 'next', Waiter[]>> = { first: [], next: [] };
  #isForFirst = true;
  /** Scans whose callers have the word, and since when: the longest first. */
  readonly #idle = new Map<Idler, number>();
  /** Turns that will be given back soon, about. */
  #coming = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param threads that write lines */
  constructor(threads: number) {
    // The lines of one job more are being taken.
    this.#free = Math.floor(lineJobsOfAllMax / (jobsOfTurn(threads) + 1));
  }

  /** Whether somebody waits for a turn. */
  get isWanted(): boolean {
    return this.#wanted > 0;
  }

  get #wanted(): number {
    return this.#waiting.first.length + this.#waiting.next.length;
  }

  /** A turn; where none is free, once it has come. Who waits holds no memory that others wait for. */
  take(which: 'first' | 'next', signal: AbortSignal | undefined): Turn | Promise<Turn> {
    if (this.#free > 0) {
      this.#free--;
      return new Turn(this);
    }
    const waiting = this.#waiting[which];
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const place = waiting.indexOf(waiter);
        if (place >= 0) waiting.splice(place, 1);
        try {
          throwIfAborted(signal);
        } catch (error) {
          reject(error as Error);
        }
      };
      const waiter: Waiter = {
        take: (turn) => {
          signal?.removeEventListener('abort', onAbort);
          resolve(turn);
        },
      };
      waiting.push(waiter);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort);
      this.#watch();
    });
  }

  /** Gives a turn that has been released to the next answer that waits. */
  pass(): void {
    this.#coming = Math.max(0, this.#coming - 1);
    const { first, next } = this.#waiting;
    const waiter = this.#isForFirst ? (first.shift() ?? next.shift()) : (next.shift() ?? first.shift());
    this.#isForFirst = !this.#isForFirst;
    if (waiter === undefined) this.#free++;
    else waiter.take(new Turn(this));
  }

  /** Tells that the caller of a scan has the word. Of many of these, the one that has had it longest is paused. */
  idle(scan: Idler): void {
    this.#idle.set(scan, performance.now());
    if (this.#idle.size > idleScansMax) this.#pause(this.#idle.keys().next().value!);
    if (this.isWanted) this.#watch();
  }

  /** Tells that a scan goes on, or has ended. */
  busy(scan: Idler): void {
    this.#idle.delete(scan);
  }

  #pause(scan: Idler): void {
    this.#idle.delete(scan);
    scan.pause();
  }

  /** Checks the answers that have a turn, again and again while others wait for one. */
  #watch(): void {
    if (this.#timer !== undefined || !this.isWanted) return;
    const nowMs = performance.now();
    for (const [scan, sinceMs] of this.#idle) {
      if (this.#coming >= this.#wanted) return;
      if (scan.turn === null) continue;
      const leftMs = sinceMs + turnPatienceMs - nowMs;
      if (leftMs > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined;
          this.#watch();
        }, leftMs);
        return;
      }
      this.#coming++;
      this.#pause(scan);
    }
  }
}

/** Jobs of lines that one answer has under way, and written, at once. */
export function jobsOfTurn(threads: number): number {
  return Math.max(1, Math.min(2 * threads, lineJobsMax));
}

const turnsOfPools = new WeakMap<WorkerPool, AnswerTurns>();
const turnsWithoutThreads = new AnswerTurns(0);

/** The turns of the answers that these threads write lines of. */
export function turnsOf(pool: WorkerPool | undefined): AnswerTurns {
  if (pool === undefined) return turnsWithoutThreads;
  let turns = turnsOfPools.get(pool);
  if (turns === undefined) {
    turns = new AnswerTurns(pool.threads);
    turnsOfPools.set(pool, turns);
  }
  return turns;
}
