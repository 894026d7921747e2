import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError, isLogstrataError } from '../core/errors.js';
import { comparePositions, type Position } from '../core/cursor.js';
import { attemptsMax, connectMsMax, farAskMsMax, retryMs, messageBytesMax } from '../core/limits.js';
import type { Field, Schema, Predicate } from '../core/schema.js';
import type { FarCopy, OrdinalRun } from '../store/manifest/manifest.js';
import type { RemoteRows } from '../store/reading/snapshot.js';
import {
  type FarSettings,
  FarFailure,
  openFarTransport,
  type FarStatement,
  type FarTransport,
} from './far-transport.js';
import {
  countedColumns,
  countedName,
  countsOf,
  countText,
  farGroupsMax,
  timesText,
  type FarCounted,
  type FarCountQuestion,
  columnOfField,
  cursorLiteral,
  numberOf,
  quotedName,
  textLiteral,
  tableName,
} from './far-sql.js';
import { readNative, type FarRecords } from './native-format.js';

/** A question to one shard: rows of certain copies between two positions, in one direction. */
export interface FarQuestion {
  readonly agent: string;
  readonly shard: number;
  readonly copies: readonly FarCopy[];
  /** First and last position, both inclusive. */
  readonly from: Position;
  readonly to: Position;
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
  /** SQL condition for the wanted rows; null for all. */
  readonly condition: string | null;
  /** The fields to return, under their column names in the table. */
  readonly schema: Schema;
  /** Positions of rows that must exist, ascending, if known. The answer is checked against them. */
  readonly expected?: readonly OrdinalRun[] | undefined;
}

/** Rows in ascending order of positions, whatever the direction: the first `limit` ones, or the last. */
export interface FarAnswer extends FarRecords {
  /** Whether there may be more rows after these (before these if `backward`). */
  readonly isCut: boolean;
  readonly bytes: number;
}

const textLine = 64 * 1024;

/** Limit for statements whose answer is a few lines. */
const smallAnswerBytesMax = 16 * 1024 * 1024;

/**
 * The servers of a far tier. Any replica of a shard may answer, but only if it has every row of the copies that are asked for, or returns
 * every row that is known to exist. If no replica can answer, the call throws `unavailable` with the reason of each.
 */
export class FarCluster {
  /** For each shard, the index of the replica that answered last. It is asked first. */
  readonly #preferred: number[];
  /** Requests to end abandoned queries that are under way. */
  readonly #killing = new Set<Promise<void>>();

  constructor(
    readonly settings: FarSettings,
    private readonly transport: FarTransport,
  ) {
    this.#preferred = settings.shards.map(() => 0);
  }

  static async open(settings: FarSettings): Promise<FarCluster> {
    return new FarCluster(settings, await openFarTransport(settings));
  }

  async close(): Promise<void> {
    await Promise.all(this.#killing);
    await this.transport.close();
  }

  /** The rows that a question asks for, as many as fit into an answer. */
  async ask(question: FarQuestion, signal?: AbortSignal): Promise<FarAnswer> {
    return this.anyReplica(question.shard, signal, async (url) => {
      if (question.expected !== undefined) {
        const answer = await this.#readRows(url, question, signal);
        if (hasExpected(question, answer)) return answer;
      }
      // The replica may have lacked rows, or may have received them since: check, then read again.
      await this.#assertWhole(url, question, signal);
      return this.#readRows(url, question, signal);
    });
  }

  async #readRows(url: string, question: FarQuestion, signal: AbortSignal | undefined): Promise<FarAnswer> {
    let { limit } = question;
    for (;;) {
      const sql = questionText(this.settings, { ...question, limit });
      // The limit bounds the block size as well, so that the answer is usually one block, which needs no copying.
      const settings = { wait_end_of_query: 1, max_block_size: limit, preferred_block_size_bytes: 0 };
      try {
        const bytes = await this.read(url, sql, { settings, signal });
        const names = question.schema.fields.map(columnOfField);
        const records = readNative(bytes, question.schema, names);
        return { ...records, isCut: records.batch.length >= limit, bytes: bytes.length };
      } catch (error) {
        if (!(error instanceof FarFailure) || error.kind !== 'long' || limit === 1) throw error;
        limit = Math.max(1, Math.floor(limit / 8));
      }
    }
  }

