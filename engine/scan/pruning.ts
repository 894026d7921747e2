import { placementField, type Schema } from '../core/schema.js';
import type { JobQueue } from '../workers/job-queue.js';
import type { OpenRowGroup, RowGroup } from '../store/reading/snapshot.js';
import { ruling, type Ruling, SegmentRulings } from '../store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../store/sealed/filter-question.js';
import type { FileFilters } from '../store/reading/filter-request.js';
import { FilterProbes } from '../store/reading/filter-probes.js';
import type { ScanStats } from './query.js';
import type {
  PreparedPredicate,
  PreparedPredicates,
  Comparison,
  Range,
  StringComparison,
} from './predicate.js';
import {
  rankedAnywhere,
  rankedPredicate,
  type RankedAnywhere,
  type RankedPredicate,
} from './ranked-predicate.js';
import { assert, assertNever } from '../core/errors.js';
import type { ZoneMap } from '../columns/zone-map.js';

/** A row group where only the values can tell which rows match, and the predicates that they have to be compared with. */
export interface Undecided {
  readonly kind: 'undecided';
  readonly open: OpenRowGroup;
  readonly predicates: RankedPredicate[];
  /** Texts that are searched in any field. */
  readonly anywhere: readonly RankedAnywhere[];
}

/** What is known of a row group's rows before any column is read: all match, none matches, or undecided. */
export type Pruned = Undecided | { readonly kind: 'all' } | { readonly kind: 'none' };

const none: Pruned = { kind: 'none' };

/** A segment, and its row groups whose filters have not been asked yet. */
interface ToAsk {
  readonly filters: FileFilters;
  readonly rulings: SegmentRulings;
  rowGroups: number[];
}

/** The counter for row groups that are ruled out, by reason. */
const counterOf = {
  [ruling.byTime]: 'rowGroupsPrunedByTime',
  [ruling.byZone]: 'rowGroupsPrunedByZone',
  [ruling.byValue]: 'rowGroupsPrunedByValue',
  [ruling.byGram]: 'rowGroupsPrunedByGram',
} as const;

/**
 * Rules out row groups by what is stored beside the values, in the order of the cost of asking. `consider` a row group first; then `ask`
 * asks its filters together with those of other row groups; only row groups for which `isRuledOut` is false are opened and passed to
 * `prune`.
 */
export class Pruning {
  readonly #predicates: readonly RankedPredicate[];
  readonly #anywhere: readonly RankedAnywhere[];
  /** The predicates on the field whose bounds the manifest has. */
  readonly #onTime: readonly PreparedPredicate[];
  /**
   * The questions to the filters of row groups: whole values first, then by descending length of the text, because a longer text has more
   * n-grams that can be missing.
   */
  readonly #questions: readonly FilterQuestion[];
  /** Index in `#questions` of each predicate that is asked. */
  readonly #numbers = new Map<RankedPredicate, number>();
  readonly #segments = new Map<FileFilters, ToAsk>();
  /** Segments with row groups to ask about. */
  #toAsk: ToAsk[] = [];
  readonly #probes: FilterProbes | null;

  constructor(
    schema: Schema,
    { onField, anywhere }: PreparedPredicates,
    private readonly threads: JobQueue | null,
    private readonly stats: ScanStats,
  ) {
    const time = placementField(schema);
    const predicates = onField.map(rankedPredicate);
    this.#predicates = predicates;
    this.#anywhere = anywhere.map(rankedAnywhere);
    this.#onTime = onField.filter(({ field }) => field === time);
    this.#questions = this.#questionsOf(predicates);
    this.#probes = threads && new FilterProbes(threads, this.#questions, stats);
  }

  /** To the filters, a predicate on a field is the same as a text in any of the fields, where there is only that field. */
  #questionsOf(predicates: readonly RankedPredicate[]): FilterQuestion[] {
    const alone = predicates.map((ranked): RankedAnywhere => ({ members: [ranked], isAbsent: false }));
    const asked = [...alone, ...this.#anywhere]
      .filter(({ members }) => members.length > 0 && members[0]!.predicate.asked.length > 0)
      .sort((a, b) => shortestAsked(b) - shortestAsked(a));
    const questions: FilterQuestion[] = [];
    for (const { members, isAbsent } of asked) {
      members.forEach((ranked, i) => {
        const isLast = i === members.length - 1;
        this.#numbers.set(ranked, questions.length);
        questions.push({
          field: ranked.predicate.field,
          asked: ranked.predicate.asked,
          concludes: isLast && !isAbsent ? members.length : 0,
        });
      });
    }
    return questions;
  }

  /** Whether filters are asked at all. That may take a while. */
  get asks(): boolean {
    return this.#questions.length > 0;
  }

