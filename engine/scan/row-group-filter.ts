import {
  columnBytes,
  type BytesColumn,
  type Column,
  sharedLayout,
  wordsPerLayout,
  type ColumnLayout,
} from '../columns/column.js';
import { sharedMemory } from '../core/shared-memory.js';
import { inlineFilterBytesMax } from '../core/limits.js';
import type { Schema } from '../core/schema.js';
import type { Pace } from '../store/reading/pace.js';
import type { JobQueue } from '../workers/job-queue.js';
import type { OpenRowGroup, RowGroup } from '../store/reading/snapshot.js';
import type { RowGroupShare } from './plan.js';
import type { ScanStats } from './query.js';
import { countNarrowed, narrow, type Narrowed, type NarrowedBy, type NarrowMode } from './narrowing.js';
import { matchesTask, type NarrowedRows } from './row-group-task.js';
import {
  allMembers,
  fieldsOf,
  hasPattern,
  onlyMember,
  type Clause,
  type PreparedPredicates,
} from './predicate.js';
import { Pruning, type Undecided } from './pruning.js';
import { costOf, rank, type RankedPredicate, mayMatchStreamed } from './ranked-predicate.js';
import { RemainingRows, type Selection } from './selection.js';

/** What the parts of one scan share. */
export interface ScanWork {
  readonly stats: ScanStats;
  readonly pace: Pace;
  /** Null where the asking thread does everything. */
  readonly threads: JobQueue | null;
  /** Called before a wait for memory, to give back what the scan holds. */
  readonly onWait?: (() => void) | undefined;
}

/** Comparing numbers and dictionary codes takes this fraction of the time that searching as many bytes of text does. */
const numbersShare = 1 / 8;

/** Searching text for a pattern takes this many times as long as searching it for a text, or more. */
const patternShare = 8;

/**
 * Finds the rows of row groups that match all predicates. Evaluates first what costs least and excludes most, and reads nothing more once
 * no row is left. The answering thread itself evaluates what is in memory, up to `inlineFilterBytesMax`; beyond that, other threads do.
 */
export class RowGroupFilter {
  readonly pruning: Pruning;
  readonly #fields: readonly number[];
  /** Bytes that the answering thread may still evaluate. */
  #inlineBytes = inlineFilterBytesMax;
  /** Number of row groups that are being read. */
  #reading = 0;

  constructor(
    schema: Schema,
    predicates: PreparedPredicates,
    private readonly work: ScanWork,
  ) {
    const { stats, threads } = work;
    this.pruning = new Pruning(schema, predicates, threads, stats);
    this.#fields = fieldsOf(predicates);
  }

