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

/** The state of a client that has sent wrong tokens. */
interface FailingClient {
  /** Wrong tokens since the client's count last began at 0. */
  failures: number;
  /** Time of the last wrong token, by the clock of `refuse`. */
  lastMs: number;
  /** Refusals to this client that are being delayed. */
  slowed: number;
}

/**
 * Counts the wrong tokens of each client, and delays the refusals of clients that send many. Only refusals are delayed: a client
 * with a right token is not slowed down by others behind the same address. A delayed refusal holds no query slot.
 */
export class FailedTokens {
  /** By client address, ordered by the time of the last wrong token, oldest first. */
  readonly #clients = new Map<string, FailingClient>();
  readonly #log: (message: string) => void;
  /** Refusals that are being delayed, of all clients. */
  #slowed = 0;

  /** @param log is called at a client's 1st, 10th, 100th, … wrong token */
  constructor(log: (message: string) => void) {
    this.#log = log;
  }

  /**
   * Counts a wrong token. Returns what it is answered with: `refusal`, delayed if the client has sent many, or 429 where too many refusals
   * are being delayed already.
   *
   * @param nowMs milliseconds of a clock that never goes back
   */
  refuse(client: string, refusal: ProblemError, nowMs: number): ProblemError {
    const failing = this.#count(client, nowMs);
    const beyond = failing.failures - failuresAtOnce;
    if (beyond <= 0) return refusal;
    if (this.#slowed >= slowedAnswersMax || failing.slowed >= slowedAnswersOfClientMax)
      return new ProblemError(429, 'too many requests with wrong tokens', {
        headers: { 'Retry-After': '2' },
      });
    this.#slowed++;
    failing.slowed++;
    refusal.delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** (beyond - 1));
    setTimeout(() => {
      this.#slowed--;
      failing.slowed--;
    }, refusal.delayMs).unref();
    return refusal;
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
