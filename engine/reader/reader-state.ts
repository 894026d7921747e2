import type { FarAnswer } from '../store/far/far-cluster.js';
import type { FarRows, FarSource, SourceQuestion } from '../store/far/far-rows.js';
import { columnOfField } from '../store/far/far-sql.js';
import { readNative } from '../store/far/native-reader.js';
import type { OrdinalRun } from '../store/manifest/manifest.js';
import { farRowGroup, rowsOfCopy } from '../store/reading/far-row-group.js';
import type { RowGroup, Snapshot, SnapshotRun } from '../store/reading/snapshot.js';
import { StateChanges } from '../store/reading/state-changes.js';
import { compareByPosition } from '../store/runs/run-list.js';
import { isLogstrataError, LogstrataError } from '../terms/errors.js';
import type { Schema } from '../terms/schema.js';
import { ascending, decodeBorder, schemaTag, type Border } from './border.js';
import type { WriterDoor } from './writer-door.js';

/**
 * What a reader knows of one agent: the newest border that the writer has sent, and the snapshot made from it. It asks the
 * writer for a new border when the known one is older than the configured lag.
 */
export class ReaderState {
  readonly agent: string;
  readonly changes = new StateChanges();
  readonly #door: WriterDoor;
  readonly #cluster: FarSource | undefined;
  readonly #lagMsMax: number;
  readonly #now: () => number;
  #border: Border | null = null;
  #schema: Schema = { fields: [] };
  #tag = '';
  #runs: readonly SnapshotRun[] = [];
  /** When the known border was requested: it was current then or later. `-Infinity` when there is none, or it is outdated. */
  #asOfMs = -Infinity;
  #asking: { readonly sinceMs: number; readonly done: Promise<void> } | null = null;
  /** Why the last request for a border failed; null when it succeeded. */
  #failure: LogstrataError | null = null;

  /**
   * @param lagMsMax how old a border may be when a query uses it, in milliseconds
   * @param now a clock that never goes back, in milliseconds
   */
  constructor(
    agent: string,
    door: WriterDoor,
    cluster: FarSource | undefined,
    lagMsMax: number,
    now: () => number,
  ) {
    this.agent = agent;
    this.#door = door;
    this.#cluster = cluster;
    this.#lagMsMax = lagMsMax;
    this.#now = now;
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
    return this.#now() - this.#asOfMs;
  }

  get failure(): LogstrataError | null {
    return this.#failure;
  }

  snapshot(): Snapshot {
    return { schema: this.#schema, runs: this.#runs, release: () => {} };
  }

  /** Requests a new border when the known one is too old. Concurrent callers share one request. */
  async refresh(): Promise<void> {
    const sinceMs = this.#now() - this.#lagMsMax;
    while (this.#asOfMs < sinceMs) {
      // A request that was sent before `sinceMs` may bring a border that is too old: then another one is sent after it.
      this.#asking ??= this.#ask();
      const { done, sinceMs: askedMs } = this.#asking;
      if (askedMs >= sinceMs) return done;
      await done.catch(() => undefined);
    }
  }

  #ask(): { readonly sinceMs: number; readonly done: Promise<void> } {
    const sinceMs = this.#now();
    const done = this.#askAt(sinceMs).finally(() => {
      this.#asking = null;
    });
    return { sinceMs, done };
  }

  async #askAt(sinceMs: number): Promise<void> {
    try {
      const known = this.#border?.far ?? null;
      const text = await this.#door.border(this.agent, known?.tag ?? null);
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
        `the writer ${this.#door.address} answered for agent ${border.agent} instead of ${this.agent}`,
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

  #runsOf({ far, near, nearRowBytes }: Border, schema: Schema, tag: string): readonly SnapshotRun[] {
    const { agent } = this;
    const runs: SnapshotRun[] = [];
    const storedOf = new Map(far.schemas.map(({ version, schema }) => [version, schema]));
    for (const { runs: own, copy, schemaVersion, timeMinMs, timeMaxMs } of far.units) {
      const rows = rowsOfCopy(agent, copy, schemaVersion, storedOf.get(schemaVersion)!, this.#cluster);
      const rowGroup = farRowGroup({ file: `far/${copy.unit}`, rows: copy.rows, timeMinMs, timeMaxMs }, rows);
      for (const run of own) runs.push({ ...run, rowGroup });
    }
    runs.sort(compareByPosition);
    let next = 0;
    let stretch = 0;
    let rowGroup: RowGroup | null = null;
    const all: SnapshotRun[] = [];
    for (const run of near) {
      while (next < runs.length && isBefore(runs[next]!, run)) {
        all.push(runs[next++]!);
        rowGroup = null;
      }
      rowGroup ??= this.#nearGroup(stretch++, schema, tag, nearRowBytes);
      all.push({ ...run, firstRow: 0, rowGroup });
    }
    for (; next < runs.length; next++) all.push(runs[next]!);
    return ascending(all);
  }

  /**
   * A row group for one stretch: near records with no record of the far tier between them. A request for a range of the stretch
   * can only return these records and newer ones, even if the writer has shipped some of them to the far tier since.
   */
  #nearGroup(stretch: number, stored: Schema, tag: string, rowBytes: number): RowGroup {
    const { agent } = this;
    const rows: FarRows = {
      agent,
      copy: null,
      stored,
      rowBytes,
      group: `near ${stretch}`,
      source: () => ({ ask: (question, signal) => this.#askRows(question, tag, signal) }),
      lacking: () =>
        this.#outdated(`the writer no longer has all records of agent ${agent} that it had before`),
    };
    return farRowGroup({ file: 'near', rows: 0, timeMinMs: null, timeMaxMs: null }, rows);
  }

  async #askRows(question: SourceQuestion, tag: string, signal: AbortSignal | undefined): Promise<FarAnswer> {
    const { agent, from, to, direction, limit, predicates, schema, shown } = question;
    const fields = schema.fields.map(({ name }) => shown.fields.findIndex((field) => field.name === name));
    try {
      const asked = { agent, tag, schema: shown, from, to, direction, limit, predicates, fields, signal };
      const { bytes, isCut } = await this.#door.rows(asked);
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
    return new LogstrataError('unavailable', `the writer ${this.#door.address}: ${cause.message}`, { cause });
  }

  /** Marks the border as outdated, and returns the error that makes the query continue with a new one. */
  #outdated(why: string): LogstrataError {
    this.#asOfMs = -Infinity;
    return new LogstrataError('not_found', why);
  }
}

function isBefore(a: OrdinalRun, b: OrdinalRun): boolean {
  return a.partition < b.partition || (a.partition === b.partition && a.firstOrdinal < b.firstOrdinal);
}
