import type { ForeignFile, ForeignRead, PageTable } from '../../foreign/foreign-file.js';
import type { Column } from '../../columns/column.js';
import { takeColumn } from '../../columns/take.js';
import { firstIndex } from '../../core/arrays.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { assert } from '../../core/errors.js';
import { attachedPageTablesMax } from '../../core/limits.js';
import type { AttachedFile, FileIdentity } from '../attached/attached-list.js';
import { chunkOf, columnSource, type ColumnSource } from '../attached/column-source.js';
import type { Description } from '../attached/descriptions.js';
import { ForeignWork, nearChunks, type ColumnOfFile, type ForeignMeans } from '../attached/foreign-work.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import { columnRead, type SpanPlacement, type FileSpan } from '../attached/span-placements.js';
import {
  fileRowsTask,
  ownFilterTask,
  ownQuestions,
  searchTask,
  spanTask,
  type PlacesOfSpan,
  type ReadSpans,
  type SpanJob,
  type SpanOrder,
} from '../attached/span-tasks.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';

/** A request to read a column for one span of a row group. */
export interface ColumnReading {
  readonly file: AttachedFile;
  readonly description: Description;
  readonly source: ColumnSource & { readonly kind: 'column' };
  /** The field's number in the index; -1 where the index does not have it. */
  readonly indexedField: number;
  readonly span: FileSpan;
  /** The placements of all spans of the row group, in order. */
  readonly placements: readonly SpanPlacement[];
  readonly threads: JobQueue | null;
  readonly counters: ReadCounters;
}

/** Bytes of a filter that are fetched from object storage before it is asked. For most filters a request for a part would take as long. */
const filterBytesAtOnce = 256 * 1024;

/** From this reading of a column on, the same column of neighbouring row groups is fetched with it. */
const readingsOfPage = 3;

/** By span, whether it may hold one of the needles. */
type FoundSpans = ReadonlyMap<number, boolean>;

/**
 * Reads and searches columns of an attached file, on threads where there are any. Concurrent requests for the same column of a row group
 * share one reading.
 */
export class AttachedReader {
  /** Where the pages of a column of a row group lie, as earlier readings have found. By the same names as `#readings`. */
  readonly #pages = new Map<string, PageTable>();
  /** Readings under way, by row group, column and conversion (`nameOf`). */
  readonly #readings = new Map<string, Promise<ReadSpans>>();
  /** Results of searches, by needles, then by row group, column and conversion. */
  readonly #searches = new WeakMap<readonly KernelNeedle[], Map<string, Promise<FoundSpans>>>();

  /** By column: how often it was read from object storage. */
  readonly #objectReadings = new Map<number, number>();
  /** Answers of the file's own filters, by the questions of a query, then by row group. */
  readonly #ownAnswers = new WeakMap<readonly FilterQuestion[], Map<number, Promise<boolean>>>();

  constructor(private readonly means: ForeignMeans) {}

  /** Runs tasks on the file: on `threads`, or on the calling thread where that is null. */
  work(threads: JobQueue | null): ForeignWork {
    return new ForeignWork(this.means, async (task, job, readBytes) =>
      threads === null ? (await task.work(job)).result : threads.run(task, job, [], readBytes),
    );
  }

  /** Reads and decodes the span, and other spans that come with it. `isOwn` is false where a reading of another caller gave it. */
  async read(reading: ColumnReading): Promise<{ spans: ReadSpans['spans']; isOwn: boolean }> {
    const name = nameOf(reading);
    for (;;) {
      const before = this.#readings.get(name);
      const { spans, bytesRead } = await (before ?? this.#begin(name, reading));
      const isOwn = before === undefined;
      if (isOwn) reading.counters.bytesRead += bytesRead;
      if (spans.some(({ span }) => span === reading.span.index)) return { spans, isOwn };
      assert(!isOwn, 'a reading gives the wanted span');
    }
  }

  #begin(name: string, reading: ColumnReading): Promise<ReadSpans> {
    const run = async (): Promise<ReadSpans> => {
      try {
        const { read: job, attached, ...rest } = this.#job(name, reading);
        const read = await this.work(reading.threads).read(
          spanTask,
          (place) => ({ ...rest, attached, read: { ...job, ...place } }),
          {
            file: reading.file,
            column: job.column,
            reads: [job, ...orderReads(job, rest.order)],
            beside: this.#beside(reading),
          },
        );
        this.#keepPages(name, read.pages);
        return read;
      } finally {
        this.#readings.delete(name);
      }
    };
    const begun = run();
    this.#readings.set(name, begun);
    return begun;
  }

