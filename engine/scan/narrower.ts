import { assert } from '../assert.js';
import { arraysOf, columnBytes, type Column } from '../columns/column.js';
import { columnLayout, layoutWords } from '../columns/column-layout.js';
import { sharedMemory } from '../memory/shared-memory.js';
import {
  narrowJobBytesMax,
  narrowJobRowGroupsMax,
  narrowJobRowGroupsMin,
  selectScratchBytes,
} from '../limits.js';
import { ColumnLease } from './column-lease.js';
import { noEntry, selectionsOf, wordsPerRowGroup, type NarrowJob } from './narrow-task.js';
import { rank, type Observed, type Undecided } from './observed.js';
import type { RowGroupShare } from './plan.js';
import type { ScanStats } from './query.js';
import type { QueryThreads } from './query-threads.js';
import type { Selection } from './selection.js';
import type { ReadCounters } from './snapshot.js';
import { settled, type Steps } from './steps.js';

/** A row group that threads are to look at. */
interface Gathered extends Undecided {
  readonly rows: number;
  readonly share: RowGroupShare;
  /** What was found; null where the thread that asks has to look by itself, undefined while that is not known. */
  found: Selection | null | undefined;
  /** Settles when it is known, once that is under way. */
  begun: Promise<void> | undefined;
}

/** A row group whose columns are held: the words of each, by its predicate. */
interface Held {
  readonly gathered: Gathered;
  readonly words: ReadonlyMap<Observed, Uint32Array>;
}

const wordsOfColumns = new WeakMap<Column, Uint32Array | null>();

/**
 * The words of a column of which all lies in the kernels' memory. Null for any other, and for strings without a dictionary: of those, one row
 * group is enough for a thread.
 */
function wordsOf(column: Column): Uint32Array | null {
  let words = wordsOfColumns.get(column);
  if (words === undefined) {
    const memory = sharedMemory();
    const isThere = arraysOf(column).every((array) => memory.holds(array));
    words = isThere && column.kind !== 'bytes' ? layoutWords(columnLayout(column)) : null;
    wordsOfColumns.set(column, words);
  }
  return words;
}

/**
 * Has threads look for the matching rows of many row groups whose columns are in memory, several of them in one job: one alone takes
 * hardly longer than handing it over.
 */
export class Narrower {
  readonly #threads: QueryThreads;
  readonly #stats: ScanStats;
  readonly #signal: AbortSignal | undefined;
  /** Those that no job has begun with. */
  #gathered: Gathered[] = [];

  constructor(threads: QueryThreads, stats: ScanStats, signal: AbortSignal | undefined) {
    this.#threads = threads;
    this.#stats = stats;
    this.#signal = signal;
  }

  /**
   * Adds a row group. The steps that are returned give its rows, or null where the thread that asks has to look
   * by itself.
   */
  add(undecided: Undecided, rows: number, share: RowGroupShare): () => Steps<never, Selection | null> {
    const gathered: Gathered = { ...undecided, rows, share, found: undefined, begun: undefined };
    this.#gathered.push(gathered);
    if (this.#gathered.length === narrowJobRowGroupsMax) this.#begin(this.#gathered.splice(0));
    return () => this.#found(gathered);
  }

  *#found(gathered: Gathered): Steps<never, Selection | null> {
    if (gathered.begun === undefined) this.#beginAll();
    if (gathered.found === undefined) yield* settled(gathered.begun!);
    return gathered.found ?? null;
  }

  /** Shares out what there is, because somebody waits for it. */
  #beginAll(): void {
    const all = this.#gathered.splice(0);
    const each = Math.max(narrowJobRowGroupsMin, Math.ceil(all.length / this.#threads.count));
    for (let from = 0; from < all.length; from += each) this.#begin(all.slice(from, from + each));
  }

  #begin(rowGroups: readonly Gathered[]): void {
    const begun = this.#threads.inTurn(() => this.#look(rowGroups));
    begun.catch(() => undefined);
    this.#threads.track(begun);
    for (const gathered of rowGroups) gathered.begun = begun;
  }

