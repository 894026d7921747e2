import { placementField, type Schema } from '../../terms/schema.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
import { ruling, type FilterQuestion, type Ruling } from '../../store/sealed/filter-probing.js';
import { RulingToCome } from '../../store/reading/ruling-to-come.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { ScanStats } from '../plan/query.js';
import type { PreparedPredicate } from './predicate.js';
import type { RankedPredicate } from './ranked-predicate.js';
import { zoneVerdict } from './zone-verdict.js';

/** A row group of which only the values can tell which rows match, and the predicates that they have to be compared with. */
export interface Undecided {
  readonly kind: 'undecided';
  readonly open: OpenRowGroup;
  readonly predicates: RankedPredicate[];
}

/** What can be said of the rows of a row group before any column is read. */
export type Pruned = Undecided | { readonly kind: 'all' } | { readonly kind: 'none' };

const none: Pruned = { kind: 'none' };

/** Rules out row groups by what is stored beside the values. Each kind of it is asked in `prune`, those that cost least first. */
export class Pruning {
  readonly #predicates: readonly RankedPredicate[];
  /** Those on the field whose bounds the manifest has. */
  readonly #onTime: readonly PreparedPredicate[];
  /** What filters of row groups are asked: whole values first, then the longest text, which has the most grams that can be missing. */
  readonly #questions: readonly FilterQuestion[];
  /** What has been asked ahead. */
  readonly #asked = new Map<RowGroup, Ruling | RulingToCome>();
  readonly #threads: QueryThreads | null;
  readonly #stats: ScanStats;

  constructor(
    schema: Schema,
    predicates: readonly RankedPredicate[],
    threads: QueryThreads | null,
    stats: ScanStats,
  ) {
    const time = placementField(schema);
    this.#predicates = predicates;
    this.#onTime = predicates.map(({ predicate }) => predicate).filter(({ field }) => field === time);
    this.#questions = predicates
      .map(({ predicate: { field, asked } }) => ({ field, asked }))
      .filter(({ asked }) => asked.length > 0)
      .sort((a, b) => shortestAsked(b) - shortestAsked(a));
    this.#threads = threads;
    this.#stats = stats;
  }

  /** Asks the filters of a row group of which `prune` will be asked later. */
  probeAhead(rowGroup: RowGroup): void {
    if (this.#questions.length === 0 || this.#asked.has(rowGroup) || this.#isApartInTime(rowGroup)) return;
    if (rowGroup.isOpen() && this.#isRuledOutByZones(rowGroup)) return;
    this.#asked.set(rowGroup, rowGroup.probe(this.#questions, this.#threads, this.#stats));
  }

  #isRuledOutByZones(rowGroup: RowGroup): boolean {
    const open = rowGroup.open(this.#threads, this.#stats);
    return !(open instanceof Promise) && this.#undecidedByZones(open) === null;
  }

  /** What is known of a row group without its columns. Counts what has ruled it out. */
  *prune(rowGroup: RowGroup): Steps<never, Pruned> {
    const stats = this.#stats;
    if (this.#predicates.length === 0) return this.#every();
    if (this.#isApartInTime(rowGroup)) {
      stats.rowGroupsPrunedByTime++;
      return none;
    }
    // Zone maps in memory are asked before filters. Those in a footer come after them: a footer is longer than the pieces of filters.
    const isProbed = !rowGroup.isOpen();
    if (isProbed && !(yield* this.#mayHold(rowGroup))) return none;
    const open = yield* settled(rowGroup.open(this.#threads, stats));
    const predicates = this.#undecidedByZones(open);
    if (predicates === null) {
      stats.rowGroupsPrunedByZone++;
      return none;
    }
    if (predicates.length === 0) return this.#every();
    if (!isProbed && !(yield* this.#mayHold(rowGroup))) return none;
    return { kind: 'undecided', open, predicates };
  }

  #every(): Pruned {
    this.#stats.rowGroupsScanned++;
    return { kind: 'all' };
  }

  /** Whether the bounds in the manifest leave no row to match. That needs no file. */
  #isApartInTime({ timeMinMs, timeMaxMs, rows }: RowGroup): boolean {
    if (this.#onTime.length === 0 || timeMinMs === null || timeMaxMs === null) return false;
    const zone = { min: BigInt(timeMinMs), max: BigInt(timeMaxMs), nullCount: 0, rows };
    return this.#onTime.some((predicate) => zoneVerdict(predicate, zone) === 'none');
  }

  /** The predicates that zone maps leave undecided; null where one of them says that no row matches. */
  #undecidedByZones(open: OpenRowGroup): RankedPredicate[] | null {
    const undecided: RankedPredicate[] = [];
    for (const ranked of this.#predicates) {
      const verdict = zoneVerdict(ranked.predicate, open.zone(ranked.predicate.field));
      if (verdict === 'none') return null;
      if (verdict === 'some') undecided.push(ranked);
    }
    return undecided;
  }

  /** Whether rows may match, as far as the filters in the file tell. */
  *#mayHold(rowGroup: RowGroup): Steps<never, boolean> {
    if (this.#questions.length === 0) return true;
    const asked = this.#asked.get(rowGroup) ?? rowGroup.probe(this.#questions, this.#threads, this.#stats);
    const said = yield* settledRuling(asked);
    if (said === ruling.byValue) this.#stats.rowGroupsPrunedByValue++;
    if (said === ruling.byGram) this.#stats.rowGroupsPrunedByGram++;
    return said === ruling.mayMatch;
  }
}

function* settledRuling(asked: Ruling | RulingToCome): Steps<never, Ruling> {
  if (!(asked instanceof RulingToCome)) return asked;
  if (!asked.isKnown) yield asked.answered;
  return asked.said;
}

/** The length of the shortest text that is asked for; whole values count as longer than any. */
function shortestAsked({ asked }: FilterQuestion): number {
  return Math.min(
    ...asked.map(({ hash, folded }) => (hash === null ? folded.length : Number.MAX_SAFE_INTEGER)),
  );
}