  /**
   * Whether a row group is better looked at before its rows are needed, because other threads will do most of it. What this thread would do
   * itself is left until then, because the rows may never be needed.
   */
  isForThreads(rowGroup: RowGroup): boolean {
    const { threads } = this.work;
    if (threads === null || this.#fields.length === 0) return false;
    const open = rowGroup.opened(threads);
    const isInMemory = open !== null && this.#fields.every((field) => open.isInMemory(field));
    return isInMemory ? this.#inlineBytes <= 0 : this.#reading < 2 * threads.threadCount;
  }

  /** Finds the matching rows of the share of a row group. Bits outside the share are 0, and `all` means all rows of the share. */
  async look(rowGroup: RowGroup, share: RowGroupShare): Promise<Selection> {
    this.#reading++;
    try {
      const pruned = await this.pruning.prune(rowGroup);
      if (pruned.kind === 'none') return pruned;
      const remaining = new RemainingRows(rowGroup.rows, share);
      if (rowGroup.hides === true) {
        const { threads, stats, pace, onWait } = this.work;
        const open = await rowGroup.open(threads, stats);
        remaining.exclude(await open.hidden!(stats, { signal: pace.signal, onWait }));
      }
      if (pruned.kind === 'undecided') return await this.#narrow(pruned, remaining, share);
      return rowGroup.hides === true ? remaining.selection() : pruned;
    } finally {
      this.#reading--;
    }
  }

  async #narrow(
    { open, clauses }: Undecided,
    remaining: RemainingRows,
    share: RowGroupShare,
  ): Promise<Selection> {
    const alone = clauses.flatMap((clause) => onlyMember(clause) ?? []).sort((a, b) => rank(a) - rank(b));
    let narrowedBy = await this.#ask(alone, 'all', open, remaining);
    const narrow = async (members: readonly RankedPredicate[], left: RemainingRows): Promise<void> => {
      if ((await this.#ask(members, 'none', open, left)) === 'values') narrowedBy = 'values';
    };
    const others = clauses.filter((clause) => onlyMember(clause) === undefined);
    for (const clause of others.sort((a, b) => costOfClause(a) - costOfClause(b))) {
      if (remaining.count === 0) break;
      // Once a member is known to hold for a row, the others are not evaluated on it.
      const without = remaining.copy();
      await narrow(
        clause.members.toSorted((a, b) => a.cost - b.cost),
        without,
      );
      for (const members of clause.absent) {
        const lacking = without.copy();
        await narrow(members, lacking);
        without.takeAway(lacking);
      }
      remaining.takeAway(without);
    }
    if (remaining.count > 0) narrowedBy = 'values';
    countNarrowed(this.work.stats, share, narrowedBy);
    return remaining.selection();
  }

  /** Evaluates predicates until no row is left. Columns are read only when their predicate is reached. */
  async #ask(
    predicates: readonly RankedPredicate[],
    mode: NarrowMode,
    open: OpenRowGroup,
    remaining: RemainingRows,
  ): Promise<NarrowedBy> {
    const { stats, pace, onWait } = this.work;
    let narrowedBy: NarrowedBy = 'dictionary';
    for (let next = 0; next < predicates.length && remaining.count > 0;) {
      await pace.pause();
      const [first] = predicates.slice(next);
      if (!(await mayMatchStreamed(first!.streamed, first!.predicate.field, open, stats))) {
        narrowedBy = 'values';
        first!.rowsSeen += remaining.count;
        next++;
        if (mode === 'all') remaining.clear();
        continue;
      }
      // No column is held while the next one waits for memory, so only those in memory are held together with the first.
      let end = next + 1;
      while (end < predicates.length && open.isInMemory(predicates[end]!.predicate.field)) end++;
      const asked = predicates.slice(next, end);
      const fields = asked.map(({ predicate }) => predicate.field);
      const { columns, release } = await open.columns(fields, stats, { signal: pace.signal, onWait });
      try {
        asked.forEach((ranked, i) => (ranked.cost = costOf(ranked.predicate, columns[i]!)));
        if ((await this.#evaluate(asked, columns, mode, remaining)) === 'values') narrowedBy = 'values';
      } finally {
        release();
      }
      next = end;
    }
    return narrowedBy;
  }

  /** Evaluates predicates whose columns are held, here or on another thread. */
  async #evaluate(
    asked: readonly RankedPredicate[],
    columns: readonly Column[],
    mode: NarrowMode,
    remaining: RemainingRows,
  ): Promise<NarrowedBy> {
    const { threads } = this.work;
    const bytes = columns.reduce(
      (sum, column, i) =>
        sum + bytesToCompare(column, remaining) * (hasPattern(asked[i]!.predicate) ? patternShare : 1),
      0,
    );
    const isInline = threads === null || threads.threadCount === 0 || bytes <= this.#inlineBytes;
    this.#inlineBytes -= bytes;
    const layouts = isInline ? null : layoutsOf(columns);
    const narrowed =
      threads === null || layouts === null
        ? await this.#evaluateHere(asked, columns, mode, remaining)
        : await this.#evaluateThere(threads, asked, layouts, mode, remaining);
    narrowed.seen.forEach((seen, i) => {
      asked[i]!.rowsSeen += seen;
      asked[i]!.rowsPassed += narrowed.passed[i]!;
    });
    return narrowed.narrowedBy;
  }

  /** Gives up its turn between steps. */
  async #evaluateHere(
    asked: readonly RankedPredicate[],
    columns: readonly Column[],
    mode: NarrowMode,
    remaining: RemainingRows,
  ): Promise<Narrowed> {
    const ofColumns = asked.map(({ predicate }, i) => ({ predicate, column: columns[i]! }));
    const steps = narrow(ofColumns, mode, remaining);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) await this.work.pace.pause();
    return step.value;
  }

  async #evaluateThere(
    threads: JobQueue,
    asked: readonly RankedPredicate[],
    layouts: ColumnLayout,
    mode: NarrowMode,
    remaining: RemainingRows,
  ): Promise<NarrowedRows> {
    const narrowed = await threads.run(matchesTask, {
      predicates: asked.map(({ predicate }) => predicate),
      mode,
      layouts,
      memoryBytes: sharedMemory().buffer.byteLength,
      ...remaining.span,
      bits: remaining.bits,
      ended: asked.some(({ predicate }) => hasPattern(predicate)) ? threads.ended : null,
    });
    if (narrowed.bits === null) remaining.clear();
    else remaining.keep(narrowed.bits);
    return narrowed;
  }
}

function costOfClause(clause: Clause<RankedPredicate>): number {
  return allMembers(clause).reduce((sum, { cost }) => sum + cost, 0);
}

/** Bytes of text that take as long to search as a column takes to be compared. */
function bytesToCompare(column: Column, remaining: RemainingRows): number {
  return column.kind === 'bytes' ? textBytes(column, remaining) : columnBytes(column) * numbersShare;
}

function textBytes({ offsets }: BytesColumn, remaining: RemainingRows): number {
  const { from, to } = remaining.range;
  return offsets[to]! - offsets[from]!;
}

/** The layouts of columns, one after another; null where other threads could not read all of them in place. */
function layoutsOf(columns: readonly Column[]): ColumnLayout | null {
  const layouts = new Uint32Array(columns.length * wordsPerLayout);
  for (const [i, column] of columns.entries()) {
    const layout = sharedLayout(column);
    if (layout === null) return null;
    layouts.set(layout, i * wordsPerLayout);
  }
  return layouts;
}
