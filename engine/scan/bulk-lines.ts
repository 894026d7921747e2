import { sharedMemory, type MemoryRange } from '../memory/shared-memory.js';
import type { KernelBlock } from '../kernels/simd/json-rows.js';
import {
  lineArgumentBytes,
  lineJobBytes,
  lineJobRowGroupsMax,
  lineJobsMax,
  lineScratchBytes,
} from '../limits.js';
import type { Schema } from '../schema.js';
import { BulkSource, type BulkFields, type HeldColumns } from './bulk-source.js';
import { jsonColumn, jsonKeys } from './json-columns.js';
import { makeLineTable } from './json-lines.js';
import { packParts, rowsOfParts, writeParts, type LinePart } from './line-parts.js';
import type { Matches } from './materialise.js';
import { OwnSpace, type PieceSpace } from './piece-space.js';
import type { QueryThreads } from './query-threads.js';
import type { ScanWork } from './row-group-filter.js';
import { settled, type Steps } from './steps.js';

/** Lines that were written, and what gives back their memory. */
interface Written {
  readonly pieces: readonly Uint8Array[];
  readonly rows: number;
  release(): void;
}

/** Rows of one row group that a job writes. */
interface Lot {
  readonly source: BulkSource;
  readonly held: HeldColumns;
  readonly parts: readonly LinePart[];
}

/**
 * Writes the matches of row groups on several threads at once. Jobs of a few pieces are begun ahead of the one whose lines are
 * taken, over row groups: those that have few matches go along with others in one job. So that a client who takes them slowly holds no
 * more memory than theirs, the columns are let go as soon as no thread reads them.
 */
export class BulkLines {
  readonly #fields: BulkFields;
  readonly #pieceBytes: number;
  readonly #space: PieceSpace;
  readonly #work: ScanWork;
  readonly #threads: QueryThreads;
  readonly #jobsMax: number;
  /** Matches with rows to be handed over, and the jobs under way or done: both in the order of the answer. */
  readonly #sources: BulkSource[] = [];
  readonly #jobs: Promise<Written>[] = [];
  /** About how long a line is, by the columns that were held last. */
  #lineBytes: number;
  #isClosed = false;

  /** @param space decides whether pieces are lent to the reader, or are its own */
  constructor(schema: Schema, pieceBytes: number, space: PieceSpace, work: ScanWork, threads: QueryThreads) {
    this.#fields = { fields: schema.fields.map((_, field) => field), keys: jsonKeys(schema) };
    this.#lineBytes = this.#fields.keys.fixedBytes;
    this.#pieceBytes = pieceBytes;
    this.#space = space;
    this.#work = work;
    this.#threads = threads;
    this.#jobsMax = Math.min(2 * threads.count, lineJobsMax);
  }

  /** Adds matches behind those that are there, and gives the pieces that have to be taken before more can be begun. */
  *write(matches: Matches): Steps<Uint8Array> {
    this.#sources.push(new BulkSource(matches, this.#fields, this.#work, this.#threads));
    yield* this.#begin(1);
    while (!this.#hasRoom()) yield* this.#takeOne(1);
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

  /** Whether more matches may be added before others are handed over: one row group is read ahead; of those in memory, what fills a job. */
  #hasRoom(): boolean {
    const { length } = this.#sources;
    if (length <= 1) return true;
    return length < lineJobRowGroupsMax && this.#sources.at(-1)!.isAtHand && !this.#fillJob();
  }

  /** Whether there are rows enough for a whole job. */
  #fillJob(): boolean {
    const rows = this.#sources.reduce((sum, { rowsLeft }) => sum + rowsLeft, 0);
    return rows * this.#lineBytes >= lineJobBytes;
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
      if (source === undefined || (left > 0 && this.#mayWait(source, left))) return;
      this.#beginJob(yield* this.#gather(source));
    }
  }

  /** Whether the rows that come first are to be handed over later, while others come. */
  #mayWait(source: BulkSource, left: number): boolean {
    if (!source.isRead) return this.#sources.length <= left;
    // A thread that has nothing else to do gets as many as there are; otherwise further row groups can go along with few rows.
    return (
      this.#jobs.length >= this.#threads.count &&
      this.#sources.length < lineJobRowGroupsMax &&
      !this.#fillJob()
    );
  }