  /** Whether filters are asked for a whole value, which few row groups have. */
  get asksWholeValues(): boolean {
    return this.#questions.some(
      ({ asked, concludes }) => concludes > 0 && asked.every(({ hash }) => hash !== null),
    );
  }

  /** Notes what is known of a row group without a wait. `ask` asks its filters, if necessary. */
  consider(rowGroup: RowGroup): void {
    const segment = this.#segmentOf(rowGroup);
    if (segment.rulings.of(rowGroup.index) !== ruling.unknown) return;
    const known = this.#rulingInMemory(rowGroup);
    segment.rulings.set(rowGroup.index, known);
    if (known !== ruling.mayMatch || !this.asks) return;
    if (segment.rowGroups.length === 0) this.#toAsk.push(segment);
    segment.rowGroups.push(rowGroup.index);
  }

  /**
   * Asks the filters of the row groups that have been considered. Null where there is nothing to wait for. Never rejects: `prune` throws
   * the failures.
   */
  ask(): Promise<unknown> | null {
    const answers: Promise<void>[] = [];
    for (const segment of this.#toAsk.splice(0)) {
      const { filters, rulings, rowGroups } = segment;
      segment.rowGroups = [];
      const answer = filters.ask({
        rowGroups,
        rulings,
        questions: this.#questions,
        threads: this.#probes,
        counters: this.stats,
      });
      // Threads return the same promise for everything that is asked at once.
      if (answer !== null && answer !== answers.at(-1)) answers.push(answer);
    }
    return answers.length === 0 ? null : Promise.all(answers);
  }

  /** Whether a row group is ruled out, after `consider` and `ask`. Counts the reason in the statistics once per row group. */
  isRuledOut(rowGroup: RowGroup): boolean {
    const { rulings } = this.#segmentOf(rowGroup);
    const known = rulings.of(rowGroup.index);
    if (known === ruling.counted) return true;
    if (known === ruling.unknown || known === ruling.mayMatch || known === ruling.failed) return false;
    this.stats[counterOf[known]]++;
    rulings.set(rowGroup.index, ruling.counted);
    return true;
  }

  #segmentOf({ filters }: RowGroup): ToAsk {
    let segment = this.#segments.get(filters);
    if (segment === undefined) {
      segment = {
        filters,
        rulings: new SegmentRulings(filters.rowGroups, this.#questions.length),
        rowGroups: [],
      };
      this.#segments.set(filters, segment);
    }
    return segment;
  }

  /**
   * What the bounds in the manifest and a footer in memory say. A footer that is not in memory is not read here: it is longer than the
   * pieces of filters, which are therefore asked before.
   */
  #rulingInMemory(rowGroup: RowGroup): Ruling {
    if (this.#isApartInTime(rowGroup)) return ruling.byTime;
    const open = this.#isForAll ? null : rowGroup.opened(this.threads);
    return open !== null && this.#leftByZones(open) === null ? ruling.byZone : ruling.mayMatch;
  }

  /**
   * The predicates that the bounds of a row group leave undecided; null where the bounds rule it out. Asks no filters, and adds nothing to
   * the statistics on pruning.
   */
  async leftByBounds(rowGroup: RowGroup): Promise<readonly RankedPredicate[] | null> {
    if (this.#isApartInTime(rowGroup)) return null;
    if (this.#isForAll) return [];
    const left = this.#leftByZones(await rowGroup.open(this.threads, this.stats));
    return left && [...left.predicates, ...left.anywhere.flatMap(({ members }) => members)];
  }

  /**
   * What is known of a row group that `isRuledOut` has not ruled out, without reading its columns. Throws what asking its filters has
   * thrown.
   */
  async prune(rowGroup: RowGroup): Promise<Pruned> {
    const stats = this.stats;
    if (this.#isForAll) return this.#every();
    const { rulings } = this.#segmentOf(rowGroup);
    if (rulings.of(rowGroup.index) === ruling.failed) throw rulings.failure;
    const open = await rowGroup.open(this.threads, stats);
    const left = this.#leftByZones(open);
    if (left === null) {
      stats.rowGroupsPrunedByZone++;
      return none;
    }
    const anywhere = this.#leftByFilters(left.anywhere, rulings, rowGroup.index);
    if (anywhere === null) {
      stats.rowGroupsPrunedByGram++;
      return none;
    }
    if (this.asks && (await open.isRuledOutByFile?.(this.#questions, stats)) === true) {
      stats.rowGroupsPrunedByValue++;
      return none;
    }
    const { predicates } = left;
    const isDecided = predicates.length === 0 && anywhere.length === 0;
    return isDecided ? this.#every() : { kind: 'undecided', open, predicates, anywhere };
  }

  /**
   * The texts in any field that a row group may contain, each with the fields whose filters allow for it; null where the filters say that
   * no row matches.
   */
  #leftByFilters(
    anywhere: readonly RankedAnywhere[],
    rulings: SegmentRulings,
    rowGroup: number,
  ): RankedAnywhere[] | null {
    const left: RankedAnywhere[] = [];
    let columnsPruned = 0;
    for (const { members, isAbsent } of anywhere) {
      const mayHold = members.filter((ranked) => {
        const question = this.#numbers.get(ranked);
        return question === undefined || !rulings.isWithout(question, rowGroup);
      });
      columnsPruned += members.length - mayHold.length;
      if (mayHold.length > 0) left.push({ members: mayHold, isAbsent });
      else if (!isAbsent) return null;
    }
    this.stats.columnsPrunedByGram += columnsPruned;
    return left;
  }

  /** Whether the query has no predicates. */
  get #isForAll(): boolean {
    return this.#predicates.length === 0 && this.#anywhere.length === 0;
  }

  #every(): Pruned {
    this.stats.rowGroupsScanned++;
    return { kind: 'all' };
  }

  /** Whether the time bounds in the manifest say that no row matches. Reads no file. */
  #isApartInTime({ timeMinMs, timeMaxMs, rows }: RowGroup): boolean {
    if (this.#onTime.length === 0 || timeMinMs === null || timeMaxMs === null) return false;
    const zone = { min: BigInt(timeMinMs), max: BigInt(timeMaxMs), nullCount: 0, rows };
    return this.#onTime.some((predicate) => zoneVerdict(predicate, zone) === 'none');
  }

  /** The predicates that zone maps leave undecided; null where they say that no row matches. */
  #leftByZones(open: OpenRowGroup): Pick<Undecided, 'predicates' | 'anywhere'> | null {
    const predicates: RankedPredicate[] = [];
    for (const ranked of this.#predicates) {
      const verdict = zoneVerdict(ranked.predicate, open.zone(ranked.predicate.field));
      if (verdict === 'none') return null;
      if (verdict === 'some') predicates.push(ranked);
    }
    const anywhere: RankedAnywhere[] = [];
    for (const { members, isAbsent } of this.#anywhere) {
      const verdicts = members.map(({ predicate }) => zoneVerdict(predicate, open.zone(predicate.field)));
      const isEverywhere = verdicts.includes('all');
      const mayHold = members.filter((_, i) => verdicts[i] !== 'none');
      const isDecided = isEverywhere || mayHold.length === 0;
      if (!isDecided) anywhere.push({ members: mayHold, isAbsent });
      else if (isEverywhere === isAbsent) return null;
    }
    return { predicates, anywhere };
  }
}

