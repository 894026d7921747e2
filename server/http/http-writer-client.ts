import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import {
  answeredValue,
  type Predicate,
  type Schema,
  messageBytesMax,
  farAskMsMax,
  connectMsMax,
  formatCursor,
  isAgentName,
  LogstrataError,
  type WriterQuestion,
  type RowsAnswer,
  type WriterAgents,
  type WriterClient,
} from '../../engine/index.js';
import type { Filter } from '../../agents/definition/filter.js';
import { groupNames } from '../../agents/definition/filter-operators.js';

/**
 * Filters as parameters of a query string, percent-encoded: `status__gte=500`, `host__exact=a`. Groups for which there are no names left are
 * left out: the reader filters the rows again.
 */
export function filterText(predicates: readonly Predicate[], schema: Schema): string[] {
  const groups = predicates.filter((predicate) => predicate.kind === 'any');
  const inGroups = groups
    .slice(0, groupNames.length)
    .flatMap(({ members }, i) =>
      members
        .flatMap((member) => filtersOf(member, schema))
        .map(([key, value]) => parameter(groupNames[i]!, `${key}=${value}`)),
    );
  const others = predicates.flatMap((predicate) =>
    predicate.kind === 'any' ? [] : filtersOf(predicate, schema).map((filter) => parameter(...filter)),
  );
  return [...others, ...inGroups];
}

function parameter(key: string, value: string): string {
  return `${key}=${encodeURIComponent(value).replaceAll('%20', '+')}`;
}

function filtersOf(predicate: Filter, schema: Schema): [key: string, value: string][] {
  if (predicate.kind === 'anywhere')
    return [[`*__${predicate.isAbsent ? 'not_' : ''}${predicate.op}`, predicate.value]];
  const { name, type } = schema.fields[predicate.field]!;
  switch (predicate.kind) {
    case 'set':
      return predicate.members
        .flatMap((member) => filtersOf(member, schema))
        .map(([, value]) => [`${name}__in`, value]);
    case 'exists':
      return [[`${name}__exists`, String(predicate.value)]];
    default:
      return [[`${name}__${predicate.op}`, String(answeredValue(type, predicate.value))]];
  }
}

/** Concurrent requests to the writer; further ones wait. */
const connectionsMax = 64;
/** Longer details of a problem are cut. */
const detailCharactersMax = 500;
const problemBytesMax = 64 * 1024;

/** How to reach the writer's console. */
export interface HttpWriterClientOptions {
  /** Scheme, host and port of the writer's console. */
  readonly address: string;
  /** Access token; null where the console needs none. */
  readonly token: string | null;
  /** PEM certificates of the authorities that are trusted to sign the writer's; null for Node's default ones. */
  readonly ca: string | null;
}

/** Limits of a request. */
interface Asked {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

interface Answer {
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Queries the writer's console over HTTP. Methods throw `conflict` and `timeout` where the writer answers 409 and 504; `unavailable` where
 * it answers with another error or can't be reached.
 */
export class HttpWriterClient implements WriterClient {
  readonly address: string;
  readonly #agent: http.Agent;
  readonly #isSecure: boolean;

  constructor(private readonly options: HttpWriterClientOptions) {
    this.address = options.address;
    this.#isSecure = options.address.startsWith('https:');
    const pooled = { keepAlive: true, maxSockets: connectionsMax };
    const { ca } = options;
    this.#agent = this.#isSecure
      ? new https.Agent({ ...pooled, ...(ca === null ? {} : { ca }) })
      : new http.Agent(pooled);
  }

  close(): void {
    this.#agent.destroy();
  }

  async agents(): Promise<WriterAgents> {
    const { body } = await this.#ask('/api/agents', short);
    const { agents, leftOut = {} } = jsonOf(body) as { agents?: unknown; leftOut?: unknown };
    if (Array.isArray(agents) && agents.every((name) => typeof name === 'string' && isAgentName(name))) {
      const reasons = Object.entries(leftOut ?? {}).filter(([name]) => isAgentName(name));
      return {
        served: agents as string[],
        leftOut: new Map(
          reasons.map(([name, reason]) => [name, String(reason).slice(0, detailCharactersMax)]),
        ),
      };
    }
    throw this.#failure('does not list its agents: is this the console of a Logstrata server?');
  }

