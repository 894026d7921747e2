import { sharedMemory, type MemoryRange } from '../../memory/shared-memory.js';
import { lineTable, type KernelBlock } from '../../kernels/json-rows.js';
import { answerBytesMax, cellsOfBlock, lineArgumentBytes, lineJobRowGroupsMax } from '../../terms/limits.js';
import { answerCells } from './answer-cells.js';
import { jobsPerTurn, type AnswerTurns, type Turn } from './answer-turns.js';
import { BulkSource, type HeldColumns } from './bulk-source.js';
import { jsonColumns } from './json-columns.js';
import type { Piece } from './json-lines.js';
import { packParts, rowsOfParts, writeParts, type LinePart } from './line-parts.js';
import { OwnSpace, type LentSpace } from './piece-space.js';
import { linesTask } from './lines-task.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { Matches } from '../filter/selection.js';
import type { WrittenFields } from './written-fields.js';

/** A piece, and the function that gives back its memory. */
interface HeldPiece extends Piece {
  free(): void;
}

/** The rows of one row group that a job writes. */
interface JobShare {
  readonly source: BulkSource;
  readonly held: HeldColumns;
  readonly parts: readonly LinePart[];
}

/** What `BulkLines` works with. */
export interface BulkWork extends ScanWork {
  readonly threads: QueryThreads;
  readonly turns: AnswerTurns;
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/**
 * Writes the matches of row groups on several threads, while the answer holds a turn. A job writes a few pieces; row groups with few
 * matches share a job. Some jobs are begun ahead of the one whose lines are being taken. Columns are released as soon as no thread reads
 * them, so that a slow client holds only the memory of its lines.
 */
export class BulkLines {
  readonly #fields: WrittenFields;
  readonly #pieceBytes: number;
  /** Approximate number of bytes that a job writes. */
  readonly #jobBytes: number;
  readonly #space: LentSpace;
  readonly #work: BulkWork;
  readonly #jobsMax: number;
  /** Matches with rows that no job has yet, and the jobs that are running or finished. Both in the order of the answer. */
  readonly #sources: BulkSource[] = [];
  readonly #jobs: Promise<readonly HeldPiece[]>[] = [];
  /** Whether the pieces of a job are being yielded. */
  #isYielding = false;
  #turn: Turn | null = null;
  /** Approximate length of a line in bytes, from the columns that were held last. */
  #lineBytes: number;
  #isClosed = false;

  /** @param space decides whether pieces are lent to the reader or belong to it */
  constructor(fields: WrittenFields, pieceBytes: number, space: LentSpace, work: BulkWork) {
    this.#fields = fields;
    this.#lineBytes = this.#fields.keys.fixedBytes;
    this.#pieceBytes = pieceBytes;
    this.#jobBytes = cellsOfBlock * pieceBytes;
    this.#space = space;
    this.#work = work;
    this.#jobsMax = jobsPerTurn(work.threads.count);
  }

  /** The turn that the answer holds. It is kept while any line that was written has not been taken. */
  get turn(): Turn | null {
    return this.#turn;
  }

  /** Appends matches, and yields the pieces that have to be taken before more matches can be added. */
  *write(matches: Matches): Steps<Uint8Array> {
    this.#sources.push(new BulkSource(matches, this.#fields, this.#work, this.#work.threads));
    yield* this.#begin(1);
    while (!this.#hasRoom()) yield* this.#takeOne(1);
  }

  /** Yields the pieces of everything that is left. */
  *finish(): Steps<Uint8Array> {
    yield* this.#begin(0);
    while (this.#jobs.length > 0) yield* this.#takeOne(0);
    this.#releaseTurn();
  }

  /** Gives back what is held. Memory that threads still use, and the turn, are given back when the threads are done. */
  close(): void {
    this.#isClosed = true;
    const ended = this.#jobs.splice(0).map((job) => job.then(freeAll, () => undefined));
    if (ended.length === 0) this.#releaseTurn();
    else this.#work.threads.track(Promise.all(ended).then(() => this.#releaseTurn()));
  }

  /**
   * Whether more matches may be added before the present ones are handed over. One row group is read ahead. Of row groups in memory as many
   * are added as fill a job.
   */
  #hasRoom(): boolean {
    const { length } = this.#sources;
    if (length <= 1) return true;
    return length < lineJobRowGroupsMax && this.#sources.at(-1)!.isInMemory && !this.#fillJob();
  }

  /** Whether the rows that no job has yet are enough for a whole job. */
  #fillJob(): boolean {
    const rows = this.#sources.reduce((sum, { rowsLeft }) => sum + rowsLeft, 0);
    return rows * this.#lineBytes >= this.#jobBytes;
  }

