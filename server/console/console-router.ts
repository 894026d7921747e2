import { setTimeout as delay } from 'node:timers/promises';
import type { ReadableStore } from '../../engine/index.js';
import { anybody, stranger, type Caller, type ListenerGuard } from '../http/access.js';
import { describeFailure, ProblemError, problemOf } from '../http/problem.js';
import type { RequestHandler, TransportRequest, TransportResponse } from '../http/transport.js';
import type { TrustedProxies } from '../http/client-address.js';
import { percentDecode } from '../http/parameters.js';
import { checkRequest, type CheckRules, type RequestTarget } from '../http/request-check.js';
import { sendProblem, uncachedHead } from '../route/http-answer.js';
import type { FieldDefinition } from '../../agents/definition/definition.js';
import type { AgentsByName } from '../route/query-route.js';

/** The console can only be read, like the query listener. */
const methods = ['GET', 'HEAD'];

/** The rules for probes. Any Host is accepted, as a probe may use any name or address of the server. */
const probeRules: CheckRules = { methods, hosts: null };

/** What the router checks requests with. */
export interface RouterOptions {
  /** Host names besides `localhost` that are accepted; null for any. */
  readonly hosts: CheckRules['hosts'];
  /** Routes that are answered from the start, for any Host and with or without a token. */
  readonly probes: ConsoleRoutes;
  /** The page, which is there from the start: while the archive is being opened, it says so and waits. */
  readonly viewer: PageRoute;
  /** Checks the tokens of requests; without it everybody is let in. */
  readonly guard?: ListenerGuard | undefined;
  /** Finds the client of a request behind trusted proxies. */
  readonly proxies: TrustedProxies;
  /** Called with one sentence for each internal failure. */
  readonly log: (message: string) => void;
}

/** Dispatches the requests to the console to its routes. */
export class ConsoleRouter {
  readonly #rules: CheckRules;
  /** Undefined until the archive is open. */
  #routes: ConsoleRoutes | undefined;

  constructor(private readonly options: RouterOptions) {
    this.#rules = { methods, hosts: options.hosts };
  }

  /** Adds the routes that need the archive. Until then they, and all but the page, are answered with 503. */
  open(routes: ConsoleRoutes): void {
    this.#routes = routes;
  }

  readonly handle: RequestHandler = (request, response) => {
    this.#answer(request, response).catch((error: unknown) => this.#fail(request, response, error));
  };

  // Async, so that what a route throws is a rejection.
  async #answer(request: TransportRequest, response: TransportResponse): Promise<void> {
    const probe = routeOf(request.rawPath, this.options.probes);
    const target = checkRequest(request, probe === undefined ? this.#rules : probeRules);
    if (probe !== undefined) {
      return probe.answer(request, response, target, this.#prober(request));
    }
    const path = decoded(target.rawPath);
    const route = this.#routes === undefined ? this.#pageOf(path) : routeOf(path, this.#routes);
    const caller = route?.rights === 'none' ? anybody : this.#identify(request);
    if (route === undefined)
      throw this.#routes === undefined
        ? new ProblemError(503, 'the archive is being opened', { headers: { 'Retry-After': '1' } })
        : nothingThere();
    if (route.rights === undefined) caller.assertMayAll();
    return route.answer(request, response, target, caller);
  }

  /** The route of the page and its files. */
  #pageOf(path: string): ConsoleRoute | undefined {
    const { viewer } = this.options;
    return viewer.hasFile(path) ? viewer : undefined;
  }

  /** The caller of a probe. Most probes send no token and are answered all the same; a wrong token is refused. */
  #prober(request: TransportRequest): Caller {
    const hasNone = request.header('authorization') === undefined;
    return hasNone && this.options.guard?.isClosed === true ? stranger : this.#identify(request);
  }

  #identify(request: TransportRequest): Caller {
    const { guard, proxies } = this.options;
    const client = proxies.clientOf(request.remoteAddress, () => request.header('x-forwarded-for'));
    return guard?.identify(request.header('authorization'), client, Date.now()) ?? anybody;
  }

  async #fail(request: TransportRequest, response: TransportResponse, error: unknown): Promise<void> {
    const problem = problemOf(error);
    if (problem.delayMs > 0) await delay(problem.delayMs);
    if (response.isGone) return;
    if (problem.status === 500)
      this.options.log(`${request.rawPath} of the console failed: ${describeFailure(error)}`);
    sendProblem(response, problem);
  }
}

/** The route of a path: the one with the longest matching key. */
function routeOf(path: string, routes: ConsoleRoutes): ConsoleRoute | undefined {
  let longest = '';
  for (const key of Object.keys(routes)) {
    const leads = key.endsWith('/') ? path.startsWith(key) : path === key;
    if (leads && key.length > longest.length) longest = key;
  }
  return routes[longest];
}

/** The 404 for a path that has no route. */
export function nothingThere(): ProblemError {
  return new ProblemError(404, 'the console has nothing at this path');
}

/** Decodes a path to find its route. A path that can't be decoded is used as it is, and the route reports the error. */
function decoded(rawPath: string): string {
  try {
    return percentDecode(rawPath, false, 'the path');
  } catch {
    return rawPath;
  }
}

/** The part of an agent's definition that the console shows. */
export interface ShownDefinition {
  readonly fields: readonly Pick<FieldDefinition, 'name' | 'type' | 'description'>[];
}

/** An agent as the console uses it. */
export interface ConsoleAgent {
  readonly definition: ShownDefinition;
  readonly store: ReadableStore;
}

/** The agents by name. The map is live: it always holds the agents that are served at present. */
export type ConsoleAgents = ReadonlyMap<string, ConsoleAgent> & AgentsByName<ConsoleAgent>;

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

/** The head of an answer in JSON. */
export const jsonHead = uncachedHead('application/json');

/** Answers 200 with a value as JSON. */
export function sendJson(response: TransportResponse, value: unknown): Promise<void> {
  return response.send(jsonHead, Buffer.from(`${JSON.stringify(value)}\n`));
}
