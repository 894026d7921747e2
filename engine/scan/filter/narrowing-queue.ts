import { assert } from '../../terms/assert.js';
import { arraysOf, columnBytes, type Column } from '../../columns/column.js';
import { columnLayout } from '../../columns/column-layout.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import {
  narrowJobBytesMax,
  narrowJobRowGroupsMax,
  narrowJobRowGroupsMin,
  selectScratchBytes,
} from '../../terms/limits.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { narrowTask, noEntry, selectionsOf, wordsPerRowGroup, type NarrowJob } from './narrow-task.js';
import { countNarrowed } from './narrowing.js';
import type { Undecided } from './pruning.js';
import { rank, type RankedPredicate } from './ranked-predicate.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { ScanStats } from '../plan/query.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { Selection } from './selection.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import { newReadCounters } from '../../store/reading/read-counters.js';

/** A row group that a thread is to filter. */
interface QueuedRowGroup extends Undecided {
  readonly rows: number;
  readonly share: RowGroupShare;
  /** The matching rows. Undefined while they are not known; null where the asking thread has to filter the row group itself. */
  found: Selection | null | undefined;
  /** Settles when `found` is known; undefined until a job has begun. */
  begun: Promise<void> | undefined;
}

/** A row group whose columns are pinned, and the words that describe the column of each predicate. */
interface HeldRowGroup {
  readonly queued: QueuedRowGroup;
  readonly words: ReadonlyMap<RankedPredicate, Uint32Array>;
}

const wordsOfColumns = new WeakMap<Column, Uint32Array | null>();

/**
 * The layout words of a column that is entirely in the kernels' memory. Null for other columns, and for strings without a dictionary,
 * because one row group of those is enough work for a thread.
 */
function wordsOf(column: Column): Uint32Array | null {
  let words = wordsOfColumns.get(column);
  if (words === undefined) {
    const memory = sharedMemory();
    const isThere = arraysOf(column).every((array) => memory.holds(array));
    words = isThere && column.kind !== 'bytes' ? columnLayout(column) : null;
    wordsOfColumns.set(column, words);
  }
  return words;
}

/**
 * Filters many row groups whose columns are in memory on threads. A job has several of them, because comparing the rows of one takes hardly
 * longer than handing it over.
 */
export class NarrowingQueue {
  readonly #threads: QueryThreads;
  readonly #stats: ScanStats;
  readonly #signal: AbortSignal | undefined;
  /** Row groups that are in no job yet. */
  #queued: QueuedRowGroup[] = [];

  constructor(threads: QueryThreads, stats: ScanStats, signal: AbortSignal | undefined) {
    this.#threads = threads;
    this.#stats = stats;
    this.#signal = signal;
  }

  /** Adds a row group. The steps return its matching rows, or null where the asking thread has to filter it itself. */
  add(undecided: Undecided, rows: number, share: RowGroupShare): Steps<never, Selection | null> {
    const queued: QueuedRowGroup = { ...undecided, rows, share, found: undefined, begun: undefined };
    this.#queued.push(queued);
    if (this.#queued.length === narrowJobRowGroupsMax) this.#begin(this.#queued.splice(0));
    return this.#found(queued);
  }

  *#found(queued: QueuedRowGroup): Steps<never, Selection | null> {
    if (queued.begun === undefined) this.#beginAll();
    if (queued.found === undefined) yield* settled(queued.begun!);
    return queued.found ?? null;
  }

  /** Begins jobs for all queued row groups, because one of them is needed now. */
  #beginAll(): void {
    const all = this.#queued.splice(0);
    const each = Math.max(narrowJobRowGroupsMin, Math.ceil(all.length / this.#threads.count));
    for (let from = 0; from < all.length; from += each) this.#begin(all.slice(from, from + each));
  }

  #begin(rowGroups: readonly QueuedRowGroup[]): void {
    const begun = this.#threads.inTurn(() => this.#look(rowGroups));
    begun.catch(() => undefined);
    this.#threads.track(begun);
    for (const queued of rowGroups) queued.begun = begun;
  }

