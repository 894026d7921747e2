import type { FarAnswer, FarSource, SourceQuestion } from './far-cluster.js';
import { FarRows } from './far-reader.js';
import { notConfigured } from '../scan/tiered-finder.js';
import type { AgentStore } from '../archive/agent-store.js';
import { columnOfField } from './far-sql.js';
import { cursorsOf, readNative, fieldColumn, nativeBlock, unsignedColumn } from './native-format.js';
import {
  remoteRowGroup,
  rowsOfCopy,
  type RemoteRows,
  type RowGroup,
  type Snapshot,
  type SnapshotRun,
} from '../store/reading/snapshot.js';
import { StateChanges } from '../store/reading/state-changes.js';
import { compareRuns } from '../store/manifest/run-list.js';
import { isLogstrataError, LogstrataError } from '../core/errors.js';
import { SharedWork } from '../core/waiting.js';
import type { Schema, Predicate } from '../core/schema.js';
import { ascending, decodeBorder, schemaTag, type Border } from './border.js';
import type { PlainColumn } from '../columns/column.js';
import { plainColumn } from '../columns/take.js';
import type { SelectedRows } from '../scan/selected-rows.js';
import type { Position } from '../core/cursor.js';
import { farAnswerBytes, rowGroupRowsMax } from '../core/limits.js';

/** Rows that only the writer has, which ask it themselves. */
interface NearRows extends RemoteRows, FarSource {
  readonly copy: null;
}

/**
 * What a reader knows of one agent: the newest border that the writer has sent, and the snapshot made from it. It asks the
 * writer for a new border when the known one is older than the configured lag.
 */
export class ReaderState {
  readonly changes = new StateChanges();
  /** Reads the rows that are near the writer from there, and the others from the cluster. */
  readonly remote: FarRows;
  #border: Border | null = null;
  #schema: Schema = { fields: [] };
  #tag = '';
  #runs: readonly SnapshotRun[] = [];
  /** When the known border was requested: it was current then or later. `-Infinity` when there is none, or it is outdated. */
  #asOfMs = -Infinity;
  readonly #asking = new SharedWork(() => this.#ask());
  /** When the last request was sent. */
  #askedMs = -Infinity;
  /** Why the last request for a border failed; null when it succeeded. */
  #failure: LogstrataError | null = null;

  /**
   * @param lagMsMax how old a border may be when a query uses it, in milliseconds
   * @param now a clock that never goes back, in milliseconds
   */
  constructor(
    readonly agent: string,
    private readonly writer: WriterClient,
    cluster: FarSource | undefined,
    private readonly lagMsMax: number,
    private readonly now: () => number,
  ) {
    this.remote = new FarRows((rows) => {
      // Only this class makes rows without a copy.
      const source = rows.copy === null ? (rows as NearRows) : cluster;
      if (source === undefined) throw notConfigured(agent);
      return source;
    });
  }

