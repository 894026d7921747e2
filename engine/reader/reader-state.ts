import type { FarAnswer } from '../store/far/far-cluster.js';
import type { FarRows, FarSource, SourceQuestion } from '../store/far/far-rows.js';
import { columnOfField } from '../store/far/far-sql.js';
import { readNative } from '../store/far/native-reader.js';
import type { OrdinalRun } from '../store/manifest/manifest.js';
import { FarRowGroup, rowsOfCopy } from '../store/reading/far-segment.js';
import type { Snapshot, SnapshotRun } from '../store/reading/snapshot.js';
import { StateChanges } from '../store/reading/state-changes.js';
import { compareByPosition } from '../store/runs/run-list.js';
import { isLogstrataError, LogstrataError } from '../terms/errors.js';
import type { Schema } from '../terms/schema.js';
import { ascending, decodeBorder, schemaTag, type Border } from './border.js';
import type { WriterDoor } from './writer-door.js';

/** What a reader knows of an agent: where each of its records is, by the writer's word of a moment. */
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
  /** What the writer said last was so at this time, or later; before all times where that is known to be over. */
  #asOfMs = -Infinity;
  #asking: { readonly sinceMs: number; readonly done: Promise<void> } | null = null;
  /** Why the writer could not be asked the last time. */
  #failure: LogstrataError | null = null;

  /**
   * @param lagMsMax how long the writer's word is good for
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

  /** Throws why the writer could not be asked, where it never could. */
  get schema(): Schema {
    if (this.#border === null && this.#failure !== null) throw this.#failure;
    return this.#schema;
  }

  get border(): Border | null {
    return this.#border;
  }

  /** How old the writer's word is. */
  get ageMs(): number {
    return this.#now() - this.#asOfMs;
  }

  get failure(): LogstrataError | null {
    return this.#failure;
  }

  snapshot(): Snapshot {
    return { schema: this.#schema, runs: this.#runs, release: () => {} };
  }

  /** Asks the writer anew where its last word may not be gone by any more. Those who wait at the same time share one question. */
  refresh(): Promise<void> | undefined {
    const sinceMs = this.#now() - this.#lagMsMax;
    return this.#asOfMs >= sinceMs ? undefined : this.#refreshSince(sinceMs);
  }

  async #refreshSince(sinceMs: number): Promise<void> {
    while (this.#asOfMs < sinceMs) {
      // A question that was put before that may have been answered before that.
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
        `the writer ${this.#door.address} answers for agent ${border.agent} in the place of ${this.agent}`,
      );
    const tag = schemaTag(border.schema);
    // Queries name fields by their places: who has the same fields has the same object.
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
      const rowGroup = new FarRowGroup(
        { file: `far/${copy.unit}`, rows: copy.rows, timeMinMs, timeMaxMs },
        rows,
      );
      for (const run of own) runs.push({ ...run, rowGroup });
    }
    runs.sort(compareByPosition);
    let next = 0;
    let stretch = 0;
    let rowGroup: FarRowGroup | null = null;
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
   * Records near the writer with none in the far tier between them: no question for some of them can meet others than these, and newer ones,
   * wherever the writer has them by then.
   */
  #nearGroup(stretch: number, stored: Schema, tag: string, rowBytes: number): FarRowGroup {
    const { agent } = this;
    const rows: FarRows = {
      agent,
      copy: null,
      stored,
      rowBytes,
      group: `near ${stretch}`,
      source: () => ({ ask: (question, signal) => this.#askRows(question, tag, signal) }),
      lacking: () => this.#outdated(`the writer has no longer all records that it had of agent ${agent}`),
    };
    return new FarRowGroup({ file: 'near', rows: 0, timeMinMs: null, timeMaxMs: null }, rows);
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

  /** What the writer says can't be read, which is no damage of records. */
  #nonsense(cause: LogstrataError): LogstrataError {
    return new LogstrataError('unavailable', `the writer ${this.#door.address}: ${cause.message}`, { cause });
  }

  /** What is known is over: the answer goes on by the writer's next word. */
  #outdated(why: string): LogstrataError {
    this.#asOfMs = -Infinity;
    return new LogstrataError('not_found', why);
  }
}

function isBefore(a: OrdinalRun, b: OrdinalRun): boolean {
  return a.partition < b.partition || (a.partition === b.partition && a.firstOrdinal < b.firstOrdinal);
}
