import type { Caller } from '../access/caller.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { RequestTarget } from '../request/request-check.js';

/**
 * What answers a path of the console. The router has checked the request; `target` is where it leads. What is returned resolves when the
 * answer has ended, and is undefined where it has already. A failure that is thrown, or that it rejects with, is answered as a problem, so
 * it comes before the first byte.
 */
export interface ConsoleRoute {
  /**
   * What the caller's token has to be for, where tokens are asked for. `none`: there need not be one, as nothing of the archive is shown.
   * `by agent`: the route looks itself at which agents it is for. By default all agents.
   */
  readonly rights?: 'none' | 'by agent';
  answer(
    request: TransportRequest,
    response: TransportResponse,
    target: RequestTarget,
    caller: Caller,
  ): Promise<void> | undefined;
}

/** Paths, each with what answers it. One that ends with a slash answers for all below it that no longer one does. */
export type ConsoleRoutes = Readonly<Record<string, ConsoleRoute>>;
