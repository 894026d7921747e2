import { setTimeout as delay } from 'node:timers/promises';
import { columnBytes } from '../columns/column.js';
import { sharedMemory } from '../core/shared-memory.js';
import { orDeadline } from '../core/waiting.js';
import {
  bulkRowsMin,
  cellsOfBlock,
  idleScansMax,
  inlineRowsMax,
  lineJobsMax,
  lineJobsOfAllMax,
  rowGroupBytesMax,
  rowGroupsAheadMax,
  turnMs,
} from '../core/limits.js';
import { throwIfAborted } from '../store/reading/pace.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { newReadCounters } from '../store/reading/read-counters.js';
import type { HeldColumns, RowGroup, WantedRows } from '../store/reading/snapshot.js';
import type { LineTable } from '../kernels/json-rows.js';
import { Chunks } from './reading-estimate.js';
import type { ScanWork } from './row-group-filter.js';
import {
  giveCellsBack,
  JsonLines,
  takeCells,
  type LinePart,
  partsOf,
  positionIn,
  type Piece,
  takeRows,
  wantedRows,
} from './json-lines.js';
import type { Run } from '../store/manifest/manifest.js';
import { linesTask } from './row-group-task.js';
import type { Matches } from './selection.js';
import { rangeOfRun, type ScanPlan } from './plan.js';
import type { Query } from './query.js';
import { writtenTable, type WrittenTable, type WrittenFields } from './json-columns.js';

/** A scan that can be paused, so that other scans get its memory. */
export interface PausableScan {
  /** Whether it holds a turn. */
  readonly hasTurn: boolean;
  /**
   * Gives back everything that it holds, its turn included, except the piece that its caller has. It continues when its caller asks for the
   * next piece. Resolves when all is given back, and never rejects.
   */
  pause(): Promise<void>;
}

/** An answer that waits for a turn. */
interface Waiter {
  /** Whether it has written no lines yet. */
  readonly isFirst: boolean;
  readonly take: () => void;
}

/**
 * Bounds the memory of all long answers together. Only a few of them at a time write lines ahead, and they take turns. A turn is given back
 * once none of these lines is in memory. While others wait, an answer whose client has not asked for more for `turnMs` is paused.
 */
export class AnswerTurns {
  #free: number;
  /** First lines and further ones are served alternately, so that first lines come soon. */
  readonly #waiting: Waiter[] = [];
  #isForFirst = true;
  /**
   * Scans whose callers have a piece and have not asked for the next, with the time since when, in milliseconds. The longest wait comes
   * first.
   */
  readonly #idle = new Map<PausableScan, number>();
  #isWatching = false;

  /** @param threads number of threads that write lines */
  constructor(threads: number) {
    // One more than `jobsPerTurn`: the job whose lines are being read by the client still holds memory.
    this.#free = Math.floor(lineJobsOfAllMax / (jobsPerTurn(threads) + 1));
  }

  /** Whether a turn that began at `sinceMs` should be given back: others wait, and it has lasted at least `turnMs`. */
  isOver(sinceMs: number): boolean {
    return this.#waiting.length > 0 && performance.now() - sinceMs >= turnMs;
  }

