import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError, type ErrorCode } from '../../terms/errors.js';
import { attemptsMax, objectRequestMsMax, retryMs } from '../../terms/far-limits.js';
import { ObjectFailure } from './object-client.js';

/** Limits of a request and its retries. */
export interface RequestLimits {
  /** Timeout of one attempt (ms), including its response. */
  readonly msMax: number;
  readonly attemptsMax: number;
  /** Delay before the second attempt (ms). It doubles with each further attempt. */
  readonly retryMs: number;
}

export const requestLimitsDefault: RequestLimits = {
  msMax: objectRequestMsMax,
  attemptsMax,
  retryMs,
};

/**
 * Makes a request, and retries it after temporary failures a limited number of times.
 *
 * @param doing the action for the error message, as in "cannot read s3://bucket/key"
 * @param path path of the object, or prefix of keys
 * @throws LogstrataError with the path: `conflict` if the object was replaced (status 412), `not_found` and `io`
 */
export async function request<T>(
  doing: string,
  path: string,
  { msMax, attemptsMax, retryMs }: RequestLimits,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await within(msMax, ask);
    } catch (error) {
      if (!(error instanceof ObjectFailure)) throw error;
      if (!error.isPassing || attempt >= attemptsMax) throw failed(doing, path, error, attempt);
    }
    // Random jitter, so that requests that failed together are not retried together.
    await delay(retryMs * 2 ** (attempt - 1) * (0.5 + Math.random()));
  }
}

async function within<T>(msMax: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stopping = new AbortController();
  const late = new ObjectFailure(`no complete answer within ${msMax / 1000} s`, undefined, true);
  const timer = setTimeout(() => stopping.abort(late), msMax);
  try {
    return await ask(stopping.signal);
  } catch (error) {
    throw stopping.signal.aborted ? late : error;
  } finally {
    clearTimeout(timer);
  }
}

function failed(doing: string, path: string, failure: ObjectFailure, attempts: number): LogstrataError {
  const often = attempts === 1 ? '' : `, ${attempts} times`;
  const message = `cannot ${doing} ${path}: ${failure.message}${often}`;
  return new LogstrataError(codeOf(failure), message, { path, cause: failure });
}

function codeOf({ status }: ObjectFailure): ErrorCode {
  if (status === 404) return 'not_found';
  return status === 412 ? 'conflict' : 'io';
}