  /** Counts the matching rows, on a replica that has all rows of the copies. Returns null if they fall into too many groups for one answer. */
  async count(question: FarCountQuestion, signal?: AbortSignal): Promise<FarCounted | null> {
    const settings = {
      wait_end_of_query: 1,
      max_rows_to_group_by: farGroupsMax,
      group_by_overflow_mode: 'break',
    };
    return this.#ofWhole(question, signal, async (url) => {
      const sql = countText(this.settings, question);
      const bytes = await this.read(url, sql, { settings, signal }).catch((error: unknown) => {
        if (error instanceof FarFailure && error.kind === 'long') return null;
        throw error;
      });
      if (bytes === null) return null;
      const { schema, names } = countedColumns(question);
      const records = readNative(bytes, schema, names, countedName);
      if (records.batch.length >= farGroupsMax) return null;
      return { rows: countsOf(records), batch: records.batch, bytes: bytes.length };
    });
  }

  /** The first and the last time of the matching rows; null if none has a time. */
  async times(
    question: FarCountQuestion,
    field: Field,
    signal?: AbortSignal,
  ): Promise<readonly [bigint, bigint] | null> {
    return this.#ofWhole(question, signal, async (url) => {
      const [[min = '', max = ''] = []] = await this.lines(url, timesText(this.settings, question, field), {
        signal,
      });
      return min === '\\N' ? null : [BigInt(min), BigInt(max)];
    });
  }

  #ofWhole<T>(
    { agent, shard, units }: FarCountQuestion,
    signal: AbortSignal | undefined,
    ask: (url: string) => Promise<T>,
  ): Promise<T> {
    const copies = units.map(({ copy }) => copy);
    return this.anyReplica(shard, signal, async (url) => {
      await this.#assertWhole(url, { agent, copies }, signal);
      return ask(url);
    });
  }

  /**
   * Throws unless a server has all rows of the copies. Rows may be missing because its disk was lost, or because it has not caught up yet.
   * Rows are only ever removed together with their whole attempt, so rows that exist now still exist for the query that follows.
   */
  async #assertWhole(
    url: string,
    { agent, copies }: Pick<FarQuestion, 'agent' | 'copies'>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const counted = await this.partRows(url, agent, copies, signal);
    for (const { unit, attempt, rows } of copies) {
      const there = counted.get(attempt) ?? 0;
      if (there === rows) continue;
      const what = `it has ${there} of the ${rows} rows of unit ${unit} (attempt ${attempt}) of agent ${agent}`;
      throw new FarFailure('refused', url, what);
    }
  }

  /** What a server lacks of a copy, for messages; null where it has all rows. */
  async lackOf(url: string, agent: string, copy: FarCopy, signal?: AbortSignal): Promise<string | null> {
    const rows = (await this.partRows(url, agent, [copy], signal)).get(copy.attempt) ?? 0;
    return rows === copy.rows ? null : `it has ${rows} of ${copy.rows} rows`;
  }

  /** Number of rows of each attempt on one server, from its part metadata. */
  async partRows(
    url: string,
    agent: string,
    copies: readonly Pick<FarCopy, 'unit' | 'attempt'>[],
    signal?: AbortSignal,
  ): Promise<Map<string, number>> {
    const keys = new Map(copies.map((copy) => [partitionText(copy), copy.attempt]));
    const named = [...keys.keys()].map((key) => textLiteral(Buffer.from(key))).join(', ');
    const lines = await this.lines(
      url,
      `SELECT partition, sum(rows) FROM system.parts WHERE active AND ${ofTable(this.settings, agent)} ` +
        `AND partition IN (${named}) GROUP BY partition`,
      { signal },
    );
    const rows = new Map<string, number>();
    for (const [key, count] of lines) {
      const attempt = keys.get(key!.replaceAll(' ', ''));
      if (attempt !== undefined) rows.set(attempt, Number(count));
    }
    return rows;
  }

  /** Calls `ask` with the replicas of a shard, one after another, until one succeeds, in up to `attemptsMax` rounds. Throws `unavailable`. */
  async anyReplica<T>(
    shard: number,
    signal: AbortSignal | undefined,
    ask: (url: string) => Promise<T>,
  ): Promise<T> {
    const urls = this.urlsOf(shard);
    const failures = new Map<string, string>();
    for (let round = 0; round < attemptsMax; round++) {
      if (round > 0) await delay(retryMs * 2 ** round, undefined, { signal }).catch(() => undefined);
      for (let i = 0; i < urls.length; i++) {
        signal?.throwIfAborted();
        const replica = (this.#preferred[shard]! + i) % urls.length;
        const url = urls[replica]!;
        try {
          const answer = await ask(url);
          this.#preferred[shard] = replica;
          return answer;
        } catch (error) {
          signal?.throwIfAborted();
          if (!(error instanceof FarFailure) && !isLogstrataError(error)) throw error;
          failures.set(url, error.message);
        }
      }
    }
    const said = [...failures].map(([url, message]) => `${url}: ${message}`).join('; ');
    throw new LogstrataError(
      'unavailable',
      `the far tier can't answer: no replica of shard ${shard + 1} of ${this.settings.shards.length} answered (${said})`,
    );
  }

  /** The servers of a shard. Throws `unavailable` if the configuration does not have the shard. */
  urlsOf(shard: number): readonly string[] {
    const urls = this.settings.shards[shard];
    if (urls !== undefined) return urls;
    const message = `records are in shard ${shard + 1} of the far tier, but storage.far has only ${this.settings.shards.length}`;
    throw new LogstrataError('unavailable', message);
  }

  /** The lines of an answer, split into columns. */
  async lines(
    url: string,
    sql: string,
    options: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number } = {},
  ): Promise<string[][]> {
    const bytes = await this.read(url, `${sql} FORMAT TabSeparated`, options);
    const text = Buffer.from(bytes).toString();
    return text.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')]));
  }

  /** The answer to a query. If the answer is abandoned, the server is told to kill the query. */
  async read(
    url: string,
    sql: string,
    options: Pick<FarStatement, 'settings' | 'signal'> & { readonly timeoutMs?: number } = {},
  ): Promise<Uint8Array> {
    const { settings, signal, timeoutMs = farAskMsMax } = options;
    const queryId = `logstrata-${randomBytes(8).toString('hex')}`;
    try {
      const bounds = { bytesMax: messageBytesMax, timeoutMs };
      return await this.transport.ask(url, { sql, queryId, settings, signal, ...bounds });
    } catch (error) {
      if (!(error instanceof FarFailure) || error.kind === 'long') this.#kill(url, queryId);
      throw error;
    }
  }

  /** Runs a statement on one server. */
  async command(
    url: string,
    sql: string,
    options: { body?: Uint8Array; timeoutMs?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    const { timeoutMs = farAskMsMax, ...rest } = options;
    await this.transport.ask(url, { sql, timeoutMs, bytesMax: smallAnswerBytesMax, ...rest });
  }

  #kill(url: string, queryId: string): void {
    const sql = `KILL QUERY WHERE query_id = ${textLiteral(Buffer.from(queryId))} ASYNC`;
    const killing: Promise<void> = this.transport
      .ask(url, { sql, bytesMax: textLine, timeoutMs: connectMsMax })
      .then(
        () => undefined,
        // Ignored: an unreachable server ends a query by itself when nobody reads its answer.
        () => undefined,
      )
      .finally(() => this.#killing.delete(killing));
    this.#killing.add(killing);
  }
}