  /** Takes a turn, if one is free. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Waits for a turn, where none is free. Rejects when `signal` is aborted. The caller must hold no memory that others may wait for. */
  wait(isFirst: boolean, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        try {
          throwIfAborted(signal);
        } catch (error) {
          reject(error as Error);
        }
      };
      const take = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const waiter: Waiter = { isFirst, take };
      this.#waiting.push(waiter);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
      void this.#watch();
    });
  }

  /** Gives back a turn, or passes it to the next answer that waits. */
  giveBack(): void {
    const next = this.#waiting.findIndex(({ isFirst }) => isFirst === this.#isForFirst);
    this.#isForFirst = !this.#isForFirst;
    const [waiter] = this.#waiting.splice(Math.max(0, next), 1);
    if (waiter === undefined) this.#free++;
    else waiter.take();
  }

  /**
   * Notes that the caller of a scan has a piece. If more than `idleScansMax` callers have one, the scan that has been idle longest is
   * paused.
   */
  idle(scan: PausableScan): void {
    this.#idle.set(scan, performance.now());
    if (this.#idle.size > idleScansMax) void this.#pause(this.#idle.keys().next().value!);
    void this.#watch();
  }

  /** Notes that a scan continues or has ended. */
  busy(scan: PausableScan): void {
    this.#idle.delete(scan);
  }

  #pause(scan: PausableScan): Promise<void> {
    this.#idle.delete(scan);
    return scan.pause();
  }

  /** While answers wait, pauses idle scans that hold a turn, once their client has taken nothing for `turnMs`, one after another. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    while (this.#waiting.length > 0) {
      const longest = [...this.#idle].find(([{ hasTurn }]) => hasTurn);
      if (longest === undefined) break;
      const [scan, sinceMs] = longest;
      const leftMs = sinceMs + turnMs - performance.now();
      await (leftMs > 0 ? delay(leftMs) : orDeadline(this.#pause(scan), turnMs));
    }
    this.#isWatching = false;
  }
}

/** How many jobs of one answer may be running, or finished with lines that have not been taken. */
export function jobsPerTurn(threads: number): number {
  return Math.max(1, Math.min(2 * threads, lineJobsMax));
}

const turnsOfPools = new WeakMap<WorkerPool, AnswerTurns>();
const turnsWithoutThreads = new AnswerTurns(0);

/** The turns shared by all answers whose lines the threads of `pool` write. */
export function turnsOf(pool: WorkerPool | undefined): AnswerTurns {
  if (pool === undefined) return turnsWithoutThreads;
  const turns = turnsOfPools.get(pool) ?? new AnswerTurns(pool.threads);
  turnsOfPools.set(pool, turns);
  return turns;
}

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

/** What a page is written with. */
interface PageWork extends Pick<LineWork, 'stats' | 'pieceBytes'> {
  readonly bytesMax: number | undefined;
}

/** Row groups of several agents whose rows are written in one order. Holds the table of each by `hold`, which is given one row group. */
export interface MergedGroup {
  hold(
    hold: (rowGroup: RowGroup, written: WrittenFields, neverWaits: boolean) => Promise<HeldTable>,
  ): Promise<HeldTable>;
}

/** Rows of several agents in the order of the answer. */
export interface MergedRows {
  readonly unit: { readonly rowGroup: MergedGroup };
  readonly take: number;
  /** Made of entries of `writeMergedRows`. */
  readonly part: LinePart;
}

/** Matches whose rows are being written. */
interface Source {
  readonly rowGroup: RowGroup | MergedGroup;
  readonly rows: number;
  /** The rows that are left, the next ones last. */
  readonly parts: LinePart[];
  /** Whether threads write them. */
  isForThreads: boolean;
  /** The matches, where their rows may be read by themselves. */
  readonly few: Matches | null;
  /** The table of the rows alone, where these have been read by themselves. */
  table: LineTable | null;
}

/** The table of a row group, while its columns are held in memory. */
export interface HeldTable extends WrittenTable, HeldColumns {
  readonly bytes: number;
}

type ReadyPiece = Omit<HeldPiece, 'isLast'>;

/**
 * Writes matches as lines, in pieces. Few rows are written at once; of many rows, each job of the threads writes about a megabyte, and as many
 * jobs are begun ahead as a turn allows. No columns are held while the caller has a piece, so that a slow client holds only the memory of its
 * lines: where nobody asks for the next piece, nothing is begun.
 */