  /** The agent's fields; empty before the first request. Throws the last failure while no border has arrived. */
  get schema(): Schema {
    if (this.#border === null && this.#failure !== null) throw this.#failure;
    return this.#schema;
  }

  get border(): Border | null {
    return this.#border;
  }

  /** Milliseconds since the known border was requested; infinite when there is none, or it is outdated. */
  get ageMs(): number {
    return this.now() - this.#asOfMs;
  }

  snapshot(): Snapshot {
    return { schema: this.#schema, runs: this.#runs, release: () => {} };
  }

  /** Requests a new border when the known one is too old. Concurrent callers share one request. */
  async refresh(): Promise<void> {
    const sinceMs = this.now() - this.lagMsMax;
    while (this.#asOfMs < sinceMs) {
      // A request that was sent before `sinceMs` may bring a border that is too old, or fail: then another one is sent after it.
      if (this.#asking.isRunning && this.#askedMs < sinceMs) await this.#asking.settled();
      else return this.#asking.run();
    }
  }

  async #ask(): Promise<void> {
    const sinceMs = this.now();
    this.#askedMs = sinceMs;
    try {
      const known = this.#border?.far ?? null;
      const text = await this.writer.border(this.agent, known?.tag ?? null);
      this.#take(decodeBorder(text, known));
      this.#asOfMs = sinceMs;
      this.#failure = null;
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      this.#failure = error.code === 'damaged' ? this.#nonsense(error) : error;
      throw this.#failure;
    }
  }

  #take(border: Border): void {
    if (border.agent !== this.agent)
      throw new LogstrataError(
        'unavailable',
        `the writer ${this.writer.address} answered for agent ${border.agent} instead of ${this.agent}`,
      );
    const tag = schemaTag(border.schema);
    // Queries refer to fields by index, for one schema object. The object is kept while the fields stay the same.
    const schema = tag === this.#tag ? this.#schema : border.schema;
    this.#runs = this.#runsOf(border, schema, tag);
    this.#schema = schema;
    this.#tag = tag;
    this.#border = border;
    this.changes.tell();
  }

  #runsOf(
    { far, near, nearRowBytes, nearHides }: Border,
    schema: Schema,
    tag: string,
  ): readonly SnapshotRun[] {
    const { agent } = this;
    const runs: SnapshotRun[] = [];
    const storedOf = new Map(far.schemas.map(({ version, schema }) => [version, schema]));
    for (const { runs: own, copy, schemaVersion, timeMinMs, timeMaxMs } of far.units) {
      const rows = rowsOfCopy(agent, copy, schemaVersion, storedOf.get(schemaVersion)!);
      const rowGroup = remoteRowGroup(
        { file: `far/${copy.unit}`, rows: copy.rows, timeMinMs, timeMaxMs },
        rows,
      );
      for (const run of own) runs.push({ ...run, rowGroup });
    }
    runs.sort(compareRuns);
    let next = 0;
    let stretch = 0;
    let rowGroup: RowGroup | null = null;
    const all: SnapshotRun[] = [];
    for (const run of near) {
      while (next < runs.length && compareRuns(runs[next]!, run) < 0) {
        all.push(runs[next++]!);
        rowGroup = null;
      }
      rowGroup ??= this.#nearGroup(stretch++, schema, tag, nearRowBytes, nearHides);
      all.push({ ...run, firstRow: 0, rowGroup });
    }
    for (; next < runs.length; next++) all.push(runs[next]!);
    return ascending(all);
  }

  /**
   * A row group for one stretch: near records with no record of the far tier between them. A request for a range of the stretch
   * can only return these records and newer ones, even if the writer has shipped some of them to the far tier since.
   */
  #nearGroup(stretch: number, stored: Schema, tag: string, rowBytes: number, hides: boolean): RowGroup {
    const { agent } = this;
    const rows: NearRows = {
      agent,
      copy: null,
      stored,
      rowBytes,
      group: `near ${stretch}`,
      ask: (question, signal) => this.#askRows(question, tag, signal),
      lacking: () =>
        this.#outdated(`the writer no longer has all records of agent ${agent} that it had before`),
    };
    return remoteRowGroup({ file: 'near', rows: 0, timeMinMs: null, timeMaxMs: null }, rows, hides);
  }

  async #askRows(question: SourceQuestion, tag: string, signal: AbortSignal | undefined): Promise<FarAnswer> {
    const { agent, from, to, direction, limit, predicates, schema, shown } = question;
    const fields = schema.fields.map(({ name }) => shown.fields.findIndex((field) => field.name === name));
    try {
      const asked = { agent, tag, schema: shown, from, to, direction, limit, predicates, fields, signal };
      const { bytes, isCut } = await this.writer.rows(asked);
      const records = readNative(bytes, schema, schema.fields.map(columnOfField));
      return { ...records, isCut, bytes: bytes.length };
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      if (error.code === 'conflict') throw this.#outdated(error.message);
      throw error.code === 'io' ? this.#nonsense(error) : error;
    }
  }

  /** The error for an answer of the writer that can't be read. It is `unavailable`, not `damaged`: no record is damaged. */
  #nonsense(cause: LogstrataError): LogstrataError {
    return new LogstrataError('unavailable', `the writer ${this.writer.address}: ${cause.message}`, {
      cause,
    });
  }

  /** Marks the border as outdated, and returns the error that makes the query continue with a new one. */
  #outdated(why: string): LogstrataError {
    this.#asOfMs = -Infinity;
    return new LogstrataError('not_found', why);
  }
}

/** A reader's request for the matching rows between two positions. `direction` says from which end the writer begins. */
export interface RowsQuestion {
  /** The first position of the range. Both `from` and `to` are included. */
  readonly from: Position;
  readonly to: Position;
  readonly direction: 'forward' | 'backward';
  /** Rows at most. A value above `rowGroupRowsMax` counts as `rowGroupRowsMax`. */
  readonly limit: number;
  readonly predicates: readonly Predicate[];
  /** Indexes of the requested fields in the schema, ascending. */
  readonly fields: readonly number[];
}

