import { setTimeout as delay } from 'node:timers/promises';
import {
  type RecordStore,
  type SeveralStore,
  type LogstrataError,
  type Query,
  type Scan,
  answerBytesMax,
} from '../../engine/index.js';
import { anybody, type Caller } from '../http/access.js';
import {
  acceptsGzip,
  KnownQueries,
  type ParsedTarget,
  parseAgentPath,
  parseAgentsPath,
  parseQueryRequest,
} from '../http/query-request.js';
import type { Admission, Slot } from '../pace/admission.js';
import {
  AnswerHeads,
  corsHeaders,
  gzipped,
  gzippedAtOnce,
  noSniffHeaders,
  packed,
  preflightHeaders,
  sendProblem,
  serverTiming,
  streamHead,
  withVary,
} from './http-answer.js';
import { AnswerWatch } from '../pace/answer-watch.js';
import { TrustedProxies } from '../http/client-address.js';
import {
  clientGoneError,
  type ResponseHead,
  type TransportRequest,
  type TransportResponse,
} from '../http/transport.js';
import { asksToFollow, followedQuery } from '../follow/follow-request.js';
import type { Followers, FollowRequest } from '../follow/followers.js';
import { wholeAnswerBytesMax } from '../http/http-limits.js';
import { describeFailure, ProblemError, problemOf } from '../http/problem.js';
import { parseSeveralRequest } from '../http/several-request.js';
import { checkRequest, hostsAsked, type CheckRules, type RequestTarget } from '../http/request-check.js';
import { type BreakReason, QueryTally, SlowQueries } from './query-tally.js';
import type { ServerOptions } from './server-options.js';
import { StoreLookup } from '../http/store-lookup.js';
import { TimedPieces } from '../pace/timed-pieces.js';

/** `limit` of a request that gives none, as the interface fixes it. */
const limitDefault = 100;

/** The methods that the route answers. Browsers send a preflight (OPTIONS) only across origins, so it is answered only with CORS on. */
function routeMethods(corsOrigin: readonly string[]): readonly string[] {
  return corsOrigin.length === 0 ? ['GET', 'HEAD'] : ['GET', 'HEAD', 'OPTIONS'];
}

/**
 * `GET /api/query/{agent_name}`: the one route. Checks a request, reads its query, and answers with a scan or with a stream of events.
 * Counts and logs what it answers.
 */
export class QueryRoute {
  /** The route itself checks whether the caller may read the agent that the request names. */
  readonly rights = 'by agent';
  /** Tell which client a request is counted for. */
  readonly #proxies: TrustedProxies;
  readonly #watch: AnswerWatch;
  readonly #rules: CheckRules;
  readonly #heads: AnswerHeads;
  readonly #known = new KnownQueries();
  readonly #stores: StoreLookup;
  /** Counts of all answers since the route was made. */
  readonly tally = new QueryTally();
  readonly slow: SlowQueries;

