import { placementField, type Schema } from '../../terms/schema.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
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
  /** Those that gram filters can be asked about. The longest needle comes first: it has the most grams that can be missing. */
  readonly #onGrams: readonly RankedPredicate[];
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
    this.#onGrams = predicates
      .filter(({ predicate }) => predicate.needles.length > 0)
      .sort((a, b) => shortestNeedle(b.predicate) - shortestNeedle(a.predicate));
    this.#threads = threads;
    this.#stats = stats;
  }

  /** What is known of a row group without its columns. Counts what has ruled it out. */
  *prune(rowGroup: RowGroup): Steps<never, Pruned> {
    const stats = this.#stats;
    if (this.#predicates.length === 0) return this.#every();
    if (this.#isApartInTime(rowGroup)) {
      stats.rowGroupsPrunedByTime++;
      return none;
    }
    const open = yield* settled(rowGroup.open(this.#threads, stats));
    const predicates = this.#undecidedByZones(open);
    if (predicates === null) {
      stats.rowGroupsPrunedByZone++;
      return none;
    }
    if (!(yield* this.#gramsAllow(open, predicates))) {
      stats.rowGroupsPrunedByGram++;
      return none;
    }
    return predicates.length > 0 ? { kind: 'undecided', open, predicates } : this.#every();
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

  /** Whether each of the predicates may match some value, as far as gram filters tell. */
  *#gramsAllow(open: OpenRowGroup, undecided: readonly RankedPredicate[]): Steps<never, boolean> {
    for (const ranked of this.#onGrams)
      if (undecided.includes(ranked) && !(yield* this.#mayContainOne(open, ranked.predicate))) return false;
    return true;
  }

  *#mayContainOne(open: OpenRowGroup, { field, needles }: PreparedPredicate): Steps<never, boolean> {
    for (const { folded } of needles)
      if (yield* settled(open.mayContain(field, folded, this.#stats))) return true;
    return false;
  }
}

function shortestNeedle({ needles }: PreparedPredicate): number {
  return Math.min(...needles.map(({ folded }) => folded.length));
}
