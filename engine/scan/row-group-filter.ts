import type { BytesColumn, Column, PlainColumn } from '../column.js';
import { arraysOf, bitmapBytes } from '../column.js';
import { columnLayout } from '../column-layout.js';
import { setRange } from '../kernels/bitmap.js';
import { sharedMemory } from '../kernels/shared-memory.js';
import { andRange, countRange, listRange } from '../kernels/simd/bitmap.js';
import { inlineSearchBytesMax, selectScratchBytes } from '../limits.js';
import type { Schema } from '../schema.js';
import { withLease } from './column-lease.js';
import { evaluateDictionary, evaluatePlain, matchRow, stepEnd, wantedEntries } from './evaluate.js';
import type { Pace } from './pace.js';
import type { RowGroupShare } from './plan.js';
import type { PreparedPredicate } from './predicate.js';
import type { ScanStats } from './query.js';
import type { QueryThreads } from './query-threads.js';
import type { Selection } from './selection.js';
import type { OpenRowGroup, RowGroup } from './snapshot.js';
import { prunedByTime, zoneVerdict } from './zone-pruning.js';

/** A predicate, and what the row groups so far have shown of it. */
interface Observed {
  readonly predicate: PreparedPredicate;
  /** Cost of a row in about the time that a numeric compare takes. */
  cost: number;
  rowsSeen: number;
  rowsPassed: number;
}

const dictionaryCost = 1;
const numericCost = 2;

/** Below one row in this many, strings are compared row by row instead of as one text. */
const sparseShare = 64;

/** What the parts of one scan have in common. */
export interface ScanWork {
  readonly stats: ScanStats;
  readonly pace: Pace;
  /** Null where everything is done by the thread that asks. */
  readonly threads: QueryThreads | null;
  /** Called before a wait for memory: gives back what the scan holds. */
  readonly onWait?: (() => void) | undefined;
}

/** A row group that is being looked at. */
export interface Looking {
  /** The matching rows. Where nothing must be waited for they are looked for only now. */
  selection(): Promise<Selection>;
}

/** A row group whose columns have to be read to know which rows match. */
interface Undecided {
  readonly kind: 'undecided';
  readonly open: OpenRowGroup;
  readonly predicates: Observed[];
}

/**
 * Finds the rows of row groups that match all predicates: what costs least and excludes most is asked first, and nothing
 * is read any more once no row is left.
 */
export class RowGroupFilter {
  readonly #schema: Schema;
  readonly #predicates: readonly PreparedPredicate[];
  readonly #observed: readonly Observed[];
  readonly #stats: ScanStats;
  readonly #pace: Pace;
  readonly #threads: QueryThreads | null;
  readonly #onWait: (() => void) | undefined;
  /** Bytes of strings that the asking thread has searched by itself. */
  #searchedBytes = 0;