  async #look(rowGroups: readonly QueuedRowGroup[]): Promise<void> {
    for (let next = 0; next < rowGroups.length;) {
      const lease = new ColumnLease();
      try {
        const held: HeldRowGroup[] = [];
        for (let bytes = 0; next < rowGroups.length && bytes < narrowJobBytesMax; next++)
          bytes += this.#hold(rowGroups[next]!, lease, held);
        if (held.length > 0) await this.#narrow(held);
      } finally {
        lease.release();
      }
    }
    for (const queued of rowGroups) queued.found ??= null;
  }

  /**
   * Pins the columns of a row group and adds it to `held`, if threads can read all of them. Returns the bytes of its columns, or 0 if it
   * was not added.
   */
  #hold(queued: QueuedRowGroup, lease: ColumnLease, held: HeldRowGroup[]): number {
    const { open, predicates } = queued;
    const fields = predicates.map(({ predicate }) => predicate.field);
    if (!fields.every((field) => open.isInMemory(field))) return 0;
    const own = new ColumnLease({ signal: this.#signal });
    const counters = newReadCounters();
    const columns = open.columns(fields, counters, own);
    assert(!(columns instanceof Promise), 'what is in memory need not be waited for');
    const words = new Map<RankedPredicate, Uint32Array>();
    for (const [i, ranked] of predicates.entries()) {
      const wordsOfColumn = wordsOf(columns[i]!);
      if (wordsOfColumn !== null) words.set(ranked, wordsOfColumn);
    }
    if (words.size < predicates.length) {
      own.release();
      return 0;
    }
    this.#stats.columnsCached += counters.columnsCached;
    lease.add(() => own.release());
    held.push({ queued, words });
    return columns.reduce((sum, column) => sum + columnBytes(column), 0);
  }

  async #narrow(held: readonly HeldRowGroup[]): Promise<void> {
    const memory = sharedMemory();
    const address = memory.allocate(selectScratchBytes);
    if (address === null) return;
    const ranked = [...new Set(held.flatMap(({ queued }) => queued.predicates))];
    ranked.sort((a, b) => rank(a) - rank(b));
    const job: NarrowJob = {
      predicates: ranked.map(({ predicate }) => predicate),
      rowGroups: wordsTogether(held, ranked),
      memoryBytes: memory.buffer.byteLength,
      scratch: memory.rangeAt(address, selectScratchBytes),
    };
    const narrowed = await this.#threads
      .run(narrowTask, job, [job.rowGroups.buffer])
      .finally(() => memory.free(address));
    ranked.forEach((each, i) => {
      each.rowsSeen += narrowed.seen[2 * i]!;
      each.rowsPassed += narrowed.seen[2 * i + 1]!;
    });
    const selections = selectionsOf(
      narrowed,
      held.map(({ queued }) => queued.rows),
    );
    held.forEach(({ queued }, i) => {
      queued.found = selections[i]!;
      countNarrowed(this.#stats, queued.share, narrowed.found[2 * i] === noEntry ? 'dictionary' : 'values');
    });
  }
}

function wordsTogether(
  held: readonly HeldRowGroup[],
  ranked: readonly RankedPredicate[],
): Uint32Array<ArrayBuffer> {
  const each = wordsPerRowGroup(ranked.length);
  const together = new Uint32Array(held.length * each);
  held.forEach(({ queued: { rows, share }, words }, i) => {
    together.set([rows, share.firstRow, share.endRow], i * each);
    ranked.forEach((predicate, k) => {
      const wordsOfColumn = words.get(predicate);
      if (wordsOfColumn !== undefined) together.set(wordsOfColumn, i * each + wordsPerRowGroup(k));
    });
  });
  return together;
}