  constructor(
    private readonly options: ServerOptions,
    private readonly admission: Admission,
    private readonly followers: Followers,
    stores = new StoreLookup(options.lookup),
  ) {
    const { listen, hosts, corsOrigin } = options;
    this.#proxies = new TrustedProxies(options.trustedProxies);
    this.#stores = stores;
    this.#watch = new AnswerWatch(options);
    this.#rules = {
      methods: routeMethods(corsOrigin),
      hosts: hostsAsked(listen.host, hosts),
    };
    this.slow = new SlowQueries(options.slowQueryMs, options.onSlow ?? (() => {}));
    this.#heads = new AnswerHeads(corsOrigin);
  }

  /**
   * Answers one request. Resolves when the answer has ended. Never throws or rejects: a failure is answered with a problem or breaks the
   * connection, and is logged if it is the server's own (500).
   *
   * @param target the target, if another listener has checked the request already
   * @param caller who asks, if that listener has identified the caller
   */
  async answer(
    request: TransportRequest,
    response: TransportResponse,
    target?: RequestTarget,
    caller?: Caller,
  ): Promise<void> {
    const startMs = performance.now();
    try {
      await this.#answer(request, response, startMs, target, caller);
    } catch (error) {
      await this.#fail(request, response, error, startMs);
    }
  }

  // Async, so that what it throws is a rejection.
  async #answer(
    request: TransportRequest,
    response: TransportResponse,
    startMs: number,
    checked: RequestTarget | undefined,
    known: Caller | undefined,
  ): Promise<void> {
    this.admission.assertOpen();
    const target = checked ?? checkRequest(request, this.#rules);
    if (request.method === 'OPTIONS') {
      this.tally.answered(204, performance.now() - startMs);
      return response.send({ status: 204, headers: this.#preflight(request) }, null);
    }
    const client = this.#proxies.clientOf(request.remoteAddress, () => request.header('x-forwarded-for'));
    const caller = known ?? this.#identify(request, client);
    const { agent, store, query } = this.#read(target, caller);
    if (asksToFollow(request)) {
      const { objection } = caller;
      const asked = { agent, store, query: followedQuery(query, request, store.cursors), objection };
      return this.#follow(asked, request, response, startMs);
    }
    const isWhole = request.version === '1.0';
    const packs = !isWhole && acceptsGzip(request.header('accept-encoding'));
    const head = this.#heads.of(query.form?.format ?? 'jsonl', request.header('origin'));
    if (request.method === 'HEAD') {
      this.tally.answered(200, performance.now() - startMs);
      return response.send(packs ? packed(head) : head, null);
    }
    const slot = this.admission.begin(client);
    const asked = { agent, client, rawQuery: target.rawQuery, startMs };
    return this.#run({ asked, store, query, head, packs, isWhole, response, slot, broken: null });
  }

  #identify(request: TransportRequest, client: string): Caller {
    const { guard, now } = this.options;
    return guard?.identify(request.header('authorization'), client, now()) ?? anybody;
  }

  #follow(
    asked: Pick<FollowRequest, 'agent' | 'store' | 'query' | 'objection'>,
    request: TransportRequest,
    response: TransportResponse,
    startMs: number,
  ): Promise<void> {
    const head = streamHead(this.#cors(request));
    const onBegin = (): void => this.tally.answered(200, performance.now() - startMs);
    if (request.method !== 'HEAD') return this.followers.follow({ ...asked, head, response, onBegin });
    onBegin();
    return response.send({ ...head, closes: false }, null);
  }

  async #fail(
    request: TransportRequest,
    response: TransportResponse,
    error: unknown,
    startMs: number,
  ): Promise<void> {
    const problem = problemOf(error);
    if (problem.delayMs > 0) await delay(problem.delayMs);
    if (response.isGone) {
      this.tally.broken.client_gone++;
      return;
    }
    this.tally.answered(problem.status, performance.now() - startMs);
    this.#logOurs(problem, error);
    sendProblem(response, problem, withVary(this.#cors(request), 'Accept-Encoding'));
  }

  #cors(request: TransportRequest): Record<string, string> {
    return corsHeaders(this.options.corsOrigin, request.header('origin'));
  }

  #preflight(request: TransportRequest): Record<string, string> {
    return { ...this.#cors(request), ...noSniffHeaders, ...preflightHeaders(this.#rules.methods) };
  }

  #read({ rawPath, rawQuery }: RequestTarget, caller: Caller): ParsedTarget {
    const target = `${rawPath}?${rawQuery}`;
    const { lookup, leftOut } = this.options;
    const known = this.#known.get(target);
    if (known !== undefined) {
      for (const name of known.names) caller.assertMay(name);
      // Since the query was parsed, the agent may have been removed or given other fields.
      const { agent, store, schema } = known;
      if (this.#stores.find(agent) === store && store.schema === schema) return known;
    }
    const names = parseAgentsPath(rawPath, 'query');
    for (const name of names) findAgent(name, caller, { get: lookup, leftOut });
    const agent = names.join();
    const store = this.#stores.find(agent)!;
    const { schema } = store;
    const { timezone, limitMax, now } = this.options;
    let isOfNow = false;
    const parse =
      store.cursors === undefined ? parseQueryRequest : parseSeveralRequest.bind(null, store as SeveralStore);
    const query = parse(rawQuery, {
      schema,
      get now() {
        isOfNow = true;
        return now();
      },
      timezone,
      limitMax,
      limitDefault: Math.min(limitDefault, limitMax),
    });
    const understood = { agent, names, store, schema, query };
    // A query with a relative time stands for another time at each request, so it is not kept.
    if (!isOfNow) this.#known.keep(target, understood);
    return understood;
  }

  /** Rejects only before the first byte of the answer. */
  async #run(wanted: AnswerPlan): Promise<void> {
    wanted.response.whenGone(() => this.admission.end(wanted.slot));
    await this.admission.enterFirst(wanted.slot);
    const pieces = new TimedPieces(this.options.queryTimeoutMs);
    wanted.response.whenGone(() => pieces.interrupt(clientGoneError()));
    try {
      await this.#begin(wanted, pieces);
    } catch (error) {
      this.#ended(wanted, pieces, error);
      throw error;
    }
    this.#ended(wanted, pieces, null);
  }

  /** Counts what an answer has cost, and frees what it holds. `error` is why there was no answer, or null; the caller answers it. */
  #ended(wanted: AnswerPlan, pieces: TimedPieces, error: unknown): void {
    const { asked, broken, slot } = wanted;
    const { stats, bytes } = pieces;
    const totalMs = performance.now() - asked.startMs;
    if (error === null) this.tally.answered(200, totalMs);
    // Each list of agents would be a series of its own among the metrics.
    const counted = asked.agent.includes(',') ? 'several agents' : asked.agent;
    if (stats !== undefined) this.tally.scanned(counted, stats, bytes);
    const firstMs = pieces.firstMs ?? totalMs;
    if (this.slow.isSlow(firstMs, stats)) {
      const failure = error === null ? broken : describeFailure(error);
      const timeMs = this.options.now() - totalMs;
      this.slow.add('query', asked, { timeMs, firstMs, totalMs, failure, stats, bytes });
    }
    // A scan that has not ended is stopped in the background and keeps its slot until then.
    if (pieces.isDone) this.admission.end(slot);
    else void pieces.close().then(() => this.admission.end(slot));
  }

  /** Starts the scan, and answers with its pieces. */
  async #begin(wanted: AnswerPlan, pieces: TimedPieces): Promise<void> {
    const { store, query, slot } = wanted;
    const startMs = performance.now();
    // While a scan waits for the memory of other answers, its slot is free for others, and the time does not count toward its limit.
    const onTurn = (waits: boolean): void => {
      if (waits) {
        pieces.hold();
        this.admission.leave(slot);
      } else {
        this.admission.enterAnyway(slot);
        pieces.goOn();
      }
    };
    const bytesMax = this.options.queryBytesMax ?? undefined;
    const scan = await pieces.start((signal) =>
      store.scan(query, { signal, bytesMax, lends: true, joins: true, onTurn }),
    );
    const first = await pieces.next();
    await this.#give(wanted, pieces, scan, first, startMs);
  }

  /** Sends the answer. `first` is its first piece, undefined if no record matches; the others are read from `pieces`. */
  async #give(
    wanted: AnswerPlan,
    pieces: TimedPieces,
    scan: Scan,
    first: Uint8Array | undefined,
    startMs: number,
  ): Promise<void> {
    const { asked, head, packs, isWhole, response, slot } = wanted;
    const nowMs = performance.now();
    pieces.firstMs = nowMs - asked.startMs;
    const ownHead = timed(head, scan, nowMs - startMs);
    if (first !== undefined && !pieces.isAtEnd) {
      if (!isWhole) return this.#stream(wanted, pieces, first, ownHead);
      const whole = await collected(pieces, first);
      this.admission.leave(slot);
      return response.send(ownHead, whole);
    }
    if (first !== undefined && packs) {
      if (first.length > answerBytesMax) return this.#stream(wanted, pieces, first, ownHead);
      await response.send(packed(ownHead), gzippedAtOnce(first));
    } else {
      const sending = response.send(ownHead, first ?? nothing);
      // The only piece has been sent. The scan frees what it holds when it is asked for its end.
      this.admission.leave(slot);
      await sending;
    }
    await pieces.next();
  }

  /** Breaks off an answer that takes too long or whose client is too slow. A write that waits for the client ends with the connection. */
  #cutOff(reason: LogstrataError, wanted: AnswerPlan, pieces: TimedPieces): void {
    this.options.log(`an answer was cut off: ${reason.message}`);
    this.#break(wanted, 'client_slow', reason.message);
    pieces.interrupt(reason);
    wanted.response.break();
  }

  /** Counts an answer as broken off; only the first reason counts. */
  #break(wanted: AnswerPlan, reason: BreakReason, message: string): void {
    if (wanted.broken !== null) return;
    wanted.broken = message;
    this.tally.broken[reason]++;
  }

  /** Streams the pieces. A failure breaks the connection: the head has been sent, so a problem can't be told any more. */
  async #stream(
    wanted: AnswerPlan,
    pieces: TimedPieces,
    first: Uint8Array,
    head: ResponseHead,
  ): Promise<void> {
    const { response, slot, packs } = wanted;
    const watched = this.#watch.begin((reason) => this.#cutOff(reason, wanted, pieces));
    const all = following(first, pieces);
    const ownHead = packs ? packed(head) : head;
    try {
      for await (const piece of packs ? gzipped(all) : all) {
        const writing = response.write(ownHead, piece);
        const { isWaiting } = response;
        // While a write waits for the client, the slot is free for others.
        if (isWaiting) {
          watched.waits(piece.length, performance.now());
          this.admission.leave(slot);
        }
        await writing;
        watched.took(piece.length, performance.now());
        if (isWaiting) await this.admission.enter(slot);
      }
      response.end();
    } catch (error) {
      const { isGone } = response;
      this.#break(wanted, isGone ? 'client_gone' : 'failed', describeFailure(error));
      if (!isGone) this.options.log(`an answer was cut off: ${describeFailure(error)}`);
      response.break();
    } finally {
      watched.end();
    }
  }

  #logOurs(problem: ProblemError, error: unknown): void {
    if (problem.status === 500) this.options.log(`a query failed: ${describeFailure(error)}`);
  }
}

