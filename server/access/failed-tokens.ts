import {
  failingClientsMax,
  failureDelayMs,
  failureDelayMsMax,
  failuresAtOnce,
  failuresForgottenMs,
  slowedAnswersMax,
  slowedAnswersOfClientMax,
} from './access-limits.js';
import { ProblemError } from '../http/problem.js';

/** A client that has sent wrong tokens. */
interface FailingClient {
  failures: number;
  lastMs: number;
  /** Answers to it that wait. */
  slowed: number;
}

/**
 * Counts the wrong tokens of each client, and has those who send many of them wait for the refusal. It is about wrong tokens alone: who
 * has a right one is not slowed by others behind the same address, and a refusal that waits holds no slot of a query.
 */
export class FailedTokens {
  /** By client; the one that failed the longest time ago first. */
  readonly #clients = new Map<string, FailingClient>();
  readonly #log: (message: string) => void;
  #slowed = 0;

  /** @param log is told of a client's first wrong token, and of its tenth, hundredth and so on */
  constructor(log: (message: string) => void) {
    this.#log = log;
  }

  /**
   * Counts a wrong token. Throws `refusal`, or returns what rejects with it in a while; throws 429 where too many wait already.
   *
   * @param nowMs of a clock that does not go back
   */
  refuse(client: string, refusal: ProblemError, nowMs: number): Promise<never> {
    const failing = this.#count(client, nowMs);
    const beyond = failing.failures - failuresAtOnce;
    if (beyond <= 0) throw refusal;
    if (this.#slowed >= slowedAnswersMax || failing.slowed >= slowedAnswersOfClientMax)
      throw new ProblemError(429, 'too many wrong tokens at once', { headers: { 'Retry-After': '2' } });
    this.#slowed++;
    failing.slowed++;
    // A shift by more than 30 would come round.
    const delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** Math.min(beyond - 1, 30));
    return new Promise((_resolve, reject) => {
      setTimeout(() => {
        this.#slowed--;
        failing.slowed--;
        reject(refusal);
      }, delayMs);
    });
  }

  #count(client: string, nowMs: number): FailingClient {
    const known = this.#clients.get(client);
    this.#clients.delete(client);
    const goesOn = known !== undefined && nowMs - known.lastMs < failuresForgottenMs;
    const failing = known ?? { failures: 0, lastMs: nowMs, slowed: 0 };
    failing.failures = goesOn ? failing.failures + 1 : 1;
    failing.lastMs = nowMs;
    this.#clients.set(client, failing);
    if (this.#clients.size > failingClientsMax) {
      const [oldest] = this.#clients.keys();
      this.#clients.delete(oldest!);
    }
    if (isPowerOfTen(failing.failures))
      this.#log(
        `${client} has sent ${failing.failures === 1 ? 'a wrong token' : `${failing.failures} wrong tokens`}`,
      );
    return failing;
  }
}

function isPowerOfTen(count: number): boolean {
  let power = 1;
  while (power < count) power *= 10;
  return power === count;
}
