import type { BytesColumn, Column, DictionaryColumn, PlainColumn } from '../column.js';
import { arraysOf } from '../column.js';
import { columnLayout } from '../column-layout.js';
import { sharedMemory } from '../kernels/shared-memory.js';
import { inlineSearchBytesMax, selectScratchBytes } from '../limits.js';
import type { Schema } from '../schema.js';
import { withLease } from './column-lease.js';
import { evaluateDictionary, evaluatePlain, matchRow, stepEnd, wantedEntries } from './evaluate.js';
import type { Pace } from './pace.js';
import type { RowGroupShare } from './plan.js';
import type { PreparedPredicate } from './predicate.js';
import type { ScanStats } from './query.js';
import type { QueryThreads } from './query-threads.js';
import { RemainingRows } from './remaining-rows.js';
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
  selection(): Selection | Promise<Selection>;
}

const everyRow: Looking = { selection: () => ({ kind: 'all' }) };

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
    if (this.#predicates.length === 0) {
      this.#stats.rowGroupsScanned++;
      return everyRow;
    }
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
    const remaining = new RemainingRows(rows, share);
    let byDictionaryOnly = true;
    undecided.sort((a, b) => rank(a) - rank(b));
    for (const observed of undecided) {
      await this.#pace.pause();
      const before = remaining.count;
      // Each column is let go when it has been evaluated: nothing is held while the next one waits for memory.
      const byDictionary = await withLease(
        { signal: this.#pace.signal, onWait: this.#onWait },
        async (lease) => {
          const [column] = await open.columns([observed.predicate.field], stats, lease);
          observed.cost = costOf(observed.predicate, column!);
          if (column!.kind === 'dictionary')
            return narrowByDictionary(observed.predicate, column!, remaining);
          await this.#narrowPlain(observed.predicate, column!, remaining);
          return false;
        },
      );
      if (!byDictionary) byDictionaryOnly = false;
      observed.rowsSeen += before;
      observed.rowsPassed += remaining.count;
      if (remaining.count === 0) break;
    }
    if (remaining.count === 0 && byDictionaryOnly) stats.rowGroupsPrunedByDictionary++;
    else {
      stats.rowGroupsScanned++;
      stats.rowsScanned += share.endRow - share.firstRow;
    }
    return remaining.selection();
  }

  /** Leaves of the remaining rows those that match, by a plain column. */
  async #narrowPlain(
    predicate: PreparedPredicate,
    column: PlainColumn,
    remaining: RemainingRows,
  ): Promise<void> {
    const { from, to } = remaining.range;
    if (column.kind === 'bytes' && remaining.count * sparseShare < to - from) {
      remaining.keepEach((row) => matchRow(predicate, column, row));
      return;
    }
    const found = column.kind === 'bytes' ? await this.#searchThere(predicate, column, from, to) : null;
    if (found !== null) {
      remaining.keep(found);
      return;
    }
    const matches = remaining.room();
    for (let at = from; at < to;) {
      const end = stepEnd(column, at, to);
      evaluatePlain(predicate, column, at, end, matches);
      at = end;
      if (this.#pace.due) await this.#pace.pause();
    }
    remaining.keep(matches);
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

/** Leaves of the remaining rows those that match; returns whether the dictionary alone has said that it is none. */
function narrowByDictionary(
  predicate: PreparedPredicate,
  column: DictionaryColumn,
  remaining: RemainingRows,
): boolean {
  const wanted = wantedEntries(predicate, column);
  if (wanted === null) {
    remaining.clear();
    return true;
  }
  const { from, to } = remaining.range;
  const matches = remaining.room();
  evaluateDictionary(column, wanted, from, to, matches);
  remaining.keep(matches);
  return false;
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
