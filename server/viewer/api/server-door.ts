import { withLongIntegersQuoted } from '../records/long-integers.js';
import { FailureError, failureOf, failureOfResponse, isAborted } from './failure.js';

/** How a request is sent besides its path. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends requests to the server that the page came from, with the token that was given. */
export class ServerDoor {
  constructor(private readonly token: () => string | undefined) {}

  /** The response to a GET. Throws a FailureError for anything but success, and passes an abort on. */
  async get(path: string, { signal, headers }: RequestOptions = {}): Promise<Response> {
    const token = this.token();
    const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    let response: Response;
    try {
      response = await fetch(path, {
        headers: { ...headers, ...authorization },
        signal: signal ?? null,
        cache: 'no-store',
      });
    } catch (error) {
      if (isAborted(error)) throw error;
      throw new FailureError(
        failureOf('unreachable', error instanceof Error ? error.message : String(error)),
      );
    }
    if (!response.ok) throw new FailureError(await failureOfResponse(response, token !== undefined));
    return response;
  }

  /** The JSON of a response. Whole numbers that a double does not hold are strings of all of their digits. */
  async getJson(path: string, options: RequestOptions = {}): Promise<unknown> {
    const response = await this.get(path, options);
    const text = await readBody(() => response.text());
    return JSON.parse(withLongIntegersQuoted(text)) as unknown;
  }
}

/** Reads a body, or a part of one. What breaks off is a failure of its own: the answer had begun. */
export async function readBody<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new FailureError(failureOf('broken', error instanceof Error ? error.message : String(error)));
  }
}
