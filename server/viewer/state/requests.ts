import { withLongIntegersQuoted } from './record.js';
import { FailureError, failureOf, failureOfResponse, isAborted } from './failure.js';
import { tokenHeaders, type FirstRequests, agentsPath, fieldsPath } from './first-requests.js';
import { unitedFields, type Field } from './field.js';
import { agentNames, type NumberLine, requestPath, type Question } from './view.js';

/** Options of a request besides its path. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends requests, with the token of the user, to the server that the page was loaded from. */
export class ServerClient {
  /** @param first requests that were sent before there was a server */
  constructor(
    private readonly token: () => string | undefined,
    private readonly first?: FirstRequests,
  ) {}

  /** Sends a GET request. Throws a FailureError for any status but success; rethrows an abort. */
  async get(path: string, { signal, headers }: RequestOptions = {}): Promise<Response> {
    const token = this.token();
    let response: Response;
    try {
      response = await (this.first?.take(path) ??
        fetch(path, {
          headers: { ...headers, ...tokenHeaders(token) },
          signal: signal ?? null,
          cache: 'no-store',
        }));
    } catch (error) {
      if (isAborted(error)) throw error;
      throw new FailureError(
        failureOf('unreachable', error instanceof Error ? error.message : String(error)),
      );
    }
    if (!response.ok) throw new FailureError(await failureOfResponse(response, token !== undefined));
    return response;
  }

  /** The JSON body of a response. Integers that a double can't represent exactly become strings with all digits. */
  async getJson(path: string, options: RequestOptions = {}): Promise<unknown> {
    const response = await this.get(path, options);
    const text = await readBody(() => response.text());
    return JSON.parse(withLongIntegersQuoted(text)) as unknown;
  }
}

/** Reads a body, or a part of one. An interrupted body is a failure of kind `broken`, as the response had begun. */
export async function readBody<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new FailureError(failureOf('broken', error instanceof Error ? error.message : String(error)));
  }
}

/** The names of the agents that the token may read, in alphabetical order. Throws a FailureError. */
export async function askAgents(server: ServerClient, signal?: AbortSignal): Promise<readonly string[]> {
  const { agents } = (await server.getJson(agentsPath, { signal })) as {
    readonly agents: readonly string[];
  };
  return agents;
}

/** The fields of an agent in the order of its schema, or those of several, as `View.agent` names them. Throws a FailureError. */
export async function askFields(
  server: ServerClient,
  agents: string,
  signal?: AbortSignal,
): Promise<readonly Field[]> {
  const lists = await Promise.all(
    agentNames(agents).map(async (agent) => {
      const answer = (await server.getJson(fieldsPath(agent), { signal })) as {
        readonly schema: readonly Field[];
      };
      return { agent, fields: answer.schema };
    }),
  );
  return lists.length === 1 ? lists[0]!.fields : unitedFields(lists);
}

/** A value, and the number of records that have it. */
export interface ValueCount {
  readonly value: string | number | boolean;
  readonly count: number;
}

/** The most frequent values of a field. */
export interface ValueCounts {
  readonly field: string;
  readonly top: readonly ValueCount[];
  /** Number of records with another value. */
  readonly other: number;
  /** Number of records without a value. */
  readonly nulls: number;
}

/** The records of one step of time. Times are milliseconds since the epoch; `until` is exclusive. */
export interface TimeBucket {
  readonly from: number;
  readonly until: number;
  readonly count: number;
  /** The counts of the values in `values.top`, in the same order. */
  readonly values?: readonly number[];
  /** Functions of the numbers of a field: by the field, then by the function. An integer of many digits is a text. */
  readonly of?: Readonly<Record<string, Readonly<Record<string, number | string | null>>>>;
}

/** The response of the count route. Steps without records are left out. */
export interface Counts {
  readonly count: number;
  readonly time?: { readonly nulls: number; readonly buckets: readonly TimeBucket[] };
  readonly values?: ValueCounts;
}

/** What to count by. */
export interface CountAsk {
  /** A time field and a step, such as `time:1h`. */
  readonly time?: string | undefined;
  /** A field, whose most frequent values are counted. */
  readonly field?: string | undefined;
  readonly top?: number | undefined;
  readonly line?: NumberLine | undefined;
  /** The time zone of the steps. */
  readonly zone?: string | undefined;
}

/** Counts the records that match a question. Throws a FailureError. */
export async function askCounts(
  server: ServerClient,
  question: Question,
  { time, field, top, line, zone }: CountAsk,
  signal: AbortSignal,
): Promise<Counts> {
  const more: (readonly [string, string])[] = [];
  if (time !== undefined) more.push(['by', time]);
  if (field !== undefined) more.push(['by', field]);
  if (field !== undefined && top !== undefined) more.push(['top', String(top)]);
  if (line !== undefined) more.push(['of', line.field], ['fn', line.fn]);
  if (time !== undefined && zone !== undefined) more.push(['zone', zone]);
  return (await server.getJson(requestPath('count', question, more), { signal })) as Counts;
}
