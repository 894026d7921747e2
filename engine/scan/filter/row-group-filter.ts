import type { BytesColumn, DictionaryColumn, PlainColumn } from '../../columns/column.js';
import { arraysOf, columnBytes } from '../../columns/column.js';
import { columnLayout } from '../../columns/column-layout.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import {
  inlineCompareBytesMax,
  inlineMatchesMax,
  inlineRowGroupsMax,
  inlineSearchBytesMax,
  selectScratchBytes,
} from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { evaluateDictionary, evaluatePlain, matchRow, stepEnd, wantedEntries } from './evaluate.js';
import { NarrowingQueue } from './narrowing-queue.js';
import {
  costOf,
  initialCost,
  numericCost,
  rank,
  type RankedPredicate,
  type Undecided,
} from './ranked-predicate.js';
import { StreamedSearch } from './streamed-search.js';
import type { Pace } from '../../store/reading/pace.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { Needle } from './needle.js';
import type { PreparedPredicate } from './predicate.js';
import type { ScanStats } from '../plan/query.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import { selectTask } from './select-task.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import type { OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
import { completed, settled, type Steps } from '../../store/reading/steps.js';
import { prunedByTime, zoneVerdict } from './zone-pruning.js';

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

/** The rows of a row group that match, which may not be known yet. */
export interface PendingSelection {
  /** The matching rows. Where nothing has to be waited for, they are only looked for when this is called. */
  selection(): Steps<never, Selection>;
}

/** Looks for the matching rows when they are asked for first, and remembers them: a row group may have several units. */
class DeferredSelection implements PendingSelection {
  readonly #decide: () => Steps<never, Selection>;
  #selection: Selection | undefined;

  constructor(decide: () => Steps<never, Selection>) {
    this.#decide = decide;
  }

  *selection(): Steps<never, Selection> {
    this.#selection ??= yield* this.#decide();
    return this.#selection;
  }
}

function decided(selection: Selection): PendingSelection {
  return {
    *selection() {
      return selection;
    },
  };
}

const everyRow = decided({ kind: 'all' });
const noRow = decided({ kind: 'none' });

/** What can be said of a row group without a column. */
type Pruned = Selection | Undecided;

/**
 * Finds the rows of row groups that match all predicates: what costs least and excludes most is asked first, and nothing
 * is read any more once no row is left.
 */
export class RowGroupFilter {
  readonly #schema: Schema;
  readonly #predicates: readonly PreparedPredicate[];
  readonly #ranked: readonly RankedPredicate[];
  /** Those of them that gram filters can be asked about, with their needles; the longest needle first. */
  readonly #searched: readonly { readonly ranked: RankedPredicate; readonly needles: readonly Needle[] }[];
  readonly #stats: ScanStats;
  readonly #pace: Pace;
  readonly #threads: QueryThreads | null;
  readonly #onWait: (() => void) | undefined;
  readonly #streamed = new StreamedSearch();
  /** Bytes of strings that the asking thread has searched by itself. */
  #searchedBytes = 0;
  /** Row groups that it has looked at by itself, and those of them that no dictionary alone has ruled out. */
  #lookedAt = 0;
  #compared = 0;
  /** Bytes of the columns that it has compared, and rows that have matched. */
  #comparedBytes = 0;
  #matches = 0;
  readonly #narrowing: NarrowingQueue | null;

  constructor(schema: Schema, predicates: readonly PreparedPredicate[], work: ScanWork) {
    const { stats, pace, threads } = work;
    this.#onWait = work.onWait;
    this.#schema = schema;
    this.#predicates = predicates;
    this.#ranked = predicates.map((predicate) => ({
      predicate,
      cost: initialCost(predicate),
      rowsSeen: 0,
      rowsPassed: 0,
    }));
    this.#searched = this.#ranked
      .map((ranked) => ({ ranked, needles: ranked.predicate.needles }))
      .filter(({ needles }) => needles.length > 0)
      .sort((a, b) => shortest(b.needles) - shortest(a.needles));
    this.#stats = stats;
    this.#pace = pace;
    this.#threads = threads;
    this.#narrowing = threads === null ? null : new NarrowingQueue(threads, stats, pace.signal);
  }

  /**
   * Begins to look for the matching rows of the share. Bits outside the share are 0; `all` means all rows of the share.
   * What can only be known by waiting is told by `selection`, which may never be asked for, and so is a failure of that.
   */
  look(rowGroup: RowGroup, share: RowGroupShare): PendingSelection {
    if (this.#predicates.length === 0) {
      this.#stats.rowGroupsScanned++;
      return everyRow;
    }
    const pruned = this.#prune(rowGroup);
    const evaluate = (undecided: Undecided): Steps<never, Selection> =>
      this.#evaluate(undecided, rowGroup.rows, share);
    if (!(pruned instanceof Promise)) {
      if (pruned.kind === 'none') return noRow;
      if (pruned.kind !== 'undecided') return decided(pruned);
      if (this.#isForHere(pruned)) {
        const find = this.#isOneOfMany(pruned) ? this.#narrowing!.add(pruned, rowGroup.rows, share) : null;
        return new DeferredSelection(function* () {
          return (find === null ? null : yield* find()) ?? (yield* evaluate(pruned));
        });
      }
    }
    const ahead = this.#lookAhead(pruned, evaluate);
    ahead.catch(() => {});
    this.#threads?.track(ahead);
    return new DeferredSelection(function* () {
      const known = yield* settled(ahead);
      return known.kind === 'undecided' ? yield* evaluate(known) : known;
    });
  }

  /** What threads find before anybody asks for it; `undecided` where that is left to the thread that asks. */
  async #lookAhead(
    pruning: Pruned | Promise<Pruned>,
    evaluate: (undecided: Undecided) => Steps<never, Selection>,
  ): Promise<Pruned> {
    const pruned = await pruning;
    if (pruned.kind !== 'undecided' || this.#threads === null || this.#isForHere(pruned)) return pruned;
    return this.#threads.inTurn(() => completed(evaluate(pruned)));
  }

  /** Whether the thread that asks is to look by itself: without others, and where a little that is in memory is searched sooner than handed over. */
  #isForHere(undecided: Undecided): boolean {
    return this.#threads === null || (isAtHand(undecided) && this.#searchedBytes <= inlineSearchBytesMax);
  }

  /**
   * Whether threads are to look at a row group whose columns are in memory, together with others: when much has been compared here, or
   * much found, and as far as is known no text has to be searched.
   */
  #isOneOfMany({ predicates }: Undecided): boolean {
    return (
      this.#narrowing !== null &&
      this.#compared >= Math.max(inlineRowGroupsMax, this.#lookedAt / 2) &&
      (this.#comparedBytes >= inlineCompareBytesMax || this.#matches >= inlineMatchesMax) &&
      predicates.every(({ cost }) => cost <= numericCost)
    );
  }

  /** What can be said without a column. */
  #prune(rowGroup: RowGroup): Pruned | Promise<Pruned> {
    if (prunedByTime(rowGroup, this.#predicates, this.#schema)) {
      this.#stats.rowGroupsPrunedByTime++;
      return { kind: 'none' };
    }
    const opening = rowGroup.open(this.#threads, this.#stats);
    return opening instanceof Promise
      ? opening.then((open) => this.#pruneOpened(open))
      : this.#pruneOpened(opening);
  }

  #pruneOpened(open: OpenRowGroup): Pruned | Promise<Pruned> {
    const undecided: RankedPredicate[] = [];
    for (const ranked of this.#ranked) {
      const verdict = zoneVerdict(ranked.predicate, open.zone(ranked.predicate.field));
      if (verdict === 'none') {
        this.#stats.rowGroupsPrunedByZone++;
        return { kind: 'none' };
      }
      if (verdict === 'some') undecided.push(ranked);
    }
    const answer = this.#mayContain(open, undecided, 0);
    return answer instanceof Promise
      ? answer.then((mayContain) => this.#pruneAsked(open, undecided, mayContain))
      : this.#pruneAsked(open, undecided, answer);
  }

  #pruneAsked(open: OpenRowGroup, predicates: RankedPredicate[], mayContain: boolean): Pruned {
    if (!mayContain) {
      this.#stats.rowGroupsPrunedByGram++;
      return { kind: 'none' };
    }
    if (predicates.length > 0) return { kind: 'undecided', open, predicates };
    this.#stats.rowGroupsScanned++;
    return { kind: 'all' };
  }

  /** Asks the gram filters for the needles from number `first` on, the longest one first: it has the most grams to be missed. */
  #mayContain(
    open: OpenRowGroup,
    undecided: readonly RankedPredicate[],
    first: number,
  ): boolean | Promise<boolean> {
    for (let i = first; i < this.#searched.length; i++) {
      const { ranked, needles } = this.#searched[i]!;
      if (!undecided.includes(ranked)) continue;
      const answer = this.#mayContainOne(open, ranked.predicate.field, needles, 0);
      if (answer instanceof Promise)
        return answer.then((mayContain) => mayContain && this.#mayContain(open, undecided, i + 1));
      if (!answer) return false;
    }
    return true;
  }

  /** Whether a value may contain one of the needles from number `first` on. */
  #mayContainOne(
    open: OpenRowGroup,
    field: number,
    needles: readonly Needle[],
    first: number,
  ): boolean | Promise<boolean> {
    for (let i = first; i < needles.length; i++) {
      const answer = open.mayContain(field, needles[i]!.folded, this.#stats);
      if (answer instanceof Promise)
        return answer.then((mayContain) => mayContain || this.#mayContainOne(open, field, needles, i + 1));
      if (answer) return true;
    }
    return false;
  }

  *#evaluate({ open, predicates }: Undecided, rows: number, share: RowGroupShare): Steps<never, Selection> {
    const stats = this.#stats;
    const remaining = new RemainingRows(rows, share);
    let byDictionaryOnly = true;
    predicates.sort((a, b) => rank(a) - rank(b));
    for (const ranked of predicates) {
      const pause = this.#pace.pause();
      if (pause !== undefined) yield pause;
      const before = remaining.count;
      const byDictionary = yield* this.#narrow(ranked, open, remaining);
      if (!byDictionary) byDictionaryOnly = false;
      ranked.rowsSeen += before;
      ranked.rowsPassed += remaining.count;
      if (remaining.count === 0) break;
    }
    this.#lookedAt++;
    this.#matches += remaining.count;
    if (remaining.count === 0 && byDictionaryOnly) stats.rowGroupsPrunedByDictionary++;
    else {
      this.#compared++;
      stats.rowGroupsScanned++;
      stats.rowsScanned += share.endRow - share.firstRow;
    }
    return remaining.selection();
  }

  /**
   * Leaves of the remaining rows those that match; returns whether a dictionary alone has said that it is none. The column is let go
   * then: nothing is held while the next one waits for memory.
   */
  *#narrow(ranked: RankedPredicate, open: OpenRowGroup, remaining: RemainingRows): Steps<never, boolean> {
    const { predicate } = ranked;
    const streamed = this.#streamed.mayMatch(predicate, open, this.#stats);
    if (streamed !== null && !(yield* settled(streamed))) {
      remaining.clear();
      return false;
    }
    const lease = new ColumnLease({ signal: this.#pace.signal, onWait: this.#onWait });
    try {
      const reading = open.columns([predicate.field], this.#stats, lease);
      const [column] = reading instanceof Promise ? yield* settled(reading) : reading;
      ranked.cost = costOf(predicate, column!);
      this.#comparedBytes += columnBytes(column!);
      if (column!.kind === 'dictionary') return narrowByDictionary(predicate, column!, remaining);
      yield* this.#narrowPlain(predicate, column!, remaining);
      return false;
    } finally {
      lease.release();
    }
  }

  /** Leaves of the remaining rows those that match, by a plain column. */
  *#narrowPlain(predicate: PreparedPredicate, column: PlainColumn, remaining: RemainingRows): Steps<never> {
    const { from, to } = remaining.range;
    if (column.kind === 'bytes' && remaining.count * sparseShare < to - from) {
      remaining.keepEach((row) => matchRow(predicate, column, row));
      return;
    }
    const searching = column.kind === 'bytes' ? this.#searchThere(predicate, column, from, to) : null;
    if (searching !== null) {
      remaining.keep(yield* settled(searching));
      return;
    }
    const matches = remaining.room();
    for (let at = from; at < to;) {
      const end = stepEnd(column, at, to);
      evaluatePlain(predicate, column, at, end, matches);
      at = end;
      const pause = this.#pace.due ? this.#pace.pause() : undefined;
      if (pause !== undefined) yield pause;
    }
    remaining.keep(matches);
  }

  /** The rows [from, to) that match, found by another thread; null where this one is to look itself. */
  #searchThere(
    predicate: PreparedPredicate,
    column: BytesColumn,
    from: number,
    to: number,
  ): Promise<Uint8Array> | null {
    const threads = this.#threads;
    const isFirst = this.#searchedBytes === 0;
    this.#searchedBytes += column.offsets[to]! - column.offsets[from]!;
    if (threads === null || isFirst || this.#searchedBytes <= inlineSearchBytesMax) return null;
    const memory = sharedMemory();
    // Elsewhere, the job would have to take a copy of the column along.
    if (!arraysOf(column).every((array) => memory.holds(array))) return null;
    const address = memory.allocate(selectScratchBytes);
    if (address === null) return null;
    const scratch = memory.rangeAt(address, selectScratchBytes);
    return threads
      .run(selectTask, { predicate, layout: columnLayout(column), scratch, from, to })
      .finally(() => memory.free(address));
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

function shortest(needles: readonly Needle[]): number {
  return Math.min(...needles.map(({ folded }) => folded.length));
}

/** Whether every column that may be needed is in memory. */
function isAtHand({ open, predicates }: Undecided): boolean {
  return predicates.every(({ predicate }) => open.isAtHand(predicate.field));
}
