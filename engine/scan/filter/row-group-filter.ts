import type { BytesColumn } from '../../columns/column.js';
import { arraysOf, columnBytes } from '../../columns/column.js';
import { columnLayout } from '../../columns/column-layout.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import { selectScratchBytes } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import type { Pace } from '../../store/reading/pace.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
import { resultOf, settled, type Steps } from '../../store/reading/steps.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { ScanStats } from '../plan/query.js';
import { matchRow } from './evaluate.js';
import { countNarrowed, narrow, narrowByColumn, type NarrowedBy } from './narrowing.js';
import { NarrowingQueue } from './narrowing-queue.js';
import {
  inlineLimits,
  placeOfRowGroup,
  placeOfText,
  type InlineLimits,
  type InlineWork,
  type RowGroupPlace,
} from './places.js';
import type { PreparedPredicate, PreparedPredicates } from './predicate.js';
import { Pruning, type Pruned, type Undecided } from './pruning.js';
import { costOf, numericCost, rank, type RankedAnywhere, type RankedPredicate } from './ranked-predicate.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import { selectTask } from './select-task.js';
import { mayMatchStreamed } from './streamed-search.js';

/** What the parts of one scan share. */
export interface ScanWork {
  readonly stats: ScanStats;
  readonly pace: Pace;
  /** Null where the asking thread does everything. */
  readonly threads: QueryThreads | null;
  /** What the answering thread does itself. The default suits a scan that also writes lines. */
  readonly inline?: InlineLimits | undefined;
  /** Called before a wait for memory, to give back what the scan holds. */
  readonly onWait?: (() => void) | undefined;
}

/**
 * Finds the rows of row groups that match all predicates. Evaluates first what costs least and excludes most, and reads nothing more once
 * no row is left.
 */