  constructor(schema: Schema, predicates: readonly PreparedPredicate[], work: ScanWork) {
    const { stats, pace, threads } = work;
    this.#onWait = work.onWait;
    this.#schema = schema;
    this.#predicates = predicates;
    this.#observed = predicates.map((predicate) => ({
      predicate,
      cost: initialCost(predicate),
      rowsSeen: 0,
      rowsPassed: 0,
    }));
    this.#stats = stats;
    this.#pace = pace;
    this.#threads = threads;
  }

  /**
   * Begins to look for the matching rows of the share. Bits outside the share are 0; `all` means all rows of the share.
   * A failure is told by `selection`, which may never be asked for.
   */
  look(rowGroup: RowGroup, share: RowGroupShare): Looking {
    const threads = this.#threads;
    const evaluate = ({ open, predicates }: Undecided): Promise<Selection> =>
      this.#evaluate(open, rowGroup.rows, share, predicates);
    const ahead = this.#prune(rowGroup).then((pruned) => {
      if (threads === null || pruned.kind !== 'undecided') return pruned;
      // A little that is in memory is searched sooner than handed over.
      if (isAtHand(pruned) && this.#searchedBytes <= inlineSearchBytesMax) return pruned;
      return threads.inTurn(() => evaluate(pruned));
    });
    ahead.catch(() => {});
    threads?.track(ahead);
    let selection: Promise<Selection> | undefined;
    const decide = async (): Promise<Selection> => {
      const pruned = await ahead;
      return pruned.kind === 'undecided' ? evaluate(pruned) : pruned;
    };
    return { selection: () => (selection ??= decide()) };
  }

  /** What can be said without a column. */
  async #prune(rowGroup: RowGroup): Promise<Selection | Undecided> {
    const stats = this.#stats;
    if (prunedByTime(rowGroup, this.#predicates, this.#schema)) {
      stats.rowGroupsPrunedByTime++;
      return { kind: 'none' };
    }
    if (this.#predicates.length === 0) {
      stats.rowGroupsScanned++;
      return { kind: 'all' };
    }
    const open = await rowGroup.open(this.#threads);
    const undecided: Observed[] = [];
    for (const observed of this.#observed) {
      const verdict = zoneVerdict(observed.predicate, open.zone(observed.predicate.field));
      if (verdict === 'none') {
        stats.rowGroupsPrunedByZone++;
        return { kind: 'none' };
      }
      if (verdict === 'some') undecided.push(observed);
    }
    if (!(await this.#mayContain(open, undecided))) {
      stats.rowGroupsPrunedByGram++;
      return { kind: 'none' };
    }
    if (undecided.length === 0) {
      stats.rowGroupsScanned++;
      return { kind: 'all' };
    }
    return { kind: 'undecided', open, predicates: undecided };
  }

  /** Asks the gram filters, the longest needle first: it has the most grams to be missed. */
  async #mayContain(open: OpenRowGroup, undecided: readonly Observed[]): Promise<boolean> {
    const needles = undecided
      .map((observed) => observed.predicate)
      .filter((predicate) => predicate.kind === 'string')
      .filter((predicate) => predicate.needle.folded.length > 0)
      .sort((a, b) => b.needle.folded.length - a.needle.folded.length);
    for (const { field, needle } of needles) {
      if (!(await open.mayContain(field, needle.folded, this.#stats))) return false;
    }
    return true;
  }

  async #evaluate(
    open: OpenRowGroup,
    rows: number,
    share: RowGroupShare,
    undecided: Observed[],
  ): Promise<Selection> {
    const stats = this.#stats;
    const { firstRow, endRow } = share;
    const bits = new Uint8Array(bitmapBytes(rows));
    setRange(bits, firstRow, endRow);
    const matches = new Uint8Array(bitmapBytes(rows));
    let left = endRow - firstRow;
    let byDictionaryOnly = true;
    undecided.sort((a, b) => rank(a) - rank(b));
    for (const observed of undecided) {
      await this.#pace.pause();
      const before = left;
      // Each column is let go when it has been evaluated: nothing is held while the next one waits for memory.
      const verdict = await withLease({ signal: this.#pace.signal, onWait: this.#onWait }, async (lease) => {
        const [column] = await open.columns([observed.predicate.field], stats, lease);
        observed.cost = costOf(observed.predicate, column!);
        return this.#narrow(observed.predicate, column!, share, left, bits, matches);
      });
      left = verdict.left;
      if (!verdict.byDictionary) byDictionaryOnly = false;
      observed.rowsSeen += before;
      observed.rowsPassed += left;
      if (left === 0) break;
    }
    if (left === 0 && byDictionaryOnly) stats.rowGroupsPrunedByDictionary++;
    else {
      stats.rowGroupsScanned++;
      stats.rowsScanned += endRow - firstRow;
    }
    return left === 0 ? { kind: 'none' } : { kind: 'bits', bits };
  }

  /**
   * Clears the bits of the rows that don't match; returns how many of the `left` rows are left, and whether a dictionary
   * alone has said that it is none.
   */
  async #narrow(
    predicate: PreparedPredicate,
    column: Column,
    share: RowGroupShare,
    left: number,
    bits: Uint8Array,
    matches: Uint8Array,
  ): Promise<{ left: number; byDictionary: boolean }> {
    if (column.kind !== 'dictionary') {
      return {
        left: await this.#narrowPlain(predicate, column, share, left, bits, matches),
        byDictionary: false,
      };
    }
    const { wanted, count } = wantedEntries(predicate, column);
    if (count === 0) return { left: 0, byDictionary: true };
    const { firstRow, endRow } = share;
    evaluateDictionary(column, wanted, firstRow & ~7, endRow, matches);
    andRange(bits, matches, firstRow & ~7, endRow);
    return { left: countRange(bits, firstRow, endRow), byDictionary: false };
  }

  /** The same for a plain column. */
  async #narrowPlain(
    predicate: PreparedPredicate,
    column: PlainColumn,
    share: RowGroupShare,
    left: number,
    bits: Uint8Array,
    matches: Uint8Array,
  ): Promise<number> {
    const { firstRow, endRow } = share;
    if (column.kind === 'bytes' && left * sparseShare < endRow - firstRow) {
      const rows = new Uint32Array(left);
      listRange(bits, firstRow, endRow, rows, 0);
      let passed = 0;
      for (const row of rows) {
        if (matchRow(predicate, column, row)) passed++;
        else bits[row >> 3]! &= ~(1 << (row & 7));
      }
      return passed;
    }
    const begin = firstRow & ~7;
    const found = column.kind === 'bytes' ? await this.#searchThere(predicate, column, begin, endRow) : null;
    if (found !== null) {
      andRange(bits, found, begin, endRow);
      return countRange(bits, firstRow, endRow);
    }
    for (let from = begin; from < endRow;) {
      const to = stepEnd(column, from, endRow);
      evaluatePlain(predicate, column, from, to, matches);
      from = to;
      if (this.#pace.due) await this.#pace.pause();
    }
    andRange(bits, matches, begin, endRow);
    return countRange(bits, firstRow, endRow);
  }

  /** The rows [from, to) that match, found by another thread; null where this one is to look itself. */
  async #searchThere(
    predicate: PreparedPredicate,
    column: BytesColumn,
    from: number,
    to: number,
  ): Promise<Uint8Array | null> {
    const threads = this.#threads;
    const isFirst = this.#searchedBytes === 0;
    this.#searchedBytes += column.offsets[to]! - column.offsets[from]!;
    if (threads === null || isFirst || this.#searchedBytes <= inlineSearchBytesMax) return null;
    const memory = sharedMemory();
    // Elsewhere, the job would have to take a copy of the column along.
    if (memory === null || !arraysOf(column).every((array) => memory.holds(array))) return null;
    const address = memory.allocate(selectScratchBytes);
    if (address === null) return null;
    try {
      const scratch = memory.rangeAt(address, selectScratchBytes);
      return await threads.selectRows({ predicate, layout: columnLayout(column), scratch, from, to });
    } finally {
      memory.free(address);
    }
  }
}

/** Whether every column that may be needed is in memory. */
function isAtHand({ open, predicates }: Undecided): boolean {
  return predicates.every(({ predicate }) => open.isAtHand(predicate.field));
}

/** Lower is asked earlier: cost for each row excluded. */
function rank(observed: Observed): number {
  // Nothing is known at first: half of the rows is as good a guess as any.
  const passed = (observed.rowsPassed + 32) / (observed.rowsSeen + 64);
  return observed.cost / (1.01 - passed);
}

/** Before any column has been seen. */
function initialCost(predicate: PreparedPredicate): number {
  return predicate.kind === 'string' ? searchCost(predicate) : numericCost;
}

function costOf(predicate: PreparedPredicate, column: Column): number {
  if (column.kind === 'dictionary') return dictionaryCost;
  return predicate.kind === 'string' ? searchCost(predicate) : numericCost;
}

function searchCost(predicate: PreparedPredicate & { kind: 'string' }): number {
  return predicate.needle.op === 'like' ? 40 : 5;
}
