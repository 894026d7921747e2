import { isLogstrataError } from '../../engine/index.js';
import { anybody, stranger, type Caller } from '../access/caller.js';
import type { ListenerGuard } from '../access/listener-guard.js';
import { ProblemError, problemOf } from '../http/problem.js';
import type { RequestHandler, TransportRequest, TransportResponse } from '../http/transport.js';
import type { TrustedProxies } from '../request/client-address.js';
import { percentDecode } from '../request/percent.js';
import { checkRequest, type CheckRules } from '../request/request-check.js';
import { sendProblem } from '../route/problem-response.js';
import type { ConsoleRoute, ConsoleRoutes } from './console-route.js';

/** The interface of the console is read-only too. */
const methods = ['GET', 'HEAD'];

/** What may be behind a probe: it asks by whatever name or address its configuration has. */
const probeRules: CheckRules = { methods, hosts: null };

export interface RouterOptions {
  /** Names besides `localhost` that the console is asked by; null: any. */
  readonly hosts: CheckRules['hosts'];
  /** They are answered from the start, by whatever Host and whoever asks. */
  readonly probes: ConsoleRoutes;
  /** Tells who asks; without one everybody may. */
  readonly guard?: ListenerGuard | undefined;
  /** Tells whom a request is counted for. */
  readonly proxies: TrustedProxies;
  /** Is told failures on our side, one sentence each. */
  readonly log: (message: string) => void;
}

/** From a request on the console to what answers it. */
export class ConsoleRouter {
  readonly #rules: CheckRules;
  readonly #options: RouterOptions;
  /** Undefined until the archive is open. */
  #routes: ConsoleRoutes | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#rules = { methods, hosts: options.hosts };
  }

  /** From now on it answers these, too. Until then they are a 503. */
  open(routes: ConsoleRoutes): void {
    this.#routes = routes;
  }

  readonly handle: RequestHandler = (request, response) => {
    try {
      this.#answer(request, response)?.catch((error: unknown) => this.#fail(request, response, error));
    } catch (error) {
      this.#fail(request, response, error);
    }
  };

  #answer(request: TransportRequest, response: TransportResponse): Promise<void> | undefined {
    const probe = routeOf(request.rawPath, this.#options.probes);
    const target = checkRequest(request, probe === undefined ? this.#rules : probeRules);
    if (probe !== undefined) {
      const prober = this.#prober(request);
      return prober instanceof Promise ? prober : probe.answer(request, response, target, prober);
    }
    const route = this.#routes === undefined ? undefined : routeOf(decoded(target.rawPath), this.#routes);
    const caller = route?.rights === 'none' ? anybody : this.#identify(request);
    if (caller instanceof Promise) return caller;
    if (this.#routes === undefined)
      throw new ProblemError(503, 'the archive is being opened', { headers: { 'Retry-After': '1' } });
    if (route === undefined) throw nothingThere();
    if (route.rights === undefined) caller.assertMayAll();
    return route.answer(request, response, target, caller);
  }

  /** Who asks a probe: most have no token, and are answered all the same. */
  #prober(request: TransportRequest): Caller | Promise<never> {
    const hasNone = request.header('authorization') === undefined;
    return hasNone && this.#options.guard?.isClosed === true ? stranger : this.#identify(request);
  }

  #identify(request: TransportRequest): Caller | Promise<never> {
    const { guard, proxies } = this.#options;
    const client = proxies.clientOf(request.remoteAddress, () => request.header('x-forwarded-for'));
    return guard?.identify(request.header('authorization'), client, Date.now()) ?? anybody;
  }

  #fail(request: TransportRequest, response: TransportResponse, error: unknown): void {
    if (response.isGone) return;
    const problem = problemOf(error);
    if (problem.status === 500)
      this.#options.log(`${request.rawPath} of the console failed: ${describe(error)}`);
    sendProblem(response, problem);
  }
}

/** What answers for a path: the one with the longest of the paths that lead to it. */
function routeOf(path: string, routes: ConsoleRoutes): ConsoleRoute | undefined {
  let longest = '';
  for (const key of Object.keys(routes)) {
    const leads = key.endsWith('/') ? path.startsWith(key) : path === key;
    if (leads && key.length > longest.length) longest = key;
  }
  return routes[longest];
}

/** What a path is answered that nothing is at. */
export function nothingThere(): ProblemError {
  return new ProblemError(404, 'there is nothing at this path of the console');
}

/** The route says what is wrong with a path that can't be decoded. */
function decoded(rawPath: string): string {
  try {
    return percentDecode(rawPath, false, 'the path');
  } catch {
    return rawPath;
  }
}

/** Our own bugs with the place in the code. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return isLogstrataError(error) ? error.message : (error.stack ?? error.message);
}