/** Length of the shortest text that is asked for. A whole value counts as longer than any text. */
function shortestAsked({ members }: RankedAnywhere): number {
  return Math.min(
    ...members[0]!.predicate.asked.map(({ hash, folded }) =>
      hash === null ? folded.length : Number.MAX_SAFE_INTEGER,
    ),
  );
}

/** What a zone map says of a predicate: no row matches, every row matches, or only the values can tell. */
export type ZoneVerdict = 'none' | 'all' | 'some';

/** The verdict of a column chunk's zone map; `some` where it has no bounds. A null matches no predicate. */
export function zoneVerdict(predicate: PreparedPredicate, zone: ZoneMap | null): ZoneVerdict {
  if (zone === null) return 'some';
  if (zone.nullCount === zone.rows) return 'none';
  const verdicts = predicate.anyOf.map((comparison) => comparisonVerdict(comparison, zone));
  if (verdicts.includes('all')) return zone.nullCount > 0 ? 'some' : 'all';
  return verdicts.includes('some') ? 'some' : 'none';
}

function comparisonVerdict(comparison: Comparison, { min, max }: ZoneMap): ZoneVerdict {
  if (comparison.kind === 'string' && comparison.needle.op !== 'exact') {
    if (comparison.needle.folded.length > 0) return 'some';
    return comparison.outside ? 'none' : 'all';
  }
  if (min === null || max === null) return 'some';
  switch (comparison.kind) {
    case 'int':
      assert(typeof min === 'bigint' && typeof max === 'bigint', 'the bounds of integers are BigInts');
      return rangeVerdict(comparison, min, max);
    case 'float':
      assert(typeof min === 'number' && typeof max === 'number', 'the bounds of floats are numbers');
      return Number.isNaN(min) || Number.isNaN(max) ? 'some' : rangeVerdict(comparison, min, max);
    case 'string':
      assert(min instanceof Uint8Array && max instanceof Uint8Array, 'the bounds of strings are bytes');
      return exactVerdict(comparison, min, max);
    default:
      return assertNever(comparison);
  }
}

function rangeVerdict<T extends bigint | number>(
  { low, high, outside }: Range<T>,
  min: T,
  max: T,
): ZoneVerdict {
  return verdictOf(max < low || min > high, min >= low && max <= high, outside);
}

function exactVerdict({ needle, outside }: StringComparison, min: Uint8Array, max: Uint8Array): ZoneVerdict {
  const fromMin = Buffer.compare(needle.raw, min);
  const fromMax = Buffer.compare(needle.raw, max);
  return verdictOf(fromMin < 0 || fromMax > 0, fromMin === 0 && fromMax === 0, outside);
}

/** The verdict where all values are outside of a range (`apart`) or all within it. `outside` inverts the range. */
function verdictOf(apart: boolean, within: boolean, outside: boolean): ZoneVerdict {
  if (apart) return outside ? 'all' : 'none';
  if (within) return outside ? 'none' : 'all';
  return 'some';
}