  /** The rows of the next job: those of `first`, and while they don't fill it those of the next that need not be waited for. */
  *#gather(first: BulkSource): Steps<never, Lot[]> {
    const lots = [this.#takeLot(first, yield* first.hold(), lineJobBytes)];
    let bytesLeft = lineJobBytes - bytesOfLot(lots[0]!);
    while (lots.length < lineJobRowGroupsMax && bytesLeft > 0 && lots[0]!.held.block !== null) {
      const next = this.#sources[0];
      // Nothing is waited for from here on, because columns are held.
      const held = next === undefined || next === first ? null : next.holdAtHand();
      if (held === null) break;
      if (held.block === null) {
        next!.letGo();
        break;
      }
      lots.push(this.#takeLot(next!, held, bytesLeft));
      bytesLeft -= bytesOfLot(lots.at(-1)!);
    }
    return lots;
  }

  #takeLot(source: BulkSource, held: HeldColumns, sizeBytes: number): Lot {
    this.#lineBytes = held.lineBytes;
    const parts = source.take(Math.max(1, Math.floor(sizeBytes / held.lineBytes)));
    if (source.rowsLeft === 0) this.#sources.shift();
    return { source, held, parts };
  }

  #beginJob(lots: readonly Lot[]): void {
    const job = this.#writeLots(lots).finally(() => {
      for (const { source } of lots) source.ended();
    });
    job.catch(() => undefined);
    this.#threads.track(job);
    this.#jobs.push(job);
  }

  async #writeLots(lots: readonly Lot[]): Promise<Written> {
    const rows = lots.reduce((sum, { parts }) => sum + rowsOfParts(parts), 0);
    const lotsBytes = lots.reduce((sum, lot) => sum + bytesOfLot(lot), 0);
    const rangeBytes =
      lineArgumentBytes + Math.min(lineScratchBytes, Math.ceil(2 * (lotsBytes + this.#pieceBytes)));
    // Elsewhere, each job would have to take a copy of the columns along.
    const blocks = lots.map(({ held }) => held.block).filter((block) => block !== null);
    const address = blocks.length < lots.length ? null : sharedMemory().allocate(rangeBytes);
    if (address === null) return { pieces: await this.#writeHere(lots), rows, release: () => undefined };
    return this.#writeThere(lots, blocks, rows, sharedMemory().rangeAt(address, rangeBytes));
  }

  async #writeHere(lots: readonly Lot[]): Promise<Uint8Array[]> {
    // So that it is not done before the lines that come first are taken.
    await this.#jobs.at(-1)?.catch(() => undefined);
    await this.#work.pace.pause();
    if (this.#isClosed) return [];
    const { keys } = this.#fields;
    const written = lots.flatMap(({ held, parts }) => {
      const rows = rowsOfParts(parts);
      const table = makeLineTable(
        keys,
        held.columns.map((column) => jsonColumn(column, rows)),
      );
      return parts.map((part) => ({ table, part }));
    });
    const space = new OwnSpace();
    try {
      return writeParts(written, this.#pieceBytes, space);
    } finally {
      space.close();
    }
  }

  async #writeThere(
    lots: readonly Lot[],
    blocks: readonly KernelBlock[],
    rows: number,
    range: MemoryRange,
  ): Promise<Written> {
    const memory = sharedMemory();
    const release = (): void => memory.free(range.address);
    try {
      const written = await this.#threads.writeLines({
        blocks: blocksTogether(blocks),
        tables: blocks.length,
        columnCount: this.#fields.fields.length,
        fixedBytes: this.#fields.keys.fixedBytes,
        memoryBytes: memory.buffer.byteLength,
        range,
        parts: packParts(lots.map(({ parts }) => parts)),
        pieceBytes: this.#pieceBytes,
      });
      const { buffer } = memory;
      const pieces = written.map((piece) =>
        piece instanceof Uint8Array ? piece : new Uint8Array(buffer, ...piece),
      );
      return { pieces, rows, release };
    } catch (error) {
      release();
      throw error;
    }
  }
}

/** About how long the lines of a lot are. */
function bytesOfLot({ held, parts }: Lot): number {
  return rowsOfParts(parts) * held.lineBytes;
}

/** Blocks of one length, one behind the other. */
function blocksTogether(blocks: readonly KernelBlock[]): KernelBlock {
  const { length } = blocks[0]!;
  const together = new Uint32Array(blocks.length * length);
  for (const [i, block] of blocks.entries()) together.set(block, i * length);
  return together;
}