  /** Yields the pieces of the oldest job. Meanwhile begins further jobs, see `#begin`. */
  *#takeOne(left: number): Steps<Uint8Array> {
    const { pace, stats } = this.#work;
    const startMs = performance.now();
    const pieces = yield* settled(this.#jobs[0]!);
    void this.#jobs.shift();
    stats.writeMs += performance.now() - startMs;
    let given = 0;
    this.#isYielding = true;
    try {
      for (const { bytes, rows, free } of pieces) {
        yield* this.#begin(left);
        stats.rowsReturned += rows;
        given++;
        yield this.#space.lend(bytes, free);
        const pause = pace.pause();
        if (pause !== undefined) yield pause;
      }
    } finally {
      this.#isYielding = false;
      freeAll(pieces.slice(given));
    }
    yield* this.#begin(left);
  }

  /** Begins jobs while fewer than `#jobsMax` exist. The last `left` matches are handed over only once their columns have been read. */
  *#begin(left: number): Steps<never> {
    while (this.#jobs.length < this.#jobsMax) {
      const source = this.#sources[0];
      if (source === undefined || (left > 0 && this.#mayWait(source, left))) return;
      if (!(yield* this.#takeTurn())) return;
      this.#beginJob(yield* this.#gather(source));
    }
  }

  /** Takes a turn where the answer holds none. False where its turn is over while it still has lines, which have to be taken first. */
  *#takeTurn(): Steps<never, boolean> {
    if (this.#turn?.isOver === true) {
      if (this.#jobs.length > 0 || this.#isYielding) return false;
      this.#releaseTurn();
    }
    if (this.#turn !== null) return true;
    const { turns, stats, pace, onTurn } = this.#work;
    const taking = turns.take(stats.rowsReturned === 0 ? 'first' : 'next', pace.signal);
    if (!(taking instanceof Promise)) {
      this.#turn = taking;
      return true;
    }
    onTurn?.(true);
    try {
      this.#turn = yield* settled(taking);
    } finally {
      onTurn?.(false);
      // The answer ended while it waited: a turn that comes later is given back.
      if (this.#turn === null)
        taking.then(
          (turn) => turn.release(),
          () => undefined,
        );
    }
    return true;
  }

  #releaseTurn(): void {
    this.#turn?.release();
    this.#turn = null;
  }

  /** Whether to delay the rows of `source`, so that further rows can share their job. */
  #mayWait(source: BulkSource, left: number): boolean {
    if (!source.isRead) return this.#sources.length <= left;
    // While fewer jobs than threads exist, an idle thread gets the rows that there are. Otherwise few rows wait for further row groups.
    return (
      this.#jobs.length >= this.#work.threads.count &&
      this.#sources.length < lineJobRowGroupsMax &&
      !this.#fillJob()
    );
  }

  /** The rows of the next job: those of `first`, and while they don't fill it, rows of the next matches whose columns are in memory. */
  *#gather(first: BulkSource): Steps<never, JobShare[]> {
    const shares = [this.#takeShare(first, yield* first.hold(), this.#jobBytes)];
    let bytesLeft = this.#jobBytes - bytesOfShare(shares[0]!);
    while (shares.length < lineJobRowGroupsMax && bytesLeft > 0 && shares[0]!.held.block !== null) {
      const next = this.#sources[0];
      // Nothing may be waited for while columns are held.
      const held = next === undefined || next === first ? null : next.holdIfInMemory();
      if (held === null) break;
      if (held.block === null) {
        next!.release();
        break;
      }
      shares.push(this.#takeShare(next!, held, bytesLeft));
      bytesLeft -= bytesOfShare(shares.at(-1)!);
    }
    return shares;
  }

  #takeShare(source: BulkSource, held: HeldColumns, sizeBytes: number): JobShare {
    this.#lineBytes = held.lineBytes;
    const parts = source.take(Math.max(1, Math.floor(sizeBytes / held.lineBytes)));
    if (source.rowsLeft === 0) this.#sources.shift();
    return { source, held, parts };
  }

  #beginJob(shares: readonly JobShare[]): void {
    const job = this.#writeShares(shares).finally(() => {
      for (const { source } of shares) source.ended();
    });
    job.catch(() => undefined);
    this.#work.threads.track(job);
    this.#jobs.push(job);
  }