  /**
   * Reads rows of columns of a row group, and nothing else of these columns is decoded where that can be avoided. Resolves to a column of
   * all the rows for each reading. The readings are of different columns; the rows are those of `wanted`, span by span.
   */
  async readRows(readings: readonly ColumnReading[], wanted: readonly PlacesOfSpan[]): Promise<Column[]> {
    const rows = await this.fileRows(readings[0]!, wanted);
    const ascending = rows.slice().sort();
    const ranks = rows.map((row) => firstIndex(ascending.length, (i) => ascending[i]! >= row));
    return Promise.all(
      readings.map(async (reading) => {
        const name = nameOf(reading);
        const { read: whole, ...rest } = this.#job(name, reading);
        const read: ForeignRead = { ...whole, rows: ascending };
        const file = {
          file: reading.file,
          column: read.column,
          reads: [read],
          beside: this.#beside(reading),
        };
        const { spans, pages, bytesRead } = await this.work(reading.threads).read(
          spanTask,
          (place) => ({ ...rest, read: { ...read, ...place }, order: null }),
          file,
        );
        this.#keepPages(name, pages);
        reading.counters.bytesRead += bytesRead;
        reading.counters.columnsDecoded++;
        return takeColumn(spans[0]!.column, ranks);
      }),
    );
  }

  /** The numbers in the file's row group of rows that are given by their places in the order of positions. */
  async fileRows(reading: ColumnReading, wanted: readonly PlacesOfSpan[]): Promise<Uint32Array> {
    const { read, attached, order } = this.#job(nameOf(reading), reading);
    if (order === null)
      return Uint32Array.from(
        wanted.flatMap(({ span, places }) => Array.from(places, (place) => read.spans[span]!.from + place)),
      );
    const { column, columnIndex, chunk } = order.placedBy;
    const times: ForeignRead = { ...read, column, columnIndex, chunk, pages: null };
    const { rows, bytesRead } = await this.work(reading.threads).read(
      fileRowsTask,
      (place) => ({ read: { ...times, ...place }, attached, order, wanted }),
      { file: reading.file, column, reads: [times] },
    );
    reading.counters.bytesRead += bytesRead;
    return rows;
  }

  /** Searches the span without keeping it, and the spans that come with it. Resolves to whether the span may hold one of the needles. */
  async search(
    reading: ColumnReading,
    needles: readonly KernelNeedle[],
    threads: JobQueue,
  ): Promise<boolean> {
    let known = this.#searches.get(needles);
    if (known === undefined) this.#searches.set(needles, (known = new Map<string, Promise<FoundSpans>>()));
    const name = nameOf(reading);
    const { index } = reading.span;
    const before = await known.get(name);
    const said = before?.get(index);
    if (said !== undefined) return said;
    reading.counters.columnsDecoded++;
    const { read, attached } = this.#job(name, reading);
    const begun = this.work(threads)
      .read(searchTask, (place) => ({ read: { ...read, ...place }, attached, needles }), {
        file: reading.file,
        column: read.column,
        reads: [read],
        beside: this.#beside(reading),
      })
      .then(({ spans, bytesRead }) => {
        reading.counters.bytesRead += bytesRead;
        return new Map(spans.map(({ span, mayHold }) => [span, mayHold]));
      });
    known.set(name, begun);
    return (await begun).get(index)!;
  }

