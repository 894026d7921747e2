import type { Column } from '../column.js';
import { sharedMemory, type MemoryRange } from '../kernels/shared-memory.js';
import type { JsonKeys } from '../kernels/json-rows.js';
import { placedBlock, type KernelBlock } from '../kernels/simd/json-rows.js';
import { bulkRowsMin, lineArgumentBytes, lineJobBytes, lineJobsMax, lineScratchBytes } from '../limits.js';
import type { Schema } from '../schema.js';
import { ColumnLease } from './column-lease.js';
import { jsonColumn, jsonKeys } from './json-columns.js';
import { makeLineTable } from './json-lines.js';
import { cutParts, partsOf, rowsOfParts, writeParts, type LinePart } from './line-parts.js';
import type { Matches } from './materialise.js';
import { OwnSpace, type PieceSpace } from './piece-space.js';
import type { QueryThreads } from './query-threads.js';
import type { ScanWork } from './row-group-filter.js';
import type { OpenRowGroup } from './snapshot.js';
import { settled, type Steps } from './steps.js';

/** Digits of a number, roughly, and what stands in every line besides keys and values. */
const numberBytes = 12;
const frameBytes = 32;

/** Lines that were written, and what gives back their memory. */
interface Written {
  readonly pieces: readonly Uint8Array[];
  readonly rows: number;
  release(): void;
}

/** Matches whose rows are being handed to threads. */
class Source {
  readonly matches: Matches;
  /** Reads the columns ahead. */
  reading!: Promise<OpenRowGroup>;
  isRead = false;
  /** What is left to be handed over; made when the first is. */
  jobs: Generator<LinePart[]> | undefined;
  lease = new ColumnLease();
  /** Held while threads read them. */
  columns: readonly Column[] | undefined;
  jobsUnderWay = 0;

  constructor(matches: Matches) {
    this.matches = matches;
  }
}

/**
 * Writes the matches of row groups on several threads at once. Jobs of a few pieces are begun ahead of the one whose lines are
 * taken, over row groups; so that a client who takes them slowly holds no more memory than theirs, the columns are let go as soon as no
 * thread reads them.
 */
export class BulkLines {
  readonly #fields: readonly number[];
  readonly #keys: JsonKeys;
  readonly #keyBytes: number;
  readonly #pieceBytes: number;
  readonly #space: PieceSpace;
  readonly #work: ScanWork;
  readonly #threads: QueryThreads;
  readonly #jobsMax: number;
  /** Matches with rows to be handed over, and the jobs under way or done: both in the order of the answer. */
  readonly #sources: Source[] = [];
  readonly #jobs: Promise<Written>[] = [];
  #isClosed = false;

  /** @param space decides whether pieces are lent to the reader, or are its own */
  constructor(schema: Schema, pieceBytes: number, space: PieceSpace, work: ScanWork, threads: QueryThreads) {
    this.#fields = schema.fields.map((_, field) => field);
    this.#keys = jsonKeys(schema);
    this.#keyBytes = this.#keys.keys.reduce((sum, key) => sum + key.length, 0);
    this.#pieceBytes = pieceBytes;
    this.#space = space;
    this.#work = work;
    this.#threads = threads;
    this.#jobsMax = Math.min(2 * threads.count, lineJobsMax);
  }