/** An attempt's partition, as servers show it in their system tables. */
export function partitionText({ unit, attempt }: Pick<FarCopy, 'unit' | 'attempt'>): string {
  return `(${numberOf(unit)},${numberOf(attempt)})`;
}

/** SQL condition that selects an agent's table in the system tables. */
export function ofTable({ database }: FarSettings, agent: string): string {
  const [ofDatabase, ofAgent] = [database, agent].map((name) => textLiteral(Buffer.from(name)));
  return `database = ${ofDatabase} AND table = ${ofAgent}`;
}

/** Whether an answer has every expected row within the range of positions that it covers. */
export function hasExpected(
  { expected = [], from, to, direction }: Pick<FarQuestion, 'expected' | 'from' | 'to' | 'direction'>,
  { partitions, ordinals, isCut }: Pick<FarAnswer, 'partitions' | 'ordinals' | 'isCut'>,
): boolean {
  const { length } = ordinals;
  const positionOf = (row: number): Position => ({ partition: partitions[row]!, ordinal: ordinals[row]! });
  const least = isCut && direction === 'backward' ? positionOf(0) : from;
  const greatest = isCut && direction === 'forward' ? positionOf(length - 1) : to;
  let row = 0;
  for (const { partition, firstOrdinal, rows } of expected) {
    if (partition < least.partition || partition > greatest.partition) continue;
    const first = partition === least.partition ? Math.max(firstOrdinal, least.ordinal) : firstOrdinal;
    const end = firstOrdinal + rows - 1;
    const last = partition === greatest.partition ? Math.min(end, greatest.ordinal) : end;
    if (first > last) continue;
    const start = { partition, ordinal: first };
    while (row < length && comparePositions(positionOf(row), start) < 0) row++;
    const lastRow = row + last - first;
    // Positions ascend and are unique. So if the last row of the run is at the expected index, no row between is missing.
    if (lastRow >= length || comparePositions(positionOf(row), start) !== 0) return false;
    if (comparePositions(positionOf(lastRow), { partition, ordinal: last }) !== 0) return false;
    row = lastRow + 1;
  }
  return true;
}

