import type { AgentStore } from './agent-store.js';
import { sliceBatch, wholeBatches } from '../columns/take.js';
import { type RecordBatch, batchBytes } from '../columns/column.js';
import { runsOfFileMax, rowGroupBytesMax, rowGroupRowsMax, segmentRowGroupsMax } from '../core/limits.js';
import type { Query } from '../scan/query.js';
import type { SelectedRows } from '../scan/selected-rows.js';
import { makeSchema, type Schema } from '../core/schema.js';
import type { Directory } from '../store/disk/directory.js';
import { addRun, type Run } from '../store/manifest/manifest.js';
import { SegmentWriter } from '../store/sealed/sealed-segment-writer.js';
import type { Codec } from '../parquet/compression.js';

export interface ExportOptions {
  readonly codec: Codec;
  readonly signal?: AbortSignal | undefined;
  /** Gets the records written so far. */
  readonly onProgress?: ((records: number) => void) | undefined;
}

export interface ExportResult {
  readonly records: number;
  readonly bytes: number;
  /** Files that were written, as `nameOf` called them. */
  readonly files: readonly string[];
}

/**
 * Writes the answer to a query as Parquet files in `directory`, in the format of sealed segments: the stored values of the fields that it
 * asks for, in ascending order, with their `_cursor`. A file holds at most `segmentRowGroupsMax` row groups, so a large answer takes
 * several; `nameOf` gives the name of each, counted from 0, and none may be there. An answer without a record makes no
 * file. After a failure nothing is left.
 */
export async function exportParquet(
  store: AgentStore,
  query: Query,
  directory: Directory,
  nameOf: (index: number) => string,
  options: ExportOptions,
): Promise<ExportResult> {
  const { fields } = store.schema;
  const shown = query.form?.fields?.map((field) => fields[field]!) ?? fields;
  const files = new ExportFiles(makeSchema(shown), directory, nameOf, options.codec);
  try {
    for await (const rows of store.selectRows(query, { signal: options.signal })) {
      await files.add(rows);
      options.onProgress?.(files.records);
    }
    return await files.finish();
  } catch (error) {
    await files.abort();
    throw error;
  }
}

/** Cuts rows that come in order into row groups and files. */
class ExportFiles {
  records = 0;
  #bytes = 0;
  readonly #names: string[] = [];
  #writer: SegmentWriter | undefined;
  /** Runs of the file under way, and its rows that are not written yet. */
  #runs: Run[] = [];
  #fileRows = 0;
  #pending: RecordBatch[] = [];
  #pendingRows = 0;
  #pendingBytes = 0;

  constructor(
    readonly schema: Schema,
    readonly directory: Directory,
    readonly nameOf: (index: number) => string,
    readonly codec: Codec,
  ) {}

  async add({ batch, runs }: SelectedRows): Promise<void> {
    const rowBytes = batchBytes(batch) / batch.length;
    let run = 0;
    for (let from = 0; from < batch.length;) {
      const roomRows = Math.min(
        rowGroupRowsMax - this.#pendingRows,
        (rowGroupBytesMax - this.#pendingBytes) / rowBytes,
      );
      const to = Math.min(batch.length, from + Math.max(1, Math.floor(roomRows)));
      for (; run < runs.length && runs[run]!.firstRow < to; run++) this.#addRun(runs[run]!, from, to);
      // The last one may go on in the next piece.
      run--;
      this.#pending.push(sliceBatch(batch, from, to));
      this.records += to - from;
      this.#fileRows += to - from;
      this.#pendingRows += to - from;
      this.#pendingBytes += (to - from) * rowBytes;
      from = to;
      const isFull =
        this.#pendingRows === rowGroupRowsMax || this.#pendingBytes > rowGroupBytesMax - rowBytes;
      if (isFull) await this.#endRowGroup();
      if (this.#runs.length >= runsOfFileMax) await this.#endFile();
    }
  }

  /** Adds the part of a run that lies in the rows [from, to) of its batch, which are about to be taken. */
  #addRun(run: Run, from: number, to: number): void {
    const first = Math.max(from, run.firstRow);
    const rows = Math.min(to, run.firstRow + run.rows) - first;
    if (rows <= 0) return;
    addRun(this.#runs, {
      partition: run.partition,
      firstOrdinal: run.firstOrdinal + first - run.firstRow,
      firstRow: this.#fileRows + first - from,
      rows,
    });
  }

  async #endRowGroup(): Promise<void> {
    if (this.#pendingRows === 0) return;
    const name = this.nameOf(this.#names.length);
    this.#writer ??= await SegmentWriter.create(this.directory, name, this.schema, { codec: this.codec });
    await this.#writer.appendRowGroup(wholeBatches(this.#pending));
    this.#pending = [];
    this.#pendingRows = 0;
    this.#pendingBytes = 0;
    if (this.#writer.rowGroups === segmentRowGroupsMax) await this.#endFile();
  }

  async #endFile(): Promise<void> {
    await this.#endRowGroup();
    if (this.#writer === undefined) return;
    const { bytes } = await this.#writer.finish(this.#runs, 1);
    this.#writer = undefined;
    this.#bytes += bytes;
    this.#names.push(this.nameOf(this.#names.length));
    this.#runs = [];
    this.#fileRows = 0;
  }

  async finish(): Promise<ExportResult> {
    await this.#endFile();
    return { records: this.records, bytes: this.#bytes, files: this.#names };
  }

  async abort(): Promise<void> {
    await this.#writer?.abort();
    for (const name of this.#names) await this.directory.remove(name);
  }
}