  async border(agent: string, knownTag: string | null): Promise<string> {
    const known = knownTag === null ? '' : `?known=${encodeURIComponent(knownTag)}`;
    const { body } = await this.#ask(`/api/border/${agent}${known}`, short);
    return body.toString();
  }

  async rows(question: WriterQuestion): Promise<RowsAnswer> {
    const { agent, tag, from, to, direction, limit, fields, predicates, schema, signal } = question;
    const parts = [
      `tag=${tag}`,
      `from=${formatCursor(from)}`,
      `to=${formatCursor(to)}`,
      `direction=${direction}`,
      `limit=${limit}`,
      `fields=${fields.join(',')}`,
      ...filterText(predicates, schema),
    ];
    const asked = { bytesMax: messageBytesMax, timeoutMs: farAskMsMax, signal };
    const { headers, body } = await this.#ask(`/api/rows/${agent}?${parts.join('&')}`, asked);
    const more = headers['logstrata-more'];
    if (more !== 'yes' && more !== 'no') throw this.#failure('does not say whether there are more rows');
    return { bytes: body, isCut: more === 'yes' };
  }

  async #ask(path: string, asked: Asked): Promise<Answer> {
    try {
      return await this.#askOnce(path, asked);
    } catch (error) {
      // The writer may close an idle connection at the moment it is reused. Then nothing was answered, so the request is repeated.
      if (!(error instanceof IdleConnectionError)) throw error;
      return this.#askOnce(path, asked);
    }
  }

  async #askOnce(path: string, { bytesMax, timeoutMs, signal }: Asked): Promise<Answer> {
    signal?.throwIfAborted();
    const { token } = this.options;
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const late = new AbortController();
    const why = this.#failure(`has not answered for ${timeoutMs / 1000} s`);
    const timer = setTimeout(() => late.abort(why), timeoutMs);
    const ended = AbortSignal.any([late.signal, signal ?? late.signal]);
    const { request: begin } = this.#isSecure ? https : http;
    const request = begin(`${this.address}${path}`, { agent: this.#agent, headers, signal: ended });
    // What fails after the response has begun is an error of the response as well.
    request.on('error', () => undefined);
    let isAnswered = false;
    try {
      request.end();
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      isAnswered = true;
      return await this.#read(response, bytesMax);
    } catch (error) {
      request.destroy();
      if (ended.aborted) throw ended.reason;
      const isReset = (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (isReset && request.reusedSocket && !isAnswered) throw new IdleConnectionError();
      throw this.#unreachable(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(response: http.IncomingMessage, bytesMax: number): Promise<Answer> {
    const { statusCode = 0, headers } = response;
    const isAnswer = statusCode === 200;
    const most = isAnswer ? bytesMax : problemBytesMax;
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of response as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > most) throw this.#failure(`answers ${statusCode} with more than ${most} bytes`);
      pieces.push(piece);
    }
    const body = Buffer.concat(pieces);
    if (isAnswer) return { headers, body };
    throw this.#refusal(statusCode, body);
  }

  #refusal(status: number, body: Buffer): LogstrataError {
    const { detail } = jsonOf(body) as { detail?: unknown };
    const said = typeof detail === 'string' ? `: ${detail.slice(0, detailCharactersMax)}` : '';
    if (status === 409) return new LogstrataError('conflict', `the writer ${this.address}${said}`);
    if (status === 504) return new LogstrataError('timeout', `the writer ${this.address}${said}`);
    const hint = status === 404 ? ' (it must be the console of a server that has its own archive)' : '';
    return this.#failure(`answers ${status}${said}${hint}`);
  }

  #failure(what: string): LogstrataError {
    return new LogstrataError('unavailable', `the writer ${this.address} ${what}`);
  }

  #unreachable(error: Error): Error {
    if (error instanceof LogstrataError) return error;
    const { code } = error as NodeJS.ErrnoException;
    const why = error.message === '' ? (code ?? error.name) : error.message;
    return new LogstrataError('unavailable', `the writer ${this.address} can't be reached: ${why}`, {
      cause: error,
    });
  }
}

/** Limits of requests with a short response. */
const short: Asked = { bytesMax: messageBytesMax, timeoutMs: connectMsMax };

/** The writer has closed a reused connection before it answered. */
class IdleConnectionError extends Error {}

/** Parses a body. Returns an empty object where it is not a JSON object. */
function jsonOf(body: Buffer): object {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