/** The SQL statement of a question. */
export function questionText(settings: FarSettings, question: FarQuestion): string {
  const { agent, copies, from, to, direction, limit, condition, schema } = question;
  const columns = ['_cursor', ...schema.fields.map((field) => quotedName(columnOfField(field)))].join(', ');
  const conditions = [
    `_attempt IN (${copies.map(({ attempt }) => numberOf(attempt)).join(', ')})`,
    `_cursor >= ${cursorLiteral(from)}`,
    `_cursor <= ${cursorLiteral(to)}`,
    ...(condition === null ? [] : [condition]),
  ];
  const rows = `SELECT ${columns} FROM ${tableName(settings, agent)} WHERE ${conditions.join(' AND ')}`;
  const chosen =
    direction === 'forward'
      ? `${rows} ORDER BY _cursor LIMIT ${limit}`
      : `SELECT * FROM (${rows} ORDER BY _cursor DESC LIMIT ${limit}) ORDER BY _cursor`;
  return `${chosen} FORMAT Native`;
}

/** A question, with the original filters. `condition` is the part of them that a cluster can evaluate. */
export interface SourceQuestion extends FarQuestion {
  readonly predicates: readonly Predicate[];
  /** The schema that the filters refer to by field index. */
  readonly shown: Schema;
}

/** A source of rows that are in no local file. */
export interface FarSource {
  /** The rows that a question asks for, as many as fit into an answer. */
  ask(question: SourceQuestion, signal?: AbortSignal): Promise<FarAnswer>;
  /** Counts the matching rows, if the source can count; null if they have too many distinct values for one answer. */
  count?(question: FarCountQuestion, signal?: AbortSignal): Promise<FarCounted | null>;
  /** The first and the last time of the matching rows; null if none has a time. */
  times?(
    question: FarCountQuestion,
    field: Field,
    signal?: AbortSignal,
  ): Promise<readonly [bigint, bigint] | null>;
  /** The error where a range without filters has fewer rows than it should; without it, that of a cluster that lacks rows. */
  lacking?(): LogstrataError;
}

/** The source of rows. Throws `unavailable` where none is configured. */
export type SourceOf = (rows: RemoteRows) => FarSource;

/** The error for a range without filters of which a cluster has returned too few rows. */
export function lackingRows(found: number, { partition, firstOrdinal, rows }: OrdinalRun): LogstrataError {
  return new LogstrataError(
    'unavailable',
    `the far tier has only ${found} of the ${rows} records from ordinal ${firstOrdinal} of hour ${partition} on`,
  );
}