export class LineWriter {
  readonly #fields: WrittenFields;
  readonly #work: LineWork;
  readonly #jobsMax: number;
  /** Tables of the last row groups: the runs of two segments can alternate row by row. */
  readonly #tables = new Map<RowGroup | MergedGroup, HeldTable>();
  #tablesBytes = 0;
  /** Row groups whose columns the statistics include already. */
  readonly #counted = new Set<RowGroup>();
  /** Matches whose rows have been read with those of the matches before them. */
  readonly #ahead: Source[] = [];
  /** The piece that rows are written to here, and its cells. */
  #lines: { readonly lines: JsonLines; readonly cells: readonly number[] } | null = null;
  /** Pieces to give, and the jobs that write the following ones. Lines that were written here after a job are a job that has ended. */
  readonly #ready: ReadyPiece[] = [];
  readonly #jobs: Promise<readonly ReadyPiece[]>[] = [];
  /** Whether a piece that was written here is full, so that all pieces are to be given before more is written. */
  #isFull = false;
  /** When the turn of the answer began; null where it has none. It is kept while any line that threads have written was not taken. */
  #turnSinceMs: number | null = null;
  #rows = 0;

  /** @param fields those of `Matches`; merged rows bring their own */
  constructor(fields: WrittenFields, work: LineWork) {
    this.#fields = fields;
    this.#work = work;
    this.#jobsMax = work.threads === null ? 0 : jobsPerTurn(work.threads.threadCount);
  }

  get hasTurn(): boolean {
    return this.#turnSinceMs !== null;
  }

