import { idleScansMax, lineJobsMax, lineJobsOfAllMax, turnMs } from '../../terms/limits.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { throwIfAborted } from '../../store/reading/pace.js';

/** A scan that can be paused, so that other scans get its memory. */
export interface PausableScan {
  /** The turn that it holds; null where it holds none. */
  readonly turn: Turn | null;
  /**
   * Gives back everything that it holds, its turn included, except the piece that its caller has. It continues when its caller asks for the
   * next piece.
   */
  pause(): void;
}

/** Permission to write lines ahead. It is given back once none of these lines is in memory. */
export class Turn {
  readonly #turns: AnswerTurns;
  readonly #sinceMs = performance.now();
  #isReleased = false;

  constructor(turns: AnswerTurns) {
    this.#turns = turns;
  }

  /** Whether it should be given back: others wait, and it has lasted at least `turnMs`. */
  get isOver(): boolean {
    return this.#turns.isWanted && performance.now() - this.#sinceMs >= turnMs;
  }

  /** Gives the turn back. Further calls do nothing. */
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
 * Bounds the memory of all long answers together. Only a few of them at a time write lines ahead, and they take turns. While others wait,
 * an answer whose client has not asked for more for `turnMs` is paused.
 */
export class AnswerTurns {
  #free: number;
  /**
   * Answers that wait for a turn to write their first lines, and those that wait to write further ones. The two queues are served
   * alternately, so that first lines come soon.
   */
  readonly #waiting: Readonly<Record<'first' | 'next', Waiter[]>> = { first: [], next: [] };
  #isForFirst = true;
  /**
   * Scans whose callers have a piece and have not asked for the next, with the time since when, in milliseconds. The longest wait comes
   * first.
   */
  readonly #idle = new Map<PausableScan, number>();
  /** Approximate number of turns that paused scans are about to give back. */
  #coming = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param threads number of threads that write lines */
  constructor(threads: number) {
    // One more than `jobsPerTurn`: the job whose lines are being read by the client still holds memory.
    this.#free = Math.floor(lineJobsOfAllMax / (jobsPerTurn(threads) + 1));
  }

  /** Whether an answer waits for a turn. */
  get isWanted(): boolean {
    return this.#wanted > 0;
  }

  get #wanted(): number {
    return this.#waiting.first.length + this.#waiting.next.length;
  }

  /** A turn, if one is free; else null. */
  tryTake(): Turn | null {
    if (this.#free === 0) return null;
    this.#free--;
    return new Turn(this);
  }

  /** Waits for a turn, where none is free. Rejects when `signal` is aborted. The caller must hold no memory that others may wait for. */
  wait(which: 'first' | 'next', signal: AbortSignal | undefined): Promise<Turn> {
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

  /** Passes a released turn to the next answer that waits. */
  pass(): void {
    this.#coming = Math.max(0, this.#coming - 1);
    const { first, next } = this.#waiting;
    const waiter = this.#isForFirst ? (first.shift() ?? next.shift()) : (next.shift() ?? first.shift());
    this.#isForFirst = !this.#isForFirst;
    if (waiter === undefined) this.#free++;
    else waiter.take(new Turn(this));
  }

  /**
   * Notes that the caller of a scan has a piece. If more than `idleScansMax` callers have one, the scan that has been idle longest is
   * paused.
   */
  idle(scan: PausableScan): void {
    this.#idle.set(scan, performance.now());
    if (this.#idle.size > idleScansMax) this.#pause(this.#idle.keys().next().value!);
    if (this.isWanted) this.#watch();
  }

  /** Notes that a scan continues or has ended. */
  busy(scan: PausableScan): void {
    this.#idle.delete(scan);
  }

  #pause(scan: PausableScan): void {
    this.#idle.delete(scan);
    scan.pause();
  }

  /**
   * Pauses idle scans that hold a turn, once their client has taken nothing for `turnMs`, as many as answers wait. Sets a timer for
   * the next check while answers wait.
   */
  #watch(): void {
    if (this.#timer !== undefined || !this.isWanted) return;
    const nowMs = performance.now();
    for (const [scan, sinceMs] of this.#idle) {
      if (this.#coming >= this.#wanted) return;
      if (scan.turn === null) continue;
      const leftMs = sinceMs + turnMs - nowMs;
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

/** How many jobs of one answer may be running, or finished with lines that have not been taken. */
export function jobsPerTurn(threads: number): number {
  return Math.max(1, Math.min(2 * threads, lineJobsMax));
}

const turnsOfPools = new WeakMap<WorkerPool, AnswerTurns>();
const turnsWithoutThreads = new AnswerTurns(0);

/** The turns shared by all answers whose lines the threads of `pool` write. */
export function turnsOf(pool: WorkerPool | undefined): AnswerTurns {
  if (pool === undefined) return turnsWithoutThreads;
  let turns = turnsOfPools.get(pool);
  if (turns === undefined) {
    turns = new AnswerTurns(pool.threads);
    turnsOfPools.set(pool, turns);
  }
  return turns;
}
