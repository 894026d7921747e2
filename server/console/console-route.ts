import type { Caller } from '../access/caller.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { RequestTarget } from '../request/request-check.js';

/**
 * Answers the requests for one path of the console, or for all paths below it. The router has checked the request; `target` is its path and
 * query. The promise of `answer` resolves when the response has ended. An error that it
 * throws or rejects with is answered as a problem, so it may fail only before the first byte of the response.
 */
export interface ConsoleRoute {
  /**
   * The rights that a token needs, where tokens are asked for. `none`: no token is needed, as the route shows nothing of the archive. `by
   * agent`: the route itself checks which agents the token is for. By default the token must be for all agents.
   */
  readonly rights?: 'none' | 'by agent';
  answer(
    request: TransportRequest,
    response: TransportResponse,
    target: RequestTarget,
    caller: Caller,
  ): Promise<void>;
}

/** The routes by path. A path that ends with a slash also stands for all paths below it that no longer path covers. */
export type ConsoleRoutes = Readonly<Record<string, ConsoleRoute>>;

/** The route of a page that is there from the start of the console. */
export interface PageRoute extends ConsoleRoute {
  /** Whether this is the path of the page or of one of its files. */
  hasFile(path: string): boolean;
}
