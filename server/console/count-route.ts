import { answerBytesMax, type ReadableStore, type SeveralStore } from '../../engine/index.js';
import type { Caller } from '../http/access.js';
import {
  countCsv,
  countIn,
  countJson,
  countProblem,
  parseCountRequest,
  type CountRequest,
} from '../http/count-request.js';
import type { ResponseHead, TransportRequest, TransportResponse } from '../http/transport.js';
import { acceptsGzip, parseAgentsPath } from '../http/query-request.js';
import { parseSeveralCount } from '../http/several-request.js';
import type { RequestTarget } from '../http/request-check.js';
import { type Admission, inSlot } from '../pace/admission.js';
import { findAgent } from '../route/query-route.js';
import type { QueryTally, SlowCost, SlowQueries } from '../route/query-tally.js';
import { gzippedAtOnce, packed, serverTiming, uncachedHead } from '../route/http-answer.js';
import type { ConsoleAgents, ConsoleRoute } from './console-router.js';

/** The options of the count route. */
export interface CountOptions {
  /** The time zone of times without an offset, and of buckets where the request names none. */
  readonly timezone: string;
  /** Upper bound of the duration of a count. */
  readonly queryTimeoutMs: number;
  readonly now: () => number;
  /** The tally and the slow list of the query route: counts are included in both. */
  readonly tally: QueryTally;
  readonly slow: SlowQueries;
}

const contentTypes = { json: 'application/json', csv: 'text/csv; charset=utf-8; header=present' } as const;

/**
 * `GET /api/count/{agent_name}`: counts the matching records of an agent, or of several whose names are joined by commas, by buckets of time, by the
 * most frequent values of a field, or by both.
 * Counts and queries share the slots of the server (`Admission`).
 */
export class CountRoute implements ConsoleRoute {
  readonly rights = 'by agent';

  constructor(
    private readonly agents: ConsoleAgents,
    private readonly admission: Admission,
    private readonly options: CountOptions,
  ) {}

  answer(
    request: TransportRequest,
    response: TransportResponse,
    { rawPath, rawQuery }: RequestTarget,
    caller: Caller,
  ): Promise<void> {
    const names = parseAgentsPath(rawPath, 'count');
    const [first, ...others] = names.map((name) => findAgent(name, caller, this.agents).store);
    const store = others.length === 0 ? first! : first!.joined(others);
    const { timezone, now } = this.options;
    const context = { schema: store.schema, timezone, now: now() };
    const isSeveral = 'stores' in store;
    const asked = isSeveral
      ? parseSeveralCount(store, rawQuery, context)
      : parseCountRequest(rawQuery, context);
    if (request.method === 'HEAD') return response.send(headOf(asked), null);
    // The request can't be read any more after the first `await`.
    const packs = acceptsGzip(request.header('accept-encoding'));
    const asker = { agent: names.join(), client: request.remoteAddress, rawQuery, packs };
    return this.#run(store, asked, response, asker);
  }

  async #run(
    store: ReadableStore | SeveralStore,
    asked: CountRequest,
    response: TransportResponse,
    asker: Asker,
  ): Promise<void> {
    const { agent, client, packs } = asker;
    const startMs = performance.now();
    const { queryTimeoutMs: timeoutMs } = this.options;
    const late =
      `the count ran longer than ${timeoutMs / 1000} s, the time limit of this server: add filters, or choose a ` +
      'shorter time';
    try {
      const wish = { client, response, timeoutMs, late };
      const { body, stats } = await inSlot(this.admission, wish, async (signal) => {
        const counts = await countIn(store, asked, signal);
        const text = asked.format === 'csv' ? countCsv(asked, counts) : countJson(agent, asked, counts);
        return { body: Buffer.from(text), stats: counts.stats };
      });
      const timing = serverTiming(stats, performance.now() - startMs);
      // Each list of agents would be a series of its own among the metrics.
      this.options.tally.scanned(agent.includes(',') ? 'several agents' : agent, stats, body.length);
      this.#note(asker, startMs, { failure: null, stats, bytes: body.length });
      const head = { ...headOf(asked), timing };
      if (packs && body.length <= answerBytesMax) await response.send(packed(head), gzippedAtOnce(body));
      else await response.send(head, body);
    } catch (error) {
      const problem = countProblem(error);
      const failure = problem instanceof Error ? problem.message : String(problem);
      this.#note(asker, startMs, { failure, stats: undefined, bytes: 0 });
      throw problem;
    }
  }

  /** Adds the count to the slow list where it was slow. */
  #note(asker: Asker, startMs: number, cost: Pick<SlowCost, 'failure' | 'stats' | 'bytes'>): void {
    const { slow, now } = this.options;
    const totalMs = performance.now() - startMs;
    if (!slow.isSlow(totalMs, cost.stats)) return;
    slow.add('count', asker, { ...cost, timeMs: now() - totalMs, firstMs: totalMs, totalMs });
  }
}

/** The facts of a request that the log and the response need. */
interface Asker {
  readonly agent: string;
  /** Address of the client. */
  readonly client: string;
  readonly rawQuery: string;
  /** Whether the client accepts gzip. */
  readonly packs: boolean;
}

function headOf({ format }: CountRequest): ResponseHead {
  return uncachedHead(contentTypes[format], { Vary: 'Accept-Encoding' });
}