/** Agents by name, and those that a server leaves out. */
export interface AgentsByName<T> {
  get(name: string): T | undefined;
  /** By name, why an agent that has a file can't be served for now. */
  readonly leftOut?: ReadonlyMap<string, string> | undefined;
}

/**
 * The agent in a raw path `/api/{what}/{agent_name}`. Throws like `parseAgentPath`; 403 for an agent that the caller may not query, 503 with
 * the reason for one that is left out, 404 for an unknown one.
 */
export function agentOfPath<T>(
  rawPath: string,
  what: string,
  caller: Caller,
  agents: AgentsByName<T>,
): { readonly name: string; readonly found: T } {
  const name = parseAgentPath(rawPath, what);
  return { name, found: findAgent(name, caller, agents) };
}

/** The agent with a name. Throws as `agentOfPath` does. */
export function findAgent<T>(name: string, caller: Caller, agents: AgentsByName<T>): T {
  caller.assertMay(name);
  const found = agents.get(name);
  if (found !== undefined) return found;
  const reason = agents.leftOut?.get(name);
  if (reason === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
  throw new ProblemError(503, `the agent "${name}" can't be served: ${reason}`, {
    headers: { 'Retry-After': '60' },
  });
}

/** A query, and how it is to be answered. */
interface AnswerPlan {
  readonly asked: AskedQuery;
  readonly store: RecordStore;
  readonly query: Query;
  readonly head: ResponseHead;
  readonly packs: boolean;
  /** Whether the answer is collected and sent with its length, because HTTP/1.0 has no other safe way to mark its end. */
  readonly isWhole: boolean;
  readonly response: TransportResponse;
  readonly slot: Slot;
  /** Why the answer was broken off after its first byte; null if it was not. */
  broken: string | null;
}

/** What was asked and by which client. `startMs` is a time of `performance.now()`. */
interface AskedQuery {
  readonly agent: string;
  readonly client: string;
  readonly rawQuery: string;
  readonly startMs: number;
}

const nothing = new Uint8Array(0);

function timed({ status, headers }: ResponseHead, { stats }: Scan, firstMs: number): ResponseHead {
  return { status, headers, timing: serverTiming(stats, firstMs) };
}

async function* following(first: Uint8Array, pieces: TimedPieces): AsyncGenerator<Uint8Array> {
  for (let piece: Uint8Array | undefined = first; piece !== undefined; piece = await pieces.next())
    yield piece;
}

/** Collects a whole answer. The scan reuses the memory of its pieces, so they are copied. */
async function collected(pieces: TimedPieces, first: Uint8Array): Promise<Buffer> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for (let piece: Uint8Array | undefined = first; piece !== undefined; piece = await pieces.next()) {
    bytes += piece.length;
    if (bytes > wholeAnswerBytesMax)
      throw new ProblemError(
        505,
        `HTTP/1.0 can't carry an answer of more than ${wholeAnswerBytesMax} bytes, because a client could not tell a cut-off answer from a complete ` +
          'one: use HTTP/1.1 (in nginx: "proxy_http_version 1.1;"), or a smaller limit',
        { closes: true },
      );
    kept.push(Buffer.from(piece));
  }
  return Buffer.concat(kept);
}
