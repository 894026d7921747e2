import { columnBytes } from '../../columns/column.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import { bulkRowsMin, cellsOfBlock, inlineRowsMax, rowGroupBytesMax } from '../../terms/limits.js';
import { newReadCounters } from '../../store/reading/read-counters.js';
import type { HeldColumns, RowGroup } from '../../store/reading/snapshot.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import type { Matches } from '../job/selection.js';
import { jobsPerTurn, type AnswerTurns, type Turn } from './answer-turns.js';
import { writtenTable, type WrittenTable, type WrittenFields } from './json-columns.js';
import { JsonLines, type Piece, PartCutter, packParts, partsOf, type LinePart } from '../job/line-parts.js';
import { linesTask } from '../job/row-group-task.js';
import { CellSpace, takeCells } from '../job/piece-space.js';

/** A piece, and the function that gives back its memory. */
export interface HeldPiece extends Piece {
  readonly free: () => void;
  /** Whether it is known that no other piece follows. */
  readonly isLast: boolean;
}

/** What lines are written with. */
export interface LineWork extends ScanWork {
  readonly turns: AnswerTurns;
  readonly onTurn?: ((waits: boolean) => void) | undefined;
  /** Bytes of a piece, unless it consists of one longer line. */
  readonly pieceBytes: number;
}

/** Matches whose rows are being written. */
interface Source {
  readonly rowGroup: RowGroup;
  readonly rows: number;
  readonly parts: PartCutter;
  /** Whether threads write them. */
  isForThreads: boolean;
}

/** The table of a row group, while its columns are held in memory. */
interface HeldTable extends WrittenTable, HeldColumns {
  readonly bytes: number;
}

/** A promise that can be asked whether it has settled. */
interface Coming<T> {
  readonly promise: Promise<T>;
  isHere: boolean;
}

/**
 * Writes matches as lines, in pieces. Few rows are written at once; of many rows, each job of the threads writes about a megabyte, and as many
 * jobs are begun ahead as a turn allows. No columns are held while the caller has a piece, so that a slow client holds only the memory of its
 * lines: where nobody asks for the next piece, nothing is begun.
 */
export class LineWriter {
  readonly #fields: WrittenFields;
  readonly #work: LineWork;
  readonly #jobsMax: number;
  /** Tables of the last row groups, least recently used first: the runs of two segments can alternate row by row. */
  readonly #tables = new Map<RowGroup, HeldTable>();
  #tablesBytes = 0;
  /** Row groups whose columns the statistics include already. */
  readonly #counted = new Set<RowGroup>();
  /** The piece that rows are written to here, and its memory. */
  #lines: { readonly lines: JsonLines; readonly space: CellSpace } | null = null;
  /** Pieces to give, and the jobs that write the following ones. Lines that were written here after a job are a job that has ended. */
  readonly #ready: Omit<HeldPiece, 'isLast'>[] = [];
  readonly #jobs: Promise<readonly Omit<HeldPiece, 'isLast'>[]>[] = [];
  /** Whether a piece that was written here is full, so that all pieces are to be given before more is written. */
  #isFull = false;
  #turn: Turn | null = null;
  #rows = 0;

  constructor(fields: WrittenFields, work: LineWork) {
    this.#fields = fields;
    this.#work = work;
    this.#jobsMax = work.threads === null ? 0 : jobsPerTurn(work.threads.threadCount);
  }

  /** The turn that the answer holds. It is kept while any line that threads have written was not taken. */
  get turn(): Turn | null {
    return this.#turn;
  }