  async #look(rowGroups: readonly Gathered[]): Promise<void> {
    for (let next = 0; next < rowGroups.length;) {
      const lease = new ColumnLease();
      try {
        const held: Held[] = [];
        for (let bytes = 0; next < rowGroups.length && bytes < narrowJobBytesMax; next++)
          bytes += this.#hold(rowGroups[next]!, lease, held);
        if (held.length > 0) await this.#narrow(held);
      } finally {
        lease.release();
      }
    }
    for (const gathered of rowGroups) gathered.found ??= null;
  }

  /** Adds a row group to those that are held, unless it is none for threads. Returns the bytes of its columns. */
  #hold(gathered: Gathered, lease: ColumnLease, held: Held[]): number {
    const { open, predicates } = gathered;
    const fields = predicates.map(({ predicate }) => predicate.field);
    if (!fields.every((field) => open.isAtHand(field))) return 0;
    const own = new ColumnLease({ signal: this.#signal });
    const counters: ReadCounters = { bytesRead: 0, columnsDecoded: 0, columnsCached: 0, gramPiecesRead: 0 };
    const columns = open.columns(fields, counters, own);
    assert(!(columns instanceof Promise), 'what is at hand need not be waited for');
    const words = new Map<Observed, Uint32Array>();
    for (const [i, observed] of predicates.entries()) {
      const wordsOfColumn = wordsOf(columns[i]!);
      if (wordsOfColumn !== null) words.set(observed, wordsOfColumn);
    }
    if (words.size < predicates.length) {
      own.release();
      return 0;
    }
    this.#stats.columnsCached += counters.columnsCached;
    lease.add(() => own.release());
    held.push({ gathered, words });
    return columns.reduce((sum, column) => sum + columnBytes(column), 0);
  }

  async #narrow(held: readonly Held[]): Promise<void> {
    const memory = sharedMemory();
    const address = memory.allocate(selectScratchBytes);
    if (address === null) return;
    const observed = [...new Set(held.flatMap(({ gathered }) => gathered.predicates))];
    observed.sort((a, b) => rank(a) - rank(b));
    const job: NarrowJob = {
      predicates: observed.map(({ predicate }) => predicate),
      rowGroups: wordsTogether(held, observed),
      memoryBytes: memory.buffer.byteLength,
      scratch: memory.rangeAt(address, selectScratchBytes),
    };
    const narrowed = await this.#threads.narrow(job).finally(() => memory.free(address));
    observed.forEach((each, i) => {
      each.rowsSeen += narrowed.seen[2 * i]!;
      each.rowsPassed += narrowed.seen[2 * i + 1]!;
    });
    const selections = selectionsOf(
      narrowed,
      held.map(({ gathered }) => gathered.rows),
    );
    held.forEach(({ gathered }, i) => {
      gathered.found = selections[i]!;
      this.#count(gathered.share, narrowed.found[2 * i] === noEntry);
    });
  }

  #count({ firstRow, endRow }: RowGroupShare, byDictionaryOnly: boolean): void {
    const stats = this.#stats;
    if (byDictionaryOnly) {
      stats.rowGroupsPrunedByDictionary++;
    } else {
      stats.rowGroupsScanned++;
      stats.rowsScanned += endRow - firstRow;
    }
  }
}

function wordsTogether(held: readonly Held[], observed: readonly Observed[]): Uint32Array<ArrayBuffer> {
  const each = wordsPerRowGroup(observed.length);
  const together = new Uint32Array(held.length * each);
  held.forEach(({ gathered: { rows, share }, words }, i) => {
    together.set([rows, share.firstRow, share.endRow], i * each);
    observed.forEach((predicate, k) => {
      const wordsOfColumn = words.get(predicate);
      if (wordsOfColumn !== undefined) together.set(wordsOfColumn, i * each + wordsPerRowGroup(k));
    });
  });
  return together;
}