/** The first (forward) or last (backward) matching rows, in ClickHouse's `Native` format. They ascend in both directions. */
export interface RowsAnswer {
  readonly bytes: Uint8Array;
  /** Whether the range may have more matching rows, beyond these in the direction of the request. */
  readonly isCut: boolean;
}

/** Some rows of an answer, as one `Native` block. */
interface Block {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/**
 * Answers a reader's request for rows. An answer has a limit of bytes and rows; the reader sends another request for the rest.
 * The writer reads the rows from its own files or from the far tier, wherever they are by now. Throws as a scan does.
 */
export async function rowsBetween(
  store: AgentStore,
  question: RowsQuestion,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<RowsAnswer> {
  const { schema } = store;
  const { from, to, direction, predicates, fields } = question;
  const limit = Math.min(question.limit, rowGroupRowsMax);
  const isForward = direction === 'forward';
  const query = {
    after: { partition: from.partition, ordinal: from.ordinal - 1 },
    before: { partition: to.partition, ordinal: to.ordinal + 1 },
    limit,
    predicates,
    form: { format: 'jsonl' as const, fields },
    ...(isForward ? {} : { last: true as const }),
  };
  const kept: Block[] = [];
  let bytes = 0;
  let rows = 0;
  let isCut = false;
  for await (const selected of store.selectRows(query, { signal }, schema)) {
    for (const block of blocksOf(selected, fields, schema)) {
      // When an answer is full, the rows nearest to the end that the request begins at are kept.
      if (isForward && bytes >= farAnswerBytes) isCut = true;
      else {
        kept.push(block);
        bytes += block.bytes.length;
        rows += block.rows;
      }
    }
    while (!isForward && kept.length > 1 && bytes - kept[0]!.bytes.length >= farAnswerBytes) {
      const gone = kept.shift()!;
      bytes -= gone.bytes.length;
      rows -= gone.rows;
      isCut = true;
    }
    if (isCut && isForward) break;
  }
  return { bytes: Buffer.concat(kept.map((block) => block.bytes)), isCut: isCut || rows >= limit };
}

/** Encodes the rows as blocks of at most about a quarter of an answer each, estimated by the average size of a row. */
function* blocksOf(
  { batch, runs }: SelectedRows,
  fields: readonly number[],
  schema: Schema,
): Generator<Block> {
  const cursors = cursorsOf(runs, batch.length);
  const columns = batch.columns.map(plainColumn);
  const rowBytes = Math.max(1, columns.reduce((sum, column) => sum + bytesOf(column), 0) / batch.length);
  const blockRows = Math.max(1, Math.floor(farAnswerBytes / 4 / rowBytes));
  for (let from = 0; from < batch.length; from += blockRows) {
    const to = Math.min(batch.length, from + blockRows);
    const written = fields.map((field, i) => {
      const { type } = schema.fields[field]!;
      return fieldColumn(columnOfField(schema.fields[field]!), type, columns[i]!, from, to);
    });
    const positions = unsignedColumn('_cursor', cursors.slice(from, to));
    yield { bytes: nativeBlock([positions, ...written], to - from), rows: to - from };
  }
}

function bytesOf(column: PlainColumn): number {
  return column.kind === 'bytes' ? column.offsets.at(-1)! - column.offsets[0]! : column.values.byteLength;
}

/** A request for an agent's rows, with the schema that it was written for. */
export interface WriterQuestion extends RowsQuestion {
  readonly agent: string;
  /** The schema that `fields` and `predicates` refer to by index. */
  readonly schema: Schema;
  /** The hash of that schema (`schemaTag`). The request fails with `conflict` when the writer has another schema by now. */
  readonly tag: string;
  readonly signal?: AbortSignal | undefined;
}

/** The agents of a writer. */
export interface WriterAgents {
  /** Names of the agents that the writer answers for. */
  readonly served: readonly string[];
  /** By name, why the writer has left out an agent. */
  readonly leftOut: ReadonlyMap<string, string>;
}

/**
 * A reader's connection to the writer on another machine. Each method throws `unavailable`, with the writer's address, when the
 * writer can't be reached or refuses.
 */
export interface WriterClient {
  /** The writer's address, for messages. */
  readonly address: string;
  agents(): Promise<WriterAgents>;
  /** The agent's current border, encoded by `encodeBorder`. `knownTag` is the tag of the units that the reader has; null for none. */
  border(agent: string, knownTag: string | null): Promise<string>;
  rows(question: WriterQuestion): Promise<RowsAnswer>;
}
