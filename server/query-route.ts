import type { AgentStore } from '../engine/archive.js';
import { isLogstrataError } from '../engine/errors.js';
import type { Query } from '../engine/scan/query.js';
import { acceptsGzip } from './accept-encoding.js';
import { clientGone } from './client-gone.js';
import { corsHeaders, preflightHeaders, withVary } from './cors.js';
import type { CorsOrigin } from './cors.js';
import { gzipped } from './gzip.js';
import { ProblemError, problemOf } from './problem.js';
import { sendProblem } from './problem-response.js';
import type { QuerySlots } from './query-slots.js';
import { parseAgentPath, parseQueryRequest } from './request.js';
import { serverTiming } from './server-timing.js';
import { TimedPieces } from './timed-pieces.js';
import type { ResponseHead, TransportRequest, TransportResponse } from './transport.js';

/** By the interface. */
const limitDefault = 100;

export interface RouteOptions {
  /** The store of an agent, or undefined when there is no such agent. */
  readonly lookup: (agent: string) => AgentStore | undefined;
  readonly corsOrigin: CorsOrigin;
  readonly timezone: string;
  readonly limitMax: number;
  readonly queryTimeoutMs: number;
  readonly now: () => number;
  readonly log: (message: string) => void;
}

/** The methods that the route answers. A preflight is asked only where CORS is on. */
export function routeMethods(corsOrigin: CorsOrigin): readonly string[] {
  return Object.keys(corsHeaders(corsOrigin, undefined)).length === 0
    ? ['GET', 'HEAD']
    : ['GET', 'HEAD', 'OPTIONS'];
}

/** `GET /api/query/{agent_name}`: the one route. */
export class QueryRoute {
  readonly #options: RouteOptions;
  readonly #slots: QuerySlots;
  readonly #heads: AnswerHeads;

  constructor(options: RouteOptions, slots: QuerySlots) {
    this.#options = options;
    this.#slots = slots;
    this.#heads = new AnswerHeads(options.corsOrigin);
  }

