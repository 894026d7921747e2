import { LogstrataError } from '../../engine/index.js';
import type { Caller } from '../access/caller.js';
import { countCsv, countJson } from '../counts/count-answer.js';
import { countProblem, parseCountRequest, type CountRequest } from '../counts/count-request.js';
import { clientGoneError } from '../http/client-gone.js';
import { packedAtOnceBytesMax } from '../http/http-limits.js';
import { ProblemError } from '../http/problem.js';
import type { ResponseHead, TransportRequest, TransportResponse } from '../http/transport.js';
import { acceptsGzip } from '../request/accept-encoding.js';
import { parseAgentPath } from '../request/query-request.js';
import type { RequestTarget } from '../request/request-check.js';
import type { Admission } from '../route/admission.js';
import { gzippedAtOnce } from '../route/gzip.js';
import { noSniffHeaders } from '../route/problem-response.js';
import { serverTiming } from '../route/server-timing.js';
import type { ConsoleAgent, ConsoleAgents } from './console-agent.js';
import type { ConsoleRoute } from './console-route.js';

export interface CountOptions {
  /** The zone of times without an offset, and of buckets where a request names none. */
  readonly timezone: string;
  /** The longest that a count may take. */
  readonly queryTimeoutMs: number;
  readonly now: () => number;
}

const contentTypes = { json: 'application/json', csv: 'text/csv; charset=utf-8; header=present' } as const;

/**
 * `GET /api/count/{agent_name}`: how many records match, by buckets of time, by the most frequent values of a field, or by both. Counts and
 * queries share the slots of the server.
 */
export class CountRoute implements ConsoleRoute {
  readonly rights = 'by agent';
  readonly #agents: ConsoleAgents;
  readonly #admission: Admission;
  readonly #options: CountOptions;

  constructor(agents: ConsoleAgents, admission: Admission, options: CountOptions) {
    this.#agents = agents;
    this.#admission = admission;
    this.#options = options;
  }

  answer(
    request: TransportRequest,
    response: TransportResponse,
    { rawPath, rawQuery }: RequestTarget,
    caller: Caller,
  ): Promise<void> | undefined {
    const name = parseAgentPath(rawPath, 'count');
    caller.assertMay(name);
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
    const { timezone, now } = this.#options;
    const asked = parseCountRequest(rawQuery, { schema: agent.store.schema, timezone, now: now() });
    if (request.method === 'HEAD') return response.send(headOf(asked), null);
    // To be read before anything is waited for.
    const packs = acceptsGzip(request.header('accept-encoding'));
    return this.#run(name, agent, asked, response, { client: request.remoteAddress, packs });
  }

  async #run(
    name: string,
    { store }: ConsoleAgent,
    asked: CountRequest,
    response: TransportResponse,
    { client, packs }: { readonly client: string; readonly packs: boolean },
  ): Promise<void> {
    const slot = this.#admission.begin(client);
    const startMs = performance.now();
    const abort = new AbortController();
    response.whenGone(() => abort.abort(clientGoneError()));
    const { queryTimeoutMs } = this.#options;
    const timer = setTimeout(() => abort.abort(timeoutOf(queryTimeoutMs)), queryTimeoutMs);
    try {
      await slot.enterFirst();
      const counts = await store.count(asked.query, { signal: abort.signal });
      const body = Buffer.from(
        asked.format === 'csv' ? countCsv(asked, counts) : countJson(name, asked, counts),
      );
      slot.end();
      const timing = serverTiming(counts.stats, performance.now() - startMs);
      await send(response, { ...headOf(asked), timing }, body, packs);
    } catch (error) {
      throw countProblem(error);
    } finally {
      clearTimeout(timer);
      slot.end();
    }
  }
}

function headOf({ format }: CountRequest): ResponseHead {
  const headers = {
    'Content-Type': contentTypes[format],
    'Cache-Control': 'no-store',
    Vary: 'Accept-Encoding',
    ...noSniffHeaders,
  };
  return { status: 200, headers };
}

function send(
  response: TransportResponse,
  head: ResponseHead,
  body: Uint8Array,
  packs: boolean,
): Promise<void> | undefined {
  if (!packs || body.length > packedAtOnceBytesMax) return response.send(head, body);
  return response.send(
    { ...head, headers: { ...head.headers, 'Content-Encoding': 'gzip' } },
    gzippedAtOnce(body),
  );
}

function timeoutOf(limitMs: number): LogstrataError {
  return new LogstrataError(
    'timeout',
    `the count ran longer than ${limitMs / 1000} s, which is the time limit of this server: add filters, or ask for a shorter time`,
  );
}
