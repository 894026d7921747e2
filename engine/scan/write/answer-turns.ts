import { idleScansMax, lineJobsMax, lineJobsOfAllMax, turnMs, turnPatienceMs } from '../../terms/limits.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { throwIfAborted } from '../../store/reading/pace.js';

/** A scan that can be paused, so that others get its memory. */
export interface PausableScan {
  /** The turn that it has. */
  readonly turn: Turn | null;
  /** Gives back all that it holds, also its turn, but not the piece that its caller has. It goes on when its caller asks for the next piece. */
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

  /** Whether it is to be given back, because others wait and it has lasted long enough. */
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
 * Bounds the memory that all long answers take together: lines are written ahead for only a few of them at a time, which take turns. While
 * others wait, an answer whose client takes nothing for a moment is paused.
 */
export class AnswerTurns {
  #free: number;
  /** Answers that wait: for their first lines, and for the next ones. They are served alternately, so that first lines come soon. */
  readonly #waiting: Readonly<Record<'first' | 'next', Waiter[]>> = { first: [], next: [] };
  #isForFirst = true;
  /** Scans whose callers have a piece and have not asked for the next one, and since when. The longest such wait comes first. */
  readonly #idle = new Map<PausableScan, number>();
  /** About how many turns scans that were paused will soon give back. */
  #coming = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param threads that write lines */
  constructor(threads: number) {
    // Each turn has one job more, whose lines are being taken.
    this.#free = Math.floor(lineJobsOfAllMax / (jobsPerTurn(threads) + 1));
  }

  /** Whether somebody waits for a turn. */
  get isWanted(): boolean {
    return this.#wanted > 0;
  }

  get #wanted(): number {
    return this.#waiting.first.length + this.#waiting.next.length;
  }

  /** A turn, or a promise of it where none is free. The caller must hold no memory that others wait for. */
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

  /** Says that the caller of a scan has a piece. Where too many callers have one, the scan that has waited longest is paused. */
  idle(scan: PausableScan): void {
    this.#idle.set(scan, performance.now());
    if (this.#idle.size > idleScansMax) this.#pause(this.#idle.keys().next().value!);
    if (this.isWanted) this.#watch();
  }

  /** Tells that a scan goes on, or has ended. */
  busy(scan: PausableScan): void {
    this.#idle.delete(scan);
  }

  #pause(scan: PausableScan): void {
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

/** How many jobs of one answer may be under way, or written and not taken. */
export function jobsPerTurn(threads: number): number {
  return Math.max(1, Math.min(2 * threads, lineJobsMax));
}

const turnsOfPools = new WeakMap<WorkerPool, AnswerTurns>();
const turnsWithoutThreads = new AnswerTurns(0);

/** The turns that all answers share whose lines these threads write. */
export function turnsOf(pool: WorkerPool | undefined): AnswerTurns {
  if (pool === undefined) return turnsWithoutThreads;
  let turns = turnsOfPools.get(pool);
  if (turns === undefined) {
    turns = new AnswerTurns(pool.threads);
    turnsOfPools.set(pool, turns);
  }
  return turns;
}