  /** Answers one request. Never rejects: what fails is answered, or breaks the connection, and is logged when it is ours. */
  async answer(request: TransportRequest, response: TransportResponse): Promise<void> {
    try {
      this.#slots.assertOpen();
      if (request.method === 'OPTIONS') {
        await response.send({ status: 204, headers: this.#preflight(request) }, null);
        return;
      }
      const { store, query } = this.#read(request);
      const packs = acceptsGzip(request.header('accept-encoding'));
      const head = this.#heads.of(request.header('origin'));
      if (request.method === 'HEAD') await response.send(packs ? packed(head) : head, null);
      else await this.#run(store, query, head, packs, response);
    } catch (error) {
      if (response.isGone) return;
      const problem = problemOf(error);
      this.#logOurs(problem, error);
      sendProblem(response, problem, withVary(this.#cors(request), 'Accept-Encoding'));
    }
  }

  #cors(request: TransportRequest): Record<string, string> {
    return corsHeaders(this.#options.corsOrigin, request.header('origin'));
  }

  #preflight(request: TransportRequest): Record<string, string> {
    return { ...this.#cors(request), ...preflightHeaders(routeMethods(this.#options.corsOrigin)) };
  }

  #read(request: TransportRequest): { store: AgentStore; query: Query } {
    const agent = parseAgentPath(request.rawPath);
    const store = this.#options.lookup(agent);
    if (store === undefined) throw new ProblemError(404, `there is no agent "${agent}"`);
    const { timezone, limitMax, now } = this.#options;
    const query = parseQueryRequest(request.rawQuery, {
      schema: store.schema,
      now: now(),
      timezone,
      limitMax,
      limitDefault: Math.min(limitDefault, limitMax),
    });
    return { store, query };
  }

  /** Throws before the first byte of the answer only. */
  async #run(
    store: AgentStore,
    query: Query,
    head: ResponseHead,
    packs: boolean,
    response: TransportResponse,
  ): Promise<void> {
    const release = this.#slots.take();
    const pieces = new TimedPieces(this.#options.queryTimeoutMs);
    response.whenGone(() => pieces.interrupt(clientGone()));
    const startMs = performance.now();
    try {
      const begun = pieces.start((signal) => store.scan(query, { signal, lends: true }));
      const scan = begun instanceof Promise ? await begun : begun;
      const atHand = pieces.now();
      const first = atHand === null ? await pieces.next() : atHand;
      const timing = serverTiming(scan.stats, performance.now() - startMs);
      const timed = { status: head.status, headers: { ...head.headers, 'Server-Timing': timing } };
      if (first === undefined) {
        await response.send(timed, new Uint8Array(0));
      } else if (pieces.isAtEnd && !packs) {
        const sending = response.send(timed, first);
        if (sending !== undefined) await sending;
        // It is over: this gives back what it held.
        pieces.now();
      } else {
        await this.#stream(pieces, first, timed, packs, response);
      }
    } finally {
      // A scan that does not stop at once keeps its slot, but nobody waits for it.
      if (pieces.isDone) release();
      else void pieces.close().then(release);
    }
  }

  /** Whatever fails from here on breaks the connection: a problem can't be told any more. */
  async #stream(
    pieces: TimedPieces,
    first: Uint8Array,
    head: ResponseHead,
    packs: boolean,
    response: TransportResponse,
  ): Promise<void> {
    try {
      if (packs) await streamPacked(pieces, first, packed(head), response);
      else await streamPlain(pieces, first, head, response);
    } catch (error) {
      if (!response.isGone) this.#options.log(`an answer was broken off: ${describeFailure(error)}`);
      response.break();
    }
  }

  #logOurs(problem: ProblemError, error: unknown): void {
    if (problem.status === 500) this.#options.log(`a query failed: ${describeFailure(error)}`);
  }
}

/** For the log: what users can cause as a sentence, our own bugs with the place in the code. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return isLogstrataError(error) ? error.message : (error.stack ?? error.message);
}

const answerHeaders = { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' };

/** The heads of answers, of which there is one for all where CORS is off. */
class AnswerHeads {
  readonly #corsOrigin: CorsOrigin;
  readonly #common: ResponseHead | undefined;

  constructor(corsOrigin: CorsOrigin) {
    this.#corsOrigin = corsOrigin;
    if (Object.keys(corsHeaders(corsOrigin, undefined)).length === 0) this.#common = this.#make(undefined);
  }

  of(origin: string | undefined): ResponseHead {
    return this.#common ?? this.#make(origin);
  }

  #make(origin: string | undefined): ResponseHead {
    const cors = withVary(corsHeaders(this.#corsOrigin, origin), 'Accept-Encoding');
    return { status: 200, headers: { ...cors, ...answerHeaders } };
  }
}

function packed(head: ResponseHead): ResponseHead {
  return { ...head, headers: { ...head.headers, 'Content-Encoding': 'gzip' } };
}

async function streamPacked(
  pieces: TimedPieces,
  first: Uint8Array,
  head: ResponseHead,
  response: TransportResponse,
): Promise<void> {
  for await (const piece of gzipped(following(first, pieces))) await response.write(head, piece);
  response.end();
}

async function* following(first: Uint8Array, pieces: TimedPieces): AsyncGenerator<Uint8Array> {
  for (let piece: Uint8Array | undefined = first; piece !== undefined; piece = await pieces.next())
    yield piece;
}

async function streamPlain(
  pieces: TimedPieces,
  first: Uint8Array,
  head: ResponseHead,
  response: TransportResponse,
): Promise<void> {
  for (let piece: Uint8Array | undefined = first; piece !== undefined;) {
    await response.write(head, piece);
    const atHand = pieces.now();
    piece = atHand === null ? await pieces.next() : atHand;
  }
  response.end();
}