  /** Whether the file's own filters rule out the span's row group. Spans of a row group share one answer. */
  async isRuledOut(
    reading: Pick<ColumnReading, 'file' | 'description' | 'span' | 'threads' | 'counters'>,
    questions: readonly FilterQuestion[],
    sourceOf: (field: number) => ColumnSource,
  ): Promise<boolean> {
    const { file, description, span, threads, counters } = reading;
    let known = this.#ownAnswers.get(questions);
    if (known === undefined) this.#ownAnswers.set(questions, (known = new Map()));
    const before = known.get(span.rowGroup);
    if (before !== undefined) return before;
    const asked = ownQuestions(questions, description.file, span.rowGroup, sourceOf);
    if (asked.length === 0) return false;
    const { path, format } = file;
    const attached = identityOf(file);
    const ranges = asked.flat().map(({ filter: { offset, bytes } }) => ({
      from: offset,
      to: offset + Math.min(bytes, filterBytesAtOnce),
    }));
    const answer = this.work(threads)
      .readBytes(
        ownFilterTask,
        (place) => ({ ...place, format, attached, questions: asked }),
        { path, ...attached },
        ranges,
      )
      .then(({ isRuledOut, bytesRead, piecesRead }) => {
        counters.bytesRead += bytesRead;
        counters.valuePiecesRead += piecesRead;
        return isRuledOut;
      });
    known.set(span.rowGroup, answer);
    return answer;
  }

  /**
   * Byte ranges that are fetched with a column from object storage, which has no read-ahead of its own. A page of the newest records needs
   * one or two row groups; once more of a column has been read, its other row groups are likely to be needed too. Empty where there is an
   * index, which says which row groups are needed.
   */
  #beside({ file, description, source: { columnIndex }, span }: ColumnReading): ColumnOfFile['beside'] {
    if (file.etag === undefined || description.facts !== null) return [];
    const readings = (this.#objectReadings.get(columnIndex) ?? 0) + 1;
    this.#objectReadings.set(columnIndex, readings);
    return readings < readingsOfPage ? [] : nearChunks(description.file, columnIndex, span.rowGroup);
  }

  #keepPages(name: string, pages: PageTable | null): void {
    // Of a column chunk with a single page all is read anyway.
    if (pages === null || pages.offsets.length <= 2) return;
    if (this.#pages.size >= attachedPageTablesMax) this.#pages.clear();
    this.#pages.set(name, pages);
  }

  #job(
    name: string,
    { file: attachedFile, description, source, indexedField, span, placements }: ColumnReading,
  ): SpanJob {
    const { file, facts } = description;
    const { rowGroup, index: wanted } = span;
    const pages = this.#pages.get(name) ?? null;
    const checksum = facts?.fields[indexedField]?.checksums[rowGroup] ?? null;
    // From object storage a whole chunk takes one request, and single pages would take several.
    const takesOffsetIndex = checksum === null && attachedFile.etag === undefined;
    const first = columnRead(attachedFile, file, source, rowGroup);
    const read: ForeignRead = { ...first, wanted, pages, takesOffsetIndex };
    const order = orderOf(attachedFile, placements, rowGroup, file);
    return { read, attached: identityOf(attachedFile), change: source.change, checksum, order };
  }
}

function nameOf({ source, span }: ColumnReading): string {
  const { column, columnIndex, change } = source;
  return `${span.rowGroup}/${columnIndex}/${JSON.stringify([column.inner?.path, column.type, change])}`;
}

/** The reading of the placement column, by which the wanted span is sorted; empty where the span is in order. */
function orderReads(read: ForeignRead, order: SpanOrder | null): ForeignRead[] {
  if (order === null || order.isOrdered[read.wanted]!) return [];
  const { columnIndex, column, chunk } = order.placedBy;
  return [{ ...read, columnIndex, column, chunk, pages: null }];
}

function identityOf({ bytes, mtimeMs, footerHash, etag }: AttachedFile): FileIdentity {
  return { bytes, mtimeMs, footerHash, etag };
}

/** How to sort the rows of a row group's spans by position; null where all spans are in that order. */
function orderOf(
  attached: AttachedFile,
  placements: readonly SpanPlacement[],
  rowGroup: number,
  file: ForeignFile,
): SpanOrder | null {
  const { placedBy, nowMs } = attached;
  if (placedBy === null || placements.every(({ isOrdered }) => isOrdered)) return null;
  const source = columnSource({ name: 'time', type: 'time', attached: placedBy }, file, attached);
  assert(source.kind === 'column', 'the same file has the column that placed its rows');
  const { column, columnIndex, change } = source;
  const chunk = chunkOf(file.rowGroups[rowGroup]!, source);
  return {
    placedBy: { columnIndex, column, chunk, change, nowMs },
    previousMs: placements.map(({ previousMs }) => previousMs),
    isOrdered: placements.map(({ isOrdered }) => isOrdered),
  };
}
