import type { BytesColumn, DictionaryColumn, PlainColumn } from '../columns/column.js';
import { arraysOf, columnBytes } from '../columns/column.js';
import { columnLayout } from '../columns/column-layout.js';
import { sharedMemory } from '../memory/shared-memory.js';
import {
  inlineCompareBytesMax,
  inlineMatchesMax,
  inlineRowGroupsMax,
  inlineSearchBytesMax,
  selectScratchBytes,
} from '../limits.js';
import type { Schema } from '../schema.js';
import { ColumnLease } from './column-lease.js';
import { evaluateDictionary, evaluatePlain, matchRow, stepEnd, wantedEntries } from './evaluate.js';
import { Narrower } from './narrower.js';
import { costOf, initialCost, numericCost, rank, type Observed, type Undecided } from './observed.js';
import { PassingSearch } from './passing-search.js';
import type { Pace } from './pace.js';
import type { RowGroupShare } from './plan.js';
import type { PreparedPredicate, PreparedString } from './predicate.js';
import type { ScanStats } from './query.js';
import type { QueryThreads } from './query-threads.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import type { OpenRowGroup, RowGroup } from './snapshot.js';
import { completed, settled, type Steps } from './steps.js';
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

/** A row group that is being looked at. */
export interface Looking {
  /** The matching rows. Where nothing must be waited for they are looked for only now. */
  selection(): Steps<never, Selection>;
}

/** Decides once, for all units that a row group has. */
class Decision implements Looking {
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

function decided(selection: Selection): Looking {
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
  readonly #observed: readonly Observed[];
  /** Those of them that gram filters can be asked about, the longest needle first. */
  readonly #searched: readonly Observed<PreparedString>[];
  readonly #stats: ScanStats;
  readonly #pace: Pace;
  readonly #threads: QueryThreads | null;
  readonly #onWait: (() => void) | undefined;
  readonly #passing = new PassingSearch();
  /** Bytes of strings that the asking thread has searched by itself. */
  #searchedBytes = 0;
  /** Row groups that it has looked at by itself, and those of them that no dictionary alone has ruled out. */
  #lookedAt = 0;
  #compared = 0;
  /** Bytes of the columns that it has compared, and rows that have matched. */
  #comparedBytes = 0;
  #matches = 0;
  readonly #narrower: Narrower | null;

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
    this.#searched = this.#observed
      .filter(isSearch)
      .sort((a, b) => b.predicate.needle.folded.length - a.predicate.needle.folded.length);
    this.#stats = stats;
    this.#pace = pace;
    this.#threads = threads;
    this.#narrower = threads === null ? null : new Narrower(threads, stats, pace.signal);
  }

  /**
   * Begins to look for the matching rows of the share. Bits outside the share are 0; `all` means all rows of the share.
   * What can only be known by waiting is told by `selection`, which may never be asked for, and so is a failure of that.
   */
  look(rowGroup: RowGroup, share: RowGroupShare): Looking {
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
        const find = this.#isOneOfMany(pruned) ? this.#narrower!.add(pruned, rowGroup.rows, share) : null;
        return new Decision(function* () {
          return (find === null ? null : yield* find()) ?? (yield* evaluate(pruned));
        });
      }
    }
    const ahead = this.#lookAhead(pruned, evaluate);
    ahead.catch(() => {});
    this.#threads?.track(ahead);
    return new Decision(function* () {
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
      this.#narrower !== null &&
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
    const undecided: Observed[] = [];
    for (const observed of this.#observed) {
      const verdict = zoneVerdict(observed.predicate, open.zone(observed.predicate.field));
      if (verdict === 'none') {
        this.#stats.rowGroupsPrunedByZone++;
        return { kind: 'none' };
      }
      if (verdict === 'some') undecided.push(observed);
    }
    const answer = this.#mayContain(open, undecided, 0);
    return answer instanceof Promise
      ? answer.then((mayContain) => this.#pruneAsked(open, undecided, mayContain))
      : this.#pruneAsked(open, undecided, answer);
  }

  #pruneAsked(open: OpenRowGroup, predicates: Observed[], mayContain: boolean): Pruned {
    if (!mayContain) {
      this.#stats.rowGroupsPrunedByGram++;
      return { kind: 'none' };
    }
    if (predicates.length > 0) return { kind: 'undecided', open, predicates };
    this.#stats.rowGroupsScanned++;
    return { kind: 'all' };
  }

  /** Asks the gram filters for the needles from number `first` on, the longest one first: it has the most grams to be missed. */
  #mayContain(open: OpenRowGroup, undecided: readonly Observed[], first: number): boolean | Promise<boolean> {
    for (let i = first; i < this.#searched.length; i++) {
      const observed = this.#searched[i]!;
      if (!undecided.includes(observed)) continue;
      const { field, needle } = observed.predicate;
      const answer = open.mayContain(field, needle.folded, this.#stats);
      if (answer instanceof Promise)
        return answer.then((mayContain) => mayContain && this.#mayContain(open, undecided, i + 1));
      if (!answer) return false;
    }
    return true;
  }

  *#evaluate({ open, predicates }: Undecided, rows: number, share: RowGroupShare): Steps<never, Selection> {
    const stats = this.#stats;
    const remaining = new RemainingRows(rows, share);
    let byDictionaryOnly = true;
    predicates.sort((a, b) => rank(a) - rank(b));
    for (const observed of predicates) {
      const pause = this.#pace.pause();
      if (pause !== undefined) yield pause;
      const before = remaining.count;
      const byDictionary = yield* this.#narrow(observed, open, remaining);
      if (!byDictionary) byDictionaryOnly = false;
      observed.rowsSeen += before;
      observed.rowsPassed += remaining.count;
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
  *#narrow(observed: Observed, open: OpenRowGroup, remaining: RemainingRows): Steps<never, boolean> {
    const { predicate } = observed;
    const passing = this.#passing.mayMatch(predicate, open, this.#stats);
    if (passing !== null && !(yield* settled(passing))) {
      remaining.clear();
      return false;
    }
    const lease = new ColumnLease({ signal: this.#pace.signal, onWait: this.#onWait });
    try {
      const reading = open.columns([predicate.field], this.#stats, lease);
      const [column] = reading instanceof Promise ? yield* settled(reading) : reading;
      observed.cost = costOf(predicate, column!);
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
      .selectRows({ predicate, layout: columnLayout(column), scratch, from, to })
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

function isSearch(observed: Observed): observed is Observed<PreparedString> {
  return observed.predicate.kind === 'string' && observed.predicate.needle.folded.length > 0;
}

/** Whether every column that may be needed is in memory. */
function isAtHand({ open, predicates }: Undecided): boolean {
  return predicates.every(({ predicate }) => open.isAtHand(predicate.field));
}
