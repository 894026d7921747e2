import { setTimeout as delay } from 'node:timers/promises';
import { orDeadline } from '../../terms/deadline.js';
import { idleScansMax, lineJobsMax, lineJobsOfAllMax, turnMs } from '../../terms/limits.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { throwIfAborted } from '../../store/reading/pace.js';

/** A scan that can be paused, so that other scans get its memory. */
export interface PausableScan {
  /** Whether it holds a turn. */
  readonly hasTurn: boolean;
  /**
   * Gives back everything that it holds, its turn included, except the piece that its caller has. It continues when its caller asks for the
   * next piece. Resolves when all is given back, and never rejects.
   */
  pause(): Promise<void>;
}

/** An answer that waits for a turn. */
interface Waiter {
  /** Whether it has written no lines yet. */
  readonly isFirst: boolean;
  readonly take: () => void;
}

/**
 * Bounds the memory of all long answers together. Only a few of them at a time write lines ahead, and they take turns. A turn is given back
 * once none of these lines is in memory. While others wait, an answer whose client has not asked for more for `turnMs` is paused.
 */
export class AnswerTurns {
  #free: number;
  /** First lines and further ones are served alternately, so that first lines come soon. */
  readonly #waiting: Waiter[] = [];
  #isForFirst = true;
  /**
   * Scans whose callers have a piece and have not asked for the next, with the time since when, in milliseconds. The longest wait comes
   * first.
   */
  readonly #idle = new Map<PausableScan, number>();
  #isWatching = false;

  /** @param threads number of threads that write lines */
  constructor(threads: number) {
    // One more than `jobsPerTurn`: the job whose lines are being read by the client still holds memory.
    this.#free = Math.floor(lineJobsOfAllMax / (jobsPerTurn(threads) + 1));
  }

  /** Whether a turn that began at `sinceMs` should be given back: others wait, and it has lasted at least `turnMs`. */
  isOver(sinceMs: number): boolean {
    return this.#waiting.length > 0 && performance.now() - sinceMs >= turnMs;
  }

  /** Takes a turn, if one is free. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Waits for a turn, where none is free. Rejects when `signal` is aborted. The caller must hold no memory that others may wait for. */
  wait(isFirst: boolean, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        try {
          throwIfAborted(signal);
        } catch (error) {
          reject(error as Error);
        }
      };
      const take = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const waiter: Waiter = { isFirst, take };
      this.#waiting.push(waiter);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
      void this.#watch();
    });
  }

  /** Gives back a turn, or passes it to the next answer that waits. */
  giveBack(): void {
    const next = this.#waiting.findIndex(({ isFirst }) => isFirst === this.#isForFirst);
    this.#isForFirst = !this.#isForFirst;
    const [waiter] = this.#waiting.splice(Math.max(0, next), 1);
    if (waiter === undefined) this.#free++;
    else waiter.take();
  }

  /**
   * Notes that the caller of a scan has a piece. If more than `idleScansMax` callers have one, the scan that has been idle longest is
   * paused.
   */
  idle(scan: PausableScan): void {
    this.#idle.set(scan, performance.now());
    if (this.#idle.size > idleScansMax) void this.#pause(this.#idle.keys().next().value!);
    void this.#watch();
  }

  /** Notes that a scan continues or has ended. */
  busy(scan: PausableScan): void {
    this.#idle.delete(scan);
  }

  #pause(scan: PausableScan): Promise<void> {
    this.#idle.delete(scan);
    return scan.pause();
  }

  /** While answers wait, pauses idle scans that hold a turn, once their client has taken nothing for `turnMs`, one after another. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    while (this.#waiting.length > 0) {
      const longest = [...this.#idle].find(([{ hasTurn }]) => hasTurn);
      if (longest === undefined) break;
      const [scan, sinceMs] = longest;
      const leftMs = sinceMs + turnMs - performance.now();
      await (leftMs > 0 ? delay(leftMs) : orDeadline(this.#pause(scan), turnMs));
    }
    this.#isWatching = false;
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
  const turns = turnsOfPools.get(pool) ?? new AnswerTurns(pool.threads);
  turnsOfPools.set(pool, turns);
  return turns;
}
