import type { ServerSettings } from '../../agents/definition/config.js';
import { LogstrataError, maintenanceIntervalMs } from '../../engine/index.js';
import { clientRateWindowMs } from '../http/http-limits.js';

/** The lowest rate at which a client may take an answer (bytes a second), and the longest time that an answer may take. */
type AnswerLimits = Pick<ServerSettings, 'clientRateMin' | 'answerTimeoutMs'>;

/** Watches streamed answers, and cuts off those that take too long or whose clients are too slow. */
export class AnswerWatch {
  readonly #answers = new Set<WatchedAnswer>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly limits: AnswerLimits) {}

  /**
   * Begins to watch an answer.
   *
   * @param cut is called once, with the reason, when the answer is to be broken off
   */
  begin(cut: (reason: LogstrataError) => void): WatchedAnswer {
    const answer = new WatchedAnswer(this.limits, performance.now(), cut, () => this.#forget(answer));
    this.#answers.add(answer);
    // One timer serves all answers. It does not keep the process alive.
    this.#timer ??= setInterval(() => this.#check(), maintenanceIntervalMs).unref();
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
 * Measures the rate at which a client takes one answer. Only time in which the server waits for the client counts. The rate is checked
 * each time that `clientRateWindowMs` of such waiting have passed. Times are those of `performance.now()`.
 */
export class WatchedAnswer {
  /** Since the rate was last checked: time spent waiting for the client, and bytes that it has taken. */
  #waitedMs = 0;
  #takenBytes = 0;
  #waitingSinceMs: number | undefined;
  /** Bytes of the write that the client has not finished taking. It may have taken a part, so a check of the rate counts all of them. */
  #pendingBytes = 0;

  /**
   * @param cut is called with the reason when a limit is exceeded
   * @param forget is called when the answer has ended or was cut off
   */
  constructor(
    private readonly limits: AnswerLimits,
    private readonly startMs: number,
    private readonly cut: (reason: LogstrataError) => void,
    private readonly forget: () => void,
  ) {}

  /** Notes that the server begins to wait until the client has taken this many bytes. */
  waits(bytes: number, nowMs: number): void {
    this.#pendingBytes = bytes;
    this.#waitingSinceMs = nowMs;
  }

  /** Notes that the client, or the operating system for it, has taken this many bytes. */
  took(bytes: number, nowMs: number): void {
    this.#takenBytes += bytes;
    this.#pendingBytes = 0;
    this.#addWait(nowMs);
    this.#waitingSinceMs = undefined;
  }

  /** Stops watching, because the answer has ended. */
  end(): void {
    this.forget();
  }

  /** Cuts the answer off if it takes too long or its client is too slow. */
  check(nowMs: number): void {
    const { clientRateMin, answerTimeoutMs } = this.limits;
    if (nowMs - this.startMs > answerTimeoutMs) {
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
      this.#end(
        `the client read ${Math.round(rate)} bytes a second, less than the minimum of ${clientRateMin}`,
      );
  }

  #addWait(nowMs: number): void {
    if (this.#waitingSinceMs !== undefined) this.#waitedMs += nowMs - this.#waitingSinceMs;
  }

  #end(message: string): void {
    this.forget();
    this.cut(new LogstrataError('timeout', message));
  }
}
