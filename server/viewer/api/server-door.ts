import { withLongIntegersQuoted } from '../records/long-integers.js';
import { FailureError, failureOf, failureOfResponse, isAborted } from './failure.js';
import { tokenHeaders, type FirstRequests } from './first-requests.js';

/** Options of a request besides its path. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends requests, with the token of the user, to the server that the page was loaded from. */
export class ServerDoor {
  /** @param first requests that were sent before there was a door */
  constructor(
    private readonly token: () => string | undefined,
    private readonly first?: FirstRequests,
  ) {}

  /** Sends a GET request. Throws a FailureError for any status but success; rethrows an abort. */
  async get(path: string, { signal, headers }: RequestOptions = {}): Promise<Response> {
    const token = this.token();
    let response: Response;
    try {
      response = await (this.first?.take(path) ??
        fetch(path, {
          headers: { ...headers, ...tokenHeaders(token) },
          signal: signal ?? null,
          cache: 'no-store',
        }));
    } catch (error) {
      if (isAborted(error)) throw error;
      throw new FailureError(
        failureOf('unreachable', error instanceof Error ? error.message : String(error)),
      );
    }
    if (!response.ok) throw new FailureError(await failureOfResponse(response, token !== undefined));
    return response;
  }

  /** The JSON body of a response. Integers that a double can't represent exactly become strings with all digits. */
  async getJson(path: string, options: RequestOptions = {}): Promise<unknown> {
    const response = await this.get(path, options);
    const text = await readBody(() => response.text());
    return JSON.parse(withLongIntegersQuoted(text)) as unknown;
  }
}

/** Reads a body, or a part of one. An interrupted body is a failure of kind `broken`, as the response had begun. */
export async function readBody<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new FailureError(failureOf('broken', error instanceof Error ? error.message : String(error)));
  }
}