export class RowGroupFilter {
  readonly #pruning: Pruning;
  readonly #work: ScanWork;
  readonly #inline: InlineLimits;
  readonly #queue: NarrowingQueue | null;
  readonly #own: InlineWork = {
    searchedBytes: 0,
    rowGroups: 0,
    comparedRowGroups: 0,
    comparedBytes: 0,
    matches: 0,
  };
  readonly #pause = (): Promise<void> | undefined => this.#work.pace.pause();

  constructor(schema: Schema, predicates: PreparedPredicates, work: ScanWork) {
    const { stats, pace, threads } = work;
    this.#pruning = new Pruning(schema, predicates, threads, stats);
    this.#work = work;
    this.#inline = work.inline ?? inlineLimits;
    this.#queue = threads === null ? null : new NarrowingQueue(threads, stats, pace.signal);
  }

  /** Rules out row groups before they are looked at. */
  get pruning(): Pruning {
    return this.#pruning;
  }

  /**
   * Begins to find the matching rows of the share of a row group that is not ruled out. The steps return them, or throw. Bits outside the
   * share are 0, and `all` means all rows of the share. The caller need not run the steps.
   */
  look(rowGroup: RowGroup, share: RowGroupShare): Steps<never, Selection> {
    const { rows } = rowGroup;
    const pruned = resultOf(this.#pruning.prune(rowGroup));
    if (pruned instanceof Promise) return this.#lookAhead(pruned, rows, share);
    if (pruned.kind !== 'undecided') return settled<Selection>(pruned);
    switch (this.#placeOf(pruned)) {
      case 'here':
        return this.#narrow(pruned, rows, share);
      case 'together':
        return this.#narrowTogether(this.#queue!.add(pruned, rows, share), pruned, rows, share);
      case 'ahead':
        return this.#lookAhead(Promise.resolve(pruned), rows, share);
    }
  }

  #placeOf({ open, predicates, anywhere }: Undecided): RowGroupPlace {
    const asked = [...predicates, ...anywhere.flatMap(({ members }) => members)];
    const facts = {
      hasThreads: this.#work.threads !== null,
      isInMemory: asked.every(({ predicate }) => open.isInMemory(predicate.field)),
      isCheap: anywhere.length === 0 && predicates.every(({ cost }) => cost <= numericCost),
    };
    return placeOfRowGroup(facts, this.#own, this.#inline);
  }

  *#narrowTogether(
    finding: Steps<never, Selection | null>,
    undecided: Undecided,
    rows: number,
    share: RowGroupShare,
  ): Steps<never, Selection> {
    return (yield* finding) ?? (yield* this.#narrow(undecided, rows, share));
  }

  #lookAhead(pruning: Promise<Pruned>, rows: number, share: RowGroupShare): Steps<never, Selection> {
    const ahead = this.#narrowAhead(pruning, rows, share);
    ahead.catch(() => {});
    this.#work.threads?.track(ahead);
    return this.#afterAhead(ahead, rows, share);
  }

  /** The matching rows, found before they are needed; `undecided` where the row group is filtered only when its rows are needed. */
  async #narrowAhead(
    pruning: Promise<Pruned>,
    rows: number,
    share: RowGroupShare,
  ): Promise<Selection | Undecided> {
    const { threads } = this.#work;
    const pruned = await pruning;
    if (pruned.kind !== 'undecided' || threads === null || this.#placeOf(pruned) !== 'ahead') return pruned;
    return threads.inTurn(async () => resultOf(this.#narrow(pruned, rows, share)));
  }

  *#afterAhead(
    ahead: Promise<Selection | Undecided>,
    rows: number,
    share: RowGroupShare,
  ): Steps<never, Selection> {
    const known = yield* settled(ahead);
    return known.kind === 'undecided' ? yield* this.#narrow(known, rows, share) : known;
  }

  *#narrow(
    { open, predicates, anywhere }: Undecided,
    rows: number,
    share: RowGroupShare,
  ): Steps<never, Selection> {
    const remaining = new RemainingRows(rows, share);
    predicates.sort((a, b) => rank(a) - rank(b));
    let narrowedBy: NarrowedBy = 'dictionary';
    if (predicates.length > 0)
      narrowedBy = yield* narrow(predicates, remaining, (ranked) => this.#ask(ranked, open, remaining));
    for (const text of anywhere) {
      if (remaining.count === 0) break;
      if ((yield* this.#askAnywhere(text, open, remaining)) === 'values') narrowedBy = 'values';
    }
    if (remaining.count > 0) narrowedBy = 'values';
    this.#own.rowGroups++;
    if (narrowedBy === 'values') this.#own.comparedRowGroups++;
    this.#own.matches += remaining.count;
    countNarrowed(this.#work.stats, share, narrowedBy);
    return remaining.selection();
  }

  /**
   * Leaves the rows that contain the text in some field, or in none. Once the text has been found in a row, its other fields are not
   * searched.
   */
  *#askAnywhere(
    { members, isAbsent }: RankedAnywhere,
    open: OpenRowGroup,
    remaining: RemainingRows,
  ): Steps<never, NarrowedBy> {
    const without = remaining.copy();
    let narrowedBy: NarrowedBy = 'dictionary';
    for (const member of members) {
      if (without.count === 0) break;
      const holding = without.copy();
      if ((yield* this.#ask(member, open, holding)) === 'values') narrowedBy = 'values';
      without.takeAway(holding);
    }
    if (isAbsent) remaining.keepThoseOf(without);
    else remaining.takeAway(without);
    return narrowedBy;
  }

  /** Leaves the rows that match. Releases the column at the end, so that none is held while the next one waits for memory. */
  *#ask(ranked: RankedPredicate, open: OpenRowGroup, remaining: RemainingRows): Steps<never, NarrowedBy> {
    const { stats, pace, onWait } = this.#work;
    const { predicate } = ranked;
    yield* settled(pace.pause());
    if (!(yield* mayMatchStreamed(ranked.streamed, predicate.field, open, stats))) {
      remaining.clear();
      return 'values';
    }
    const lease = new ColumnLease({ signal: pace.signal, onWait });
    try {
      const [column] = yield* settled(open.columns([predicate.field], stats, lease));
      ranked.cost = costOf(predicate, column!);
      this.#own.comparedBytes += columnBytes(column!);
      if (column!.kind === 'bytes') return yield* this.#askText(predicate, column!, remaining);
      return yield* narrowByColumn(predicate, column!, remaining, this.#pause);
    } finally {
      lease.release();
    }
  }

  *#askText(
    predicate: PreparedPredicate,
    column: BytesColumn,
    remaining: RemainingRows,
  ): Steps<never, NarrowedBy> {
    const { from, to } = remaining.range;
    const textBytes = column.offsets[to]! - column.offsets[from]!;
    const hasThreads = this.#work.threads !== null;
    // A column in other memory would have to be copied to the thread.
    const isShared = arraysOf(column).every((array) => sharedMemory().holds(array));
    const facts = { hasThreads, isShared, textBytes, rows: to - from, rowsLeft: remaining.count };
    const place = placeOfText(facts, this.#own, this.#inline);
    if (place === 'each row') {
      remaining.keepEach((row) => matchRow(predicate, column, row));
      return 'values';
    }
    this.#own.searchedBytes += textBytes;
    const searching = place === 'thread' ? this.#searchThere(predicate, column, from, to) : null;
    if (searching === null) return yield* narrowByColumn(predicate, column, remaining, this.#pause);
    remaining.keep(yield* settled(searching));
    return 'values';
  }

  /** The bits of the rows [from, to) that match, found by another thread; null where there is no memory for its kernels. */
  #searchThere(
    predicate: PreparedPredicate,
    column: BytesColumn,
    from: number,
    to: number,
  ): Promise<Uint8Array> | null {
    const memory = sharedMemory();
    const address = memory.allocate(selectScratchBytes);
    if (address === null) return null;
    const scratch = memory.rangeAt(address, selectScratchBytes);
    return this.#work
      .threads!.run(selectTask, { predicate, layout: columnLayout(column), scratch, from, to })
      .finally(() => memory.free(address));
  }
}
