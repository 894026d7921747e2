import { join } from 'node:path';
import { readAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { loadFiles } from '../../agents/load/load.js';
import {
  openArchive,
  WorkerPool,
  type AgentStore,
  type Archive,
  type CountedValue,
  type Counts,
} from '../../engine/index.js';
import { parseCountRequest } from '../../server/http/count-request.js';
import { parseQueryRequest } from '../../server/http/query-request.js';
import { packageRoot, packageVersion } from '../../server/cli/options.js';
import type { Anchor, Counting, Filter, Question } from '../question.js';
import type { Side, SideOptions } from '../side.js';
import { folderBytes } from './folder-size.js';

const timezone = 'UTC';
/** The limits of the query route. */
const limitMax = 1_000_000;
const limitDefault = 100;
/** The cursor before all records. */
const cursorZero = '0000000000000000';

/** Logstrata in this process: the engine, behind the parser of the route's query string. */
export class LogstrataSide implements Side {
  private readonly definition: AgentDefinition;
  private readonly cursors = new Map<number, string>();
  /** Kept when the archive is closed and reopened: a server whose caches are cold has its threads as well. */
  private readonly workers: WorkerPool;
  private archive: Archive | undefined;
  private store: AgentStore | undefined;

  constructor(private readonly options: SideOptions) {
    const agent = options.side === 'logstrata-unindexed' ? `${options.set.name}_unindexed` : options.set.name;
    this.workers = new WorkerPool(options.threads);
    this.definition = readAgentFile(join(packageRoot(), 'bench/agents', `${agent}.yaml`));
  }

  version(): Promise<string> {
    return Promise.resolve(`Logstrata ${packageVersion()}`);
  }

  async load(): Promise<void> {
    await this.open();
    const summary = await loadFiles({
      store: this.opened(),
      definition: this.definition,
      files: [this.options.set.path],
      codec: this.options.side === 'logstrata-zstd' ? 'zstd' : 'lz4',
      timezone,
      now: Date.now,
      workers: this.workers,
    });
    await this.close();
    const failure = summary.stopped ?? summary.files[0]?.error;
    if (failure instanceof Error) throw failure;
    if (summary.records !== this.options.set.rows) {
      throw new Error(
        `${summary.records} records loaded, ${summary.rejected} rejected, of ${this.options.set.rows}`,
      );
    }
  }

  bytesOnDisk(): Promise<number> {
    return folderBytes(this.options.folder);
  }

  async open(): Promise<void> {
    // Opened as the writer, as in a server: a reader would look for a newer manifest before each answer.
    this.archive = await openArchive(this.options.folder, {
      mode: 'write',
      role: 'bench',
      cacheBytes: this.options.cacheBytes,
      workers: this.workers,
    });
    this.store = await this.archive.agent(this.definition.name, this.definition.schema);
  }

  answers(question: Question): boolean {
    const isUnindexed = question.isUnindexed === true;
    // The ZSTD store differs only in the cost of decoding, so it is asked the questions that have to decode.
    if (this.options.side === 'logstrata-zstd') return question.isCold === true && !isUnindexed;
    return isUnindexed === (this.options.side === 'logstrata-unindexed');
  }

  async ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void> {
    if (question.counting !== undefined) return this.count(question, question.counting, take);
    const after = await this.cursorOf(question.after);
    const before = await this.cursorOf(question.before);
    return this.answer(rawQuery(question, after, before), take);
  }

  async close(): Promise<void> {
    await this.archive?.close();
    this.archive = undefined;
    this.store = undefined;
  }

  protected opened(): AgentStore {
    if (this.store === undefined) throw new Error('the archive is not open');
    return this.store;
  }

  private async answer(raw: string, take: ((piece: Uint8Array) => void) | undefined): Promise<void> {
    const { schema } = this.definition;
    const query = parseQueryRequest(raw, { schema, now: Date.now(), timezone, limitMax, limitDefault });
    const scan = await this.opened().scan(query, { lends: true });
    for await (const piece of scan.lines) take?.(piece);
  }

  private async count(
    { filters }: Question,
    { byHour, column, top, number }: Counting,
    take: ((piece: string) => void) | undefined,
  ): Promise<void> {
    const by = [
      ...(byHour ? ['by=time:1h'] : []),
      ...(column === undefined ? [] : [`by=${column}`, `top=${top}`]),
      ...(number === undefined ? [] : [`of=${number.column}`, `fn=${number.fn}`]),
    ];
    const raw = [...filters.flatMap(filterPieces), ...by].join('&');
    const request = parseCountRequest(raw, { schema: this.definition.schema, now: Date.now(), timezone });
    const counts = await this.opened().count(request.query);
    take?.(countLines(counts).join(''));
  }

  /** The `_cursor` of the record that a question pages from. It is looked up once, before times are measured. */
  private async cursorOf(anchor: Anchor | undefined): Promise<string | undefined> {
    if (anchor === undefined) return undefined;
    if (anchor.key === null) return cursorZero;
    const known = this.cursors.get(anchor.seq);
    if (known !== undefined) return known;
    const { column, value } = anchor.key;
    let text = '';
    await this.answer(`${filterPieces(anchor.key).join('&')}&limit=2`, (piece) => {
      text += Buffer.from(piece).toString('utf8');
    });
    const found = [...text.matchAll(/"_cursor":"([0-9a-f]{16})"/g)];
    if (found.length !== 1)
      throw new Error(`${found.length} records have ${column} ${String(value)}, not one`);
    const cursor = found[0]![1]!;
    this.cursors.set(anchor.seq, cursor);
    return cursor;
  }
}

/** The lines of a counting answer: per hour, per value, or per value and hour. */
function countLines({ count, time, values }: Counts): string[] {
  const line = (members: Record<string, CountedValue>): string =>
    `${JSON.stringify(members, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))}\n`;
  if (time === undefined && values === undefined) return [line({ count })];
  if (time === undefined) return values!.top.map((one) => line({ value: one.value, count: one.count }));
  if (values === undefined)
    return time.buckets.map(({ from, count: each }) => line({ hour: from, count: each }));
  const columns = values.top.map(({ value }, i) => ({ value, i }));
  columns.sort((a, b) => (a.value < b.value ? -1 : 1));
  return time.buckets.flatMap(({ from, values: cells }) =>
    columns
      .filter(({ i }) => cells![i]! > 0)
      .map(({ value, i }) => line({ hour: from, value, count: cells![i]! })),
  );
}

/** A filter as parameters of the query route, one per value. */
function filterPieces({ column, op, value }: Filter): string[] {
  const values = typeof value === 'object' ? value : [value];
  return values.map((each) => `${column}__${op}=${encodeURIComponent(each)}`);
}

/** A question as a query string. */
export function rawQuery(question: Question, after?: string, before?: string): string {
  const pieces = question.filters.flatMap(filterPieces);
  const members = (question.any ?? []).map(({ column, op, value }) => `${column}__${op}=${String(value)}`);
  pieces.push(...members.map((member) => `any=${encodeURIComponent(member)}`));
  pieces.push(`limit=${question.limit}`);
  if (after !== undefined) pieces.push(`after=${after}`);
  if (before !== undefined) pieces.push(`before=${before}`);
  return pieces.join('&');
}