  /** Yields the lines of the matches, which it iterates. The caller frees each piece. */
  async *pieces(found: AsyncIterator<Matches | MergedRows, void>): AsyncGenerator<HeldPiece, void> {
    const { pace } = this.#work;
    let coming = Promise.resolve<Source | null>(null);
    let source: Source | null = null;
    let isOver = false;
    try {
      for (;;) {
        await pace.pause();
        if (source === null && !isOver) {
          coming = this.#next(found);
          coming.catch(() => undefined);
          // What has been written is given before matches or columns are waited for.
          while (await this.#isSooner(coming)) yield this.#give(false);
          source = await coming;
          isOver = source === null;
          if (isOver) this.#endPiece();
        } else if (source === null || this.#mustGive || !(await this.#write(source))) {
          if (!(await this.#takeJob())) return;
          yield this.#give(isOver);
        } else if (source.parts.length === 0) source = null;
      }
    } finally {
      this.#close();
      await found.return?.();
      await coming.catch(() => undefined);
    }
  }

  /** The next matches, once the columns that threads need, or rows that are read by themselves, are in memory; null at the end. */
  async #next(found: AsyncIterator<Matches | MergedRows, void>): Promise<Source | null> {
    const source = this.#ahead.shift() ?? (await this.#take(found));
    if (source === null || source.table !== null || !(await this.#prefersRows(source))) return source;
    const sources = [source, ...this.#ahead.splice(0)];
    for (let { rows } = source; rows < inlineRowsMax && sources.length < rowGroupsAheadMax;) {
      const next = await this.#take(found);
      if (next === null) break;
      sources.push(next);
      rows += next.rows;
    }
    await this.#readRows(sources);
    this.#ahead.push(...sources.slice(1));
    return source;
  }

  async #prefersRows({ rowGroup, few }: Source): Promise<boolean> {
    if (few === null) return false;
    const open = await (rowGroup as RowGroup).open(this.#work.threads, this.#work.stats);
    return open.prefersRows?.(this.#fields.fields) === true;
  }

  /** Reads the rows of the first of the sources by themselves, and others that come with them. */
  async #readRows(sources: readonly Source[]): Promise<void> {
    const { stats, threads } = this.#work;
    const { fields } = this.#fields;
    const wanted = new Map<WantedRows, { readonly source: Source; readonly runs: readonly Run[] }>();
    for (const source of sources) {
      if (source.few === null) continue;
      const { indices: rows, runs } = wantedRows(source.few);
      wanted.set({ rowGroup: source.few.unit.rowGroup, rows }, { source, runs });
    }
    const open = await (sources[0]!.rowGroup as RowGroup).open(threads, stats);
    const read = await open.rowsOf!(fields, [...wanted.keys()], stats);
    if (read === null) return;
    const { table } = writtenTable(read.columns, this.#fields);
    let before = 0;
    for (const taken of read.taken) {
      const { source, runs } = wanted.get(taken)!;
      const parts = runs.map(({ partition, firstOrdinal, firstRow, rows }): LinePart => {
        const first = before + firstRow;
        return { rows: null, first, end: first + rows, partition, ordinalOfRow0: firstOrdinal - first };
      });
      source.table = table;
      source.parts.splice(0, source.parts.length, ...parts.reverse());
      before += taken.rows.length;
    }
  }

  /** The next matches; null at the end. */
  async #take(found: AsyncIterator<Matches | MergedRows, void>): Promise<Source | null> {
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
    const parts = 'part' in matches ? [matches.part] : [...partsOf(matches)].reverse();
    const few = isForThreads || 'part' in matches ? null : matches;
    return { rowGroup, rows, parts, isForThreads, few, table: null };
  }

  /** Whether there is a piece to give before the next matches are there. Waits until one of them is. */
  async #isSooner(coming: Promise<unknown>): Promise<boolean> {
    if (this.#ready.length > 0 || this.#jobs.length === 0) return this.#ready.length > 0;
    const [job] = this.#jobs;
    const isSooner = await new Promise<boolean>((resolve, reject) => {
      coming.then(() => resolve(false), reject);
      job!.then(() => resolve(true), reject);
    });
    return isSooner && this.#takeJob();
  }

  get #mustGive(): boolean {
    if (this.#ready.length + this.#jobs.length === 0) this.#isFull = false;
    return this.#isFull || (this.#jobsMax > 0 && this.#jobs.length >= this.#jobsMax);
  }

  /** Waits for the oldest job where no piece is ready. Returns whether there is a piece to give. */
  async #takeJob(): Promise<boolean> {
    const startMs = performance.now();
    while (this.#ready.length === 0 && this.#jobs.length > 0) {
      const pieces = await this.#jobs[0]!;
      void this.#jobs.shift();
      this.#ready.push(...pieces);
    }
    this.#work.stats.writeMs += performance.now() - startMs;
    return this.#ready.length > 0;
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

  async #writeHere({ rowGroup, rows, parts, table: own }: Source): Promise<void> {
    if (this.#jobs.length + this.#ready.length === 0) this.#giveTurnBack();
    const table = own ?? (await this.#tableOf(rowGroup, rows)).table;
    const startMs = performance.now();
    const { lines } = (this.#lines ??= this.#newPiece());
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      const rest = lines.write(table, part);
      if (rest === null) continue;
      parts.push(rest);
      this.#endPiece();
      this.#isFull = true;
      break;
    }
    this.#work.stats.writeMs += performance.now() - startMs;
  }

  #newPiece(): { lines: JsonLines; cells: readonly number[] } {
    const { pieceBytes } = this.#work;
    const cells = takeCells(1, pieceBytes);
    return { lines: new JsonLines(pieceBytes, sharedMemory(), cells), cells };
  }

  /** Ends the piece that rows are written to here. It follows the jobs that have been begun. */
  #endPiece(): void {
    if (this.#lines === null) return;
    const { lines, cells } = this.#lines;
    this.#lines = null;
    const piece = lines.take();
    const free = (): void => giveCellsBack(cells);
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
    const job = this.#writeThere(held, takeRows(source.parts, rows)).finally(() => held.release());
    job.catch(() => undefined);
    this.#work.threads!.track(job);
    this.#jobs.push(job);
    return true;
  }

  async #writeThere({ table, lineBytes }: HeldTable, parts: readonly LinePart[]): Promise<ReadyPiece[]> {
    const { pieceBytes, threads } = this.#work;
    const rows = parts.reduce((sum, { first, end }) => sum + end - first, 0);
    // Cells for the lines, with 25 % to spare. Lines that don't fit in the cells are written to the heap.
    const wanted = Math.min(2 * cellsOfBlock, Math.ceil((1.25 * rows * lineBytes) / pieceBytes) + 1);
    const cells = takeCells(wanted, pieceBytes);
    let filled = 0;
    try {
      const job = { table, cells, parts, pieceBytes };
      const pieces = await threads!.run(linesTask, job);
      return pieces.map(({ bytes, rows, last: at }) => {
        const [part] = parts;
        const last = part!.agents === undefined ? at : positionIn(part!, at.ordinal);
        const piece = { rows, last };
        if (typeof bytes !== 'number') return { ...piece, bytes, free: () => undefined };
        const address = cells[filled++]!;
        const free = (): void => giveCellsBack([address]);
        return { ...piece, bytes: sharedMemory().bytesAt({ address, sizeBytes: bytes }), free };
      });
    } finally {
      giveCellsBack(cells.slice(filled));
    }
  }

  /** Takes a turn where the answer has none, or one that is over. False where pieces have to be given before that. */
  async #takeTurn(): Promise<boolean> {
    const { turns, stats, pace, onTurn } = this.#work;
    if (this.#turnSinceMs !== null && !turns.isOver(this.#turnSinceMs)) return true;
    if (this.#ready.length + this.#jobs.length > 0) return false;
    this.#giveTurnBack();
    if (!turns.tryTake()) {
      onTurn?.(true);
      try {
        await turns.wait(stats.rowsReturned === 0, pace.signal);
      } finally {
        onTurn?.(false);
      }
    }
    this.#turnSinceMs = performance.now();
    return true;
  }

  #giveTurnBack(): void {
    if (this.#turnSinceMs === null) return;
    this.#turnSinceMs = null;
    this.#work.turns.giveBack();
  }

  async #tableOf(rowGroup: RowGroup | MergedGroup, rows: number): Promise<HeldTable> {
    const known = this.#tables.get(rowGroup);
    if (known !== undefined) return known;
    const held = await this.#hold(rowGroup, rows);
    if (this.#tablesBytes + held.bytes > rowGroupBytesMax) this.releaseTables();
    this.#tables.set(rowGroup, held);
    this.#tablesBytes += held.bytes;
    return held;
  }

  /** Releases the columns of tables that are held. They are read again if they are needed again. */
  releaseTables(): void {
    for (const held of this.#tables.values()) held.release();
    this.#tables.clear();
    this.#tablesBytes = 0;
  }

  /** The table of a row group, or of several; the caller releases it. Before it waits for memory, the other tables are released. */
  async #hold(group: RowGroup | MergedGroup, rows: number): Promise<HeldTable> {
    if (!('hold' in group)) return this.#holdOne(group, this.#fields, rows, false);
    return group.hold((rowGroup, written, neverWaits) => this.#holdOne(rowGroup, written, rows, neverWaits));
  }

  async #holdOne(
    rowGroup: RowGroup,
    written: WrittenFields,
    rows: number,
    neverWaits: boolean,
  ): Promise<HeldTable> {
    const { stats, threads, pace } = this.#work;
    const open = await rowGroup.open(threads, stats);
    const counters = newReadCounters();
    const held = await open.columns(written.fields, counters, {
      // Columns that many rows are written from are evicted first: keeping them would cost other queries more than decoding them again.
      use: rows < bulkRowsMin ? 'again' : 'once',
      signal: pace.signal,
      onWait: () => this.releaseTables(),
      neverWaits,
    });
    stats.bytesRead += counters.bytesRead;
    stats.columnsDecoded += counters.columnsDecoded;
    if (!this.#counted.has(rowGroup)) stats.columnsCached += counters.columnsCached;
    this.#counted.add(rowGroup);
    const bytes = held.columns.reduce((sum, column) => sum + columnBytes(column), 0);
    return { ...writtenTable(held.columns, written), ...held, bytes };
  }

  /** Gives back what is held. Memory that threads still use, and the turn, are given back when the threads are done. */
  #close(): void {
    this.releaseTables();
    giveCellsBack(this.#lines?.cells ?? []);
    for (const { free } of this.#ready.splice(0)) free();
    const ended = this.#jobs.splice(0).map((job) =>
      job.then(
        (pieces) => pieces.forEach(({ free }) => free()),
        () => undefined,
      ),
    );
    if (ended.length === 0) this.#giveTurnBack();
    else this.#work.threads!.track(Promise.all(ended).then(() => this.#giveTurnBack()));
  }
}

/**
 * The first piece of the answer to a query without predicates, where its rows are few and their columns in memory. Most requests for the end
 * of a log, or for the pages before it, are of this kind. Nothing is waited for, so none of the objects for that are made. Null otherwise,
 * also where the query may have to read more than `bytesMax`.
 */
export function pageInMemory(
  plan: ScanPlan,
  { limit, predicates }: Query,
  written: WrittenFields,
  { stats, pieceBytes, bytesMax }: PageWork,
): HeldPiece | null {
  const rows = Math.min(limit, plan.rows);
  if (predicates.length > 0 || rows === 0 || rows > inlineRowsMax) return null;
  const startMs = performance.now();
  const counters = newReadCounters();
  const held: HeldColumns[] = [];
  const tables = new Map<RowGroup, WrittenTable>();
  const chunks = new Chunks();
  let [lineBytes, readBytes] = [0, 0];
  try {
    const parts = pageParts(plan, rows);
    for (const { rowGroup, first, end } of parts) {
      if (rowGroup.hides === true) return null;
      let table = tables.get(rowGroup);
      if (table === undefined) {
        const open = rowGroup.opened();
        const found = open?.columnsInMemory?.(written.fields, counters) ?? null;
        if (open === null || found === null) return null;
        held.push(found);
        table = writtenTable(found.columns, written);
        tables.set(rowGroup, table);
        if (bytesMax !== undefined) readBytes += chunks.add(open, written.fields);
      }
      lineBytes += (end - first) * table.lineBytes;
      if (readBytes > (bytesMax ?? Infinity) || lineBytes > pieceBytes) return null;
    }
    const selectedMs = performance.now();
    const cells = takeCells(1, pieceBytes);
    const free = (): void => giveCellsBack(cells);
    const lines = new JsonLines(pieceBytes, sharedMemory(), cells);
    // Where not all lines fit, the rest is asked for after the last of these.
    const isFull = parts.some((part) => lines.write(tables.get(part.rowGroup)!.table, part) !== null);
    const piece = lines.take()!;
    // Those of the following pieces are the same.
    if (stats.rowsReturned === 0) stats.rowGroupsScanned = tables.size;
    if (stats.rowsReturned === 0) stats.columnsCached += counters.columnsCached;
    stats.rowsReturned += piece.rows;
    stats.selectMs += selectedMs - startMs;
    stats.writeMs += performance.now() - selectedMs;
    return { ...piece, free, isLast: !isFull };
  } finally {
    for (const found of held) found.release();
  }
}

/** The first or last rows of a plan, in the order of the answer. */
function pageParts(plan: ScanPlan, rows: number): (LinePart & { readonly rowGroup: RowGroup })[] {
  const isForward = plan.direction === 'forward';
  const parts = [];
  let left = rows;
  for (let i = isForward ? plan.first : plan.end - 1; left > 0; i += isForward ? 1 : -1) {
    const range = rangeOfRun(plan, i);
    if (range === null) continue;
    const taken = Math.min(left, range.rows);
    left -= taken;
    const { partition, firstOrdinal, firstRow } = range;
    const first = firstRow + (isForward ? 0 : range.rows - taken);
    const ordinalOfRow0 = firstOrdinal - firstRow;
    const { rowGroup } = plan.runs.at(i)!;
    parts.push({ rowGroup, rows: null, first, end: first + taken, partition, ordinalOfRow0 });
  }
  return isForward ? parts : parts.reverse();
}