  /** Yields the lines of the matches, which it iterates. The caller frees each piece. */
  async *pieces(found: AsyncIterator<Matches, void>): AsyncGenerator<HeldPiece, void> {
    const { pace } = this.#work;
    let coming: Coming<Source | null> | null = null;
    let source: Source | null = null;
    let isOver = false;
    try {
      for (;;) {
        await pace.pause();
        if (source === null && !isOver) {
          coming = comingOf(this.#next(found));
          // What has been written is given before matches or columns are waited for.
          while (!(await this.#arrives(coming))) yield this.#give(false);
          source = await coming.promise;
          isOver = source === null;
          if (isOver) this.#endPiece();
        } else if (source === null || this.#mustGive || !(await this.#write(source))) {
          await this.#takeJob();
          if (this.#ready.length === 0) return;
          yield this.#give(isOver);
        } else if (source.parts.isAtEnd) source = null;
      }
    } finally {
      this.#close();
      await found.return?.();
      await coming?.promise.catch(() => undefined);
    }
  }

  /** The next matches, once the columns that threads need are in memory; null at the end. */
  async #next(found: AsyncIterator<Matches, void>): Promise<Source | null> {
    const result = await found.next();
    if (result.done === true) return null;
    const matches = result.value;
    const { rowGroup } = matches.unit;
    const rows = matches.take;
    // Handing over few rows takes longer than writing them here, unless the answer is long already.
    const isMany = rows >= bulkRowsMin || (rows >= inlineRowsMax && this.#rows >= inlineRowsMax);
    const isForThreads = isMany && this.#work.threads !== null;
    this.#rows += rows;
    // They are not held, because this answer may wait for its client before it uses them.
    if (isForThreads) (await this.#hold(rowGroup, rows)).release();
    return { rowGroup, rows, parts: new PartCutter(partsOf(matches)), isForThreads };
  }

  /** Waits for matches, or until there is a piece to give. Returns false in the second case. */
  async #arrives(coming: Coming<unknown>): Promise<boolean> {
    if (this.#ready.length === 0 && this.#jobs.length > 0) {
      await either(coming.promise, this.#jobs[0]!);
      if (!coming.isHere) await this.#takeJob();
    }
    return coming.isHere || this.#ready.length === 0;
  }

  get #mustGive(): boolean {
    if (this.#ready.length + this.#jobs.length === 0) this.#isFull = false;
    return this.#isFull || (this.#jobsMax > 0 && this.#jobs.length >= this.#jobsMax);
  }

  /** Waits for the oldest job where no piece is ready. */
  async #takeJob(): Promise<void> {
    const startMs = performance.now();
    while (this.#ready.length === 0 && this.#jobs.length > 0) {
      const pieces = await this.#jobs[0]!;
      void this.#jobs.shift();
      this.#ready.push(...pieces);
    }
    this.#work.stats.writeMs += performance.now() - startMs;
  }

  #give(isOver: boolean): HeldPiece {
    this.releaseTables();
    const piece = this.#ready.shift()!;
    this.#work.stats.rowsReturned += piece.rows;
    return { ...piece, isLast: isOver && this.#ready.length + this.#jobs.length === 0 };
  }

  /** Writes rows, up to the end of a piece, or begins a job. Returns false where pieces have to be given before that. */
  async #write(source: Source): Promise<boolean> {
    if (!source.isForThreads) {
      await this.#writeHere(source);
      return true;
    }
    this.#endPiece();
    return this.#beginJob(source);
  }

  async #writeHere({ rowGroup, rows, parts }: Source): Promise<void> {
    if (this.#jobs.length + this.#ready.length === 0) this.#releaseTurn();
    const { table } = await this.#tableOf(rowGroup, rows);
    const startMs = performance.now();
    const { lines } = (this.#lines ??= this.#newPiece());
    for (let part = parts.next(); part !== undefined; part = parts.next()) {
      const next = lines.write(table, part, part.first, part.end);
      if (next === part.end) continue;
      parts.putBack({ ...part, first: next });
      this.#endPiece();
      this.#isFull = true;
      break;
    }
    this.#work.stats.writeMs += performance.now() - startMs;
  }

  #newPiece(): { lines: JsonLines; space: CellSpace } {
    const { pieceBytes } = this.#work;
    const space = new CellSpace(sharedMemory(), takeCells(1, pieceBytes));
    return { lines: new JsonLines(pieceBytes, space), space };
  }

  /** Ends the piece that rows are written to here. It follows the jobs that have been begun. */
  #endPiece(): void {
    if (this.#lines === null) return;
    const { lines, space } = this.#lines;
    this.#lines = null;
    const piece = lines.take();
    const free = (): void => space.free();
    if (piece === null) free();
    else if (this.#jobs.length === 0) this.#ready.push({ ...piece, free });
    else this.#jobs.push(Promise.resolve([{ ...piece, free }]));
  }

  /** Has a thread write the next rows. False where the answer has to wait for a turn while it has pieces. */
  async #beginJob(source: Source): Promise<boolean> {
    if (!(await this.#takeTurn())) return false;
    const held = await this.#hold(source.rowGroup, source.rows);
    if (held.table.columns !== null) {
      // Columns that are not in the kernels' memory would have to be copied to the thread.
      held.release();
      source.isForThreads = false;
      return true;
    }
    const rows = Math.max(1, Math.floor((cellsOfBlock * this.#work.pieceBytes) / held.lineBytes));
    const job = this.#writeThere(held, source.parts.take(rows)).finally(() => held.release());
    job.catch(() => undefined);
    this.#work.threads!.track(job);
    this.#jobs.push(job);
    return true;
  }

  async #writeThere({ table, lineBytes }: HeldTable, parts: readonly LinePart[]) {
    const { pieceBytes, threads } = this.#work;
    const rows = parts.reduce((sum, { first, end }) => sum + end - first, 0);
    // Cells for the lines, with 25 % to spare. Lines that don't fit in the cells are written to the heap.
    const wanted = Math.min(2 * cellsOfBlock, Math.ceil((1.25 * rows * lineBytes) / pieceBytes) + 1);
    const space = new CellSpace(sharedMemory(), takeCells(wanted, pieceBytes));
    try {
      const { block, columnCount, fixedBytes, format } = table;
      const pieces = await threads!.run(linesTask, {
        block,
        columnCount,
        fixedBytes,
        format,
        cells: space.cells,
        parts: packParts(parts),
        pieceBytes,
      });
      return pieces.map(({ piece, rows: count }) => ({ ...space.given(piece), rows: count }));
    } finally {
      space.freeUnused();
    }
  }

  /** Takes a turn where the answer holds none, or holds one that is over. False where pieces have to be given before that. */
  async #takeTurn(): Promise<boolean> {
    const { turns, stats, pace, onTurn } = this.#work;
    if (this.#turn?.isOver === false) return true;
    if (this.#ready.length + this.#jobs.length > 0) return false;
    this.#releaseTurn();
    this.#turn = turns.tryTake();
    if (this.#turn !== null) return true;
    onTurn?.(true);
    try {
      this.#turn = await turns.wait(stats.rowsReturned === 0 ? 'first' : 'next', pace.signal);
    } finally {
      onTurn?.(false);
    }
    return true;
  }

  #releaseTurn(): void {
    this.#turn?.release();
    this.#turn = null;
  }

  async #tableOf(rowGroup: RowGroup, rows: number): Promise<HeldTable> {
    const known = this.#tables.get(rowGroup);
    if (known !== undefined) {
      this.#tables.delete(rowGroup);
      this.#tables.set(rowGroup, known);
      return known;
    }
    const held = await this.#hold(rowGroup, rows);
    for (const other of this.#tables.keys()) {
      if (this.#tablesBytes + held.bytes <= rowGroupBytesMax) break;
      this.#forget(other);
    }
    this.#tables.set(rowGroup, held);
    this.#tablesBytes += held.bytes;
    return held;
  }

  /** Releases the columns of tables that are held. They are read again if they are needed again. */
  releaseTables(): void {
    for (const rowGroup of this.#tables.keys()) this.#forget(rowGroup);
  }

  #forget(rowGroup: RowGroup): void {
    const held = this.#tables.get(rowGroup)!;
    this.#tables.delete(rowGroup);
    this.#tablesBytes -= held.bytes;
    held.release();
  }

  /** The table of a row group, which the caller releases. Before it waits for memory, the other tables are released. */
  async #hold(rowGroup: RowGroup, rows: number): Promise<HeldTable> {
    const { stats, threads, pace } = this.#work;
    const open = await rowGroup.open(threads, stats);
    const counters = newReadCounters();
    const held = await open.columns(this.#fields.fields, counters, {
      // Columns that many rows are written from are evicted first: keeping them would cost other queries more than decoding them again.
      use: rows < bulkRowsMin ? 'again' : 'once',
      signal: pace.signal,
      onWait: () => this.releaseTables(),
    });
    stats.bytesRead += counters.bytesRead;
    stats.columnsDecoded += counters.columnsDecoded;
    if (!this.#counted.has(rowGroup)) stats.columnsCached += counters.columnsCached;
    this.#counted.add(rowGroup);
    const bytes = held.columns.reduce((sum, column) => sum + columnBytes(column), 0);
    return { ...writtenTable(held.columns, this.#fields), ...held, bytes };
  }

  /** Gives back what is held. Memory that threads still use, and the turn, are given back when the threads are done. */
  #close(): void {
    this.releaseTables();
    this.#lines?.space.free();
    for (const { free } of this.#ready.splice(0)) free();
    const ended = this.#jobs.splice(0).map((job) =>
      job.then(
        (pieces) => pieces.forEach(({ free }) => free()),
        () => undefined,
      ),
    );
    if (ended.length === 0) this.#releaseTurn();
    else this.#work.threads!.track(Promise.all(ended).then(() => this.#releaseTurn()));
  }
}

function comingOf<T>(promise: Promise<T>): Coming<T> {
  const coming = { promise, isHere: false };
  const arrive = (): void => void (coming.isHere = true);
  promise.then(arrive, arrive);
  return coming;
}

/** Resolves when one of two promises has settled. */
function either(one: Promise<unknown>, other: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    for (const promise of [one, other])
      promise.then(
        () => resolve(),
        () => resolve(),
      );
  });
}