  async #writeShares(shares: readonly JobShare[]): Promise<readonly HeldPiece[]> {
    const blocks = shares.map(({ held }) => held.block).filter((block) => block !== null);
    // Columns that are not in the kernels' memory would have to be copied into each job.
    const address = blocks.length < shares.length ? null : sharedMemory().allocate(lineArgumentBytes);
    if (address === null) return this.#writeHere(shares);
    try {
      return await this.#writeThere(shares, blocks, sharedMemory().rangeAt(address, lineArgumentBytes));
    } finally {
      sharedMemory().free(address);
    }
  }

  async #writeHere(shares: readonly JobShare[]): Promise<HeldPiece[]> {
    // Wait for the job before, so that lines are not written here before they are needed.
    await this.#jobs.at(-1)?.catch(() => undefined);
    await this.#work.pace.pause();
    if (this.#isClosed) return [];
    const { keys } = this.#fields;
    const written = shares.flatMap(({ held, parts }) => {
      const table = lineTable(keys, jsonColumns(held.columns, this.#fields));
      return parts.map((part) => ({ table, part }));
    });
    const space = new OwnSpace();
    try {
      return writeParts(written, this.#pieceBytes, space).map((piece) => ({ ...piece, free: nothingToFree }));
    } finally {
      space.close();
    }
  }

  async #writeThere(
    shares: readonly JobShare[],
    blocks: readonly KernelBlock[],
    scratch: MemoryRange,
  ): Promise<HeldPiece[]> {
    const memory = sharedMemory();
    const cells = this.#takeCells(shares);
    let filled = 0;
    try {
      const pieces = await this.#work.threads.run(linesTask, {
        blocks: blocksTogether(blocks),
        tables: blocks.length,
        columnCount: this.#fields.fields.length,
        fixedBytes: this.#fields.keys.fixedBytes,
        format: this.#fields.keys.format,
        scratch,
        cells,
        parts: packParts(shares.map(({ parts }) => parts)),
        pieceBytes: this.#pieceBytes,
      });
      return pieces.map(({ piece, rows }) => {
        if (piece instanceof Uint8Array) return { bytes: piece, rows, free: nothingToFree };
        const address = cells[filled++]!;
        const bytes = memory.bytesAt({ address, sizeBytes: piece });
        return { bytes, rows, free: () => answerCells().giveBack(address) };
      });
    } finally {
      for (const address of cells.slice(filled)) answerCells().giveBack(address);
    }
  }

  /** Allocates cells for the lines of the shares, with 25 % to spare. Lines that don't fit in the cells are written to the heap. */
  #takeCells(shares: readonly JobShare[]): number[] {
    if (this.#pieceBytes > answerBytesMax) return [];
    const sharesBytes = shares.reduce((sum, share) => sum + bytesOfShare(share), 0);
    const wanted = Math.min(2 * cellsOfBlock, Math.ceil((1.25 * sharesBytes) / this.#pieceBytes) + 1);
    const cells: number[] = [];
    while (cells.length < wanted) {
      const cell = answerCells().take();
      if (cell === null) break;
      cells.push(cell);
    }
    return cells;
  }
}

const nothingToFree = (): void => undefined;

function freeAll(pieces: readonly HeldPiece[]): void {
  for (const { free } of pieces) free();
}

/** Approximate length of the lines of a share, in bytes. */
function bytesOfShare({ held, parts }: JobShare): number {
  return rowsOfParts(parts) * held.lineBytes;
}

/** Concatenates blocks of equal length. */
function blocksTogether(blocks: readonly KernelBlock[]): KernelBlock {
  const { length } = blocks[0]!;
  const together = new Uint32Array(blocks.length * length);
  for (const [i, block] of blocks.entries()) together.set(block, i * length);
  return together;
}
