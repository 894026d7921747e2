import type { ServerSettings } from '../../agents/definition/config.js';
import { LogstrataError } from '../../engine/index.js';
import { answerWatchMs, clientRateWindowMs } from '../http/http-limits.js';

/** What an answer may cost its server in time. */
type AnswerLimits = Pick<ServerSettings, 'clientRateMin' | 'answerTimeoutMs'>;

/** Watches the answers that are streamed, and cuts off those whose clients are too slow. */
export class AnswerWatch {
  readonly #limits: AnswerLimits;
  readonly #answers = new Set<WatchedAnswer>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  /**
   * Begins to watch an answer.
   *
   * @param cut is called once, with the reason, when the answer is to be broken off
   */
  begin(cut: (reason: LogstrataError) => void): WatchedAnswer {
    const answer = new WatchedAnswer(this.#limits, performance.now(), cut, () => this.#forget(answer));
    this.#answers.add(answer);
    // One timer for all of them; it keeps no process alive.
    this.#timer ??= setInterval(() => this.#check(), answerWatchMs).unref();
    return answer;
  }

  #check(): void {
    const nowMs = performance.now();
    for (const answer of this.#answers) answer.check(nowMs);
  }

  #forget(answer: WatchedAnswer): void {
    this.#answers.delete(answer);
    if (this.#answers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/**
 * One answer, and how its client takes it. Only the time that passes while the server waits for the client counts toward the rate.
 * Times are those of `performance.now()`.
 */
export class WatchedAnswer {
  readonly #limits: AnswerLimits;
  readonly #cut: (reason: LogstrataError) => void;
  readonly #forget: () => void;
  readonly #startMs: number;
  /** Of the present window: time waited for the client, and bytes it has taken. */
  #waitedMs = 0;
  #takenBytes = 0;
  #waitingSinceMs: number | undefined;
  /** Bytes that the server waits for the client to take. Some may have been taken, so all count as taken when the rate is checked. */
  #pendingBytes = 0;

  /** @param forget is called when the answer has ended, or was cut off */
  constructor(
    limits: AnswerLimits,
    startMs: number,
    cut: (reason: LogstrataError) => void,
    forget: () => void,
  ) {
    this.#limits = limits;
    this.#startMs = startMs;
    this.#cut = cut;
    this.#forget = forget;
  }

  /** The server begins to wait until the client has taken so many bytes. */
  waits(bytes: number, nowMs: number): void {
    this.#pendingBytes = bytes;
    this.#waitingSinceMs = nowMs;
  }

  /** The client, or the kernel for it, has taken so many bytes. */
  took(bytes: number, nowMs: number): void {
    this.#takenBytes += bytes;
    this.#pendingBytes = 0;
    this.#addWait(nowMs);
    this.#waitingSinceMs = undefined;
  }

  /** The answer has ended. */
  end(): void {
    this.#forget();
  }

  /** Cuts the answer off where it is beyond a limit. */
  check(nowMs: number): void {
    const { clientRateMin, answerTimeoutMs } = this.#limits;
    if (nowMs - this.#startMs > answerTimeoutMs) {
      this.#end(`the answer took longer than ${answerTimeoutMs / 1000} s`);
      return;
    }
    if (this.#waitingSinceMs !== undefined) {
      this.#addWait(nowMs);
      this.#waitingSinceMs = nowMs;
    }
    if (this.#waitedMs < clientRateWindowMs) return;
    const rate = (this.#takenBytes + this.#pendingBytes) / (this.#waitedMs / 1000);
    this.#waitedMs = 0;
    this.#takenBytes = 0;
    if (rate < clientRateMin)
      this.#end(`the client took ${Math.round(rate)} bytes a second, and has to take ${clientRateMin}`);
  }

  #addWait(nowMs: number): void {
    if (this.#waitingSinceMs !== undefined) this.#waitedMs += nowMs - this.#waitingSinceMs;
  }

  #end(message: string): void {
    this.#forget();
    this.#cut(new LogstrataError('timeout', message));
  }
}