  /** Adds matches behind those that are there, and gives the pieces that have to be taken before more can be begun. */
  *write(matches: Matches): Steps<Uint8Array> {
    const source = new Source(matches);
    this.#sources.push(source);
    const reading = this.#readAhead(source);
    reading.catch(() => undefined);
    this.#threads.track(reading);
    source.reading = reading;
    // One row group is read while the threads write the one before.
    yield* this.#begin(1);
    while (this.#sources.length > 1) yield* this.#takeOne(1);
  }

  /** The pieces of all that is left. */
  *finish(): Steps<Uint8Array> {
    yield* this.#begin(0);
    while (this.#jobs.length > 0) yield* this.#takeOne(0);
  }

  /** Gives back what is held; what threads still use, when they have done with it. */
  close(): void {
    this.#isClosed = true;
    for (const job of this.#jobs.splice(0)) this.#threads.track(job.then((written) => written.release()));
  }

  async #readAhead(source: Source): Promise<OpenRowGroup> {
    const { pace, stats, onWait } = this.#work;
    const { unit, take } = source.matches;
    const open = await unit.rowGroup.open(this.#threads);
    const lease = new ColumnLease({ signal: pace.signal, onWait });
    try {
      await open.columns(this.#fields, stats, lease, useOf(take));
    } finally {
      lease.release();
      source.isRead = true;
    }
    return open;
  }

  /** Gives the pieces of the job that comes next. All but `left` matches that have to be waited for are begun. */
  *#takeOne(left: number): Steps<Uint8Array> {
    const { pace, stats } = this.#work;
    const startMs = performance.now();
    const written = yield* settled(this.#jobs[0]!);
    void this.#jobs.shift();
    stats.writeMs += performance.now() - startMs;
    stats.rowsReturned += written.rows;
    try {
      for (const piece of written.pieces) {
        yield* this.#begin(left);
        yield this.#space.end(piece);
        const pause = pace.pause();
        if (pause !== undefined) yield pause;
      }
    } finally {
      written.release();
    }
    yield* this.#begin(left);
  }

  /** Hands over rows of the matches as far as jobs may be begun; the last `left` matches only once their columns have been read. */
  *#begin(left: number): Steps<never> {
    while (this.#jobs.length < this.#jobsMax) {
      const source = this.#sources[0];
      if (source === undefined || (!source.isRead && this.#sources.length <= left)) return;
      const columns = source.columns ?? (yield* this.#columnsOf(source));
      source.jobs ??= cutParts(partsOf(source.matches), this.#rowsOfJob(columns));
      const next = source.jobs.next();
      if (next.done === true) {
        this.#sources.shift();
        if (source.jobsUnderWay === 0) source.lease.release();
      } else {
        this.#jobs.push(this.#beginJob(source, columns, next.value));
      }
    }
  }

  /** The columns, held again. What was let go since it was read ahead, and is still there, is not counted a second time. */
  *#columnsOf(source: Source): Steps<never, readonly Column[]> {
    const { pace, stats, onWait } = this.#work;
    const open = yield* settled(source.reading);
    source.lease = new ColumnLease({ signal: pace.signal, onWait });
    try {
      const { columnsCached } = stats;
      const reading = open.columns(this.#fields, stats, source.lease, useOf(source.matches.take));
      source.columns = reading instanceof Promise ? yield* settled(reading) : reading;
      stats.columnsCached = columnsCached;
      return source.columns;
    } finally {
      if (source.columns === undefined) source.lease.release();
    }
  }

  #beginJob(source: Source, columns: readonly Column[], parts: readonly LinePart[]): Promise<Written> {
    const { lease } = source;
    source.jobsUnderWay++;
    const job = this.#writeRows(columns, parts).finally(() => {
      source.jobsUnderWay--;
      if (source.jobsUnderWay > 0) return;
      source.columns = undefined;
      lease.release();
    });
    job.catch(() => undefined);
    this.#threads.track(job);
    return job;
  }

  async #writeRows(columns: readonly Column[], parts: readonly LinePart[]): Promise<Written> {
    const rows = rowsOfParts(parts);
    const memory = sharedMemory();
    // Elsewhere, each job would have to take a copy of the columns along.
    const block = memory === null ? null : blockOf(this.#keys, columns);
    const wantedBytes = 2 * rows * this.#lineBytes(columns) + 2 * this.#pieceBytes;
    const rangeBytes = lineArgumentBytes + Math.min(lineScratchBytes, Math.ceil(wantedBytes));
    const address = block === null ? null : memory!.allocate(rangeBytes);
    if (block === null || address === null)
      return { pieces: await this.#writeHere(columns, parts), rows, release: () => undefined };
    return this.#writeThere(block, columns.length, parts, memory!.rangeAt(address, rangeBytes));
  }

  async #writeHere(columns: readonly Column[], parts: readonly LinePart[]): Promise<Uint8Array[]> {
    // So that it is not done before the lines that come first are taken.
    await this.#jobs.at(-1)?.catch(() => undefined);
    await this.#work.pace.pause();
    if (this.#isClosed) return [];
    const rows = rowsOfParts(parts);
    const written = columns.map((column) => jsonColumn(column, rows));
    const space = new OwnSpace();
    try {
      return writeParts(makeLineTable(this.#keys, written), parts, this.#pieceBytes, space);
    } finally {
      space.close();
    }
  }

  async #writeThere(
    block: KernelBlock,
    columnCount: number,
    parts: readonly LinePart[],
    range: MemoryRange,
  ): Promise<Written> {
    const memory = sharedMemory()!;
    const release = (): void => memory.free(range.address);
    try {
      const written = await this.#threads.writeLines({
        block,
        columnCount,
        fixedBytes: this.#keys.fixedBytes,
        memoryBytes: memory.buffer.byteLength,
        range,
        parts,
        pieceBytes: this.#pieceBytes,
      });
      const { buffer } = memory;
      const pieces = written.map((piece) =>
        piece instanceof Uint8Array ? piece : new Uint8Array(buffer, ...piece),
      );
      return { pieces, rows: rowsOfParts(parts), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #rowsOfJob(columns: readonly Column[]): number {
    return Math.max(1, Math.floor(lineJobBytes / this.#lineBytes(columns)));
  }

  /** About how long a line is. */
  #lineBytes(columns: readonly Column[]): number {
    return columns.reduce((sum, column) => sum + valueBytes(column), frameBytes + this.#keyBytes);
  }
}

/** The columns as threads are told of them; null where not all of them lie in the kernels' memory. */
function blockOf({ keys }: JsonKeys, columns: readonly Column[]): KernelBlock | null {
  // Entries that are rendered beforehand lie elsewhere: none are for fewer rows.
  return placedBlock({ keys, columns: columns.map((column) => jsonColumn(column, 0)) });
}

/** What an answer takes most rows of leaves its columns out of the cache: it costs more than decoding them. */
function useOf(rows: number): 'again' | 'once' {
  return rows < bulkRowsMin ? 'again' : 'once';
}

/** About how long a value is. */
function valueBytes(column: Column): number {
  if (column.kind === 'dictionary') return valueBytes(column.values);
  if (column.kind !== 'bytes') return numberBytes;
  const { offsets, length } = column;
  return 2 + (offsets[length]! - offsets[0]!) / Math.max(1, length);
}
