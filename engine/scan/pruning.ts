import { placementField, type Schema } from '../core/schema.js';
import type { JobQueue } from '../workers/job-queue.js';
import type { OpenRowGroup, RowGroup } from '../store/reading/snapshot.js';
import { ruling, type Ruling, SegmentRulings } from '../store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../store/sealed/filter-question.js';
import { asksValues } from '../store/reading/whole-filters.js';
import type { FileFilters } from '../store/reading/filter-request.js';
import { FilterProbes } from '../store/reading/filter-probes.js';
import type { ScanStats } from './query.js';
import {
  allMembers,
  mapClause,
  type Clause,
  type PreparedPredicate,
  type PreparedPredicates,
  type Comparison,
  type Range,
  type StringComparison,
} from './predicate.js';
import { rankedPredicate, type RankedPredicate } from './ranked-predicate.js';
import { assert, assertNever } from '../core/errors.js';
import type { ZoneMap } from '../columns/zone-map.js';

/** A row group where only the values can tell which rows match, and what they have to be compared with. */
export interface Undecided {
  readonly kind: 'undecided';
  readonly open: OpenRowGroup;
  readonly clauses: readonly RankedClause[];
}

type RankedClause = Clause<RankedPredicate>;

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
  readonly #clauses: readonly RankedClause[];
  /** The clauses with comparisons of only the field whose bounds the manifest has. It does not say how many values are null. */
  readonly #onTime: readonly RankedClause[];
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
    { clauses }: PreparedPredicates,
    private readonly threads: JobQueue | null,
    private readonly stats: ScanStats,
  ) {
    const time = placementField(schema);
    this.#clauses = clauses.map((clause) => mapClause(clause, rankedPredicate));
    this.#onTime = this.#clauses.filter((clause) =>
      allMembers(clause).every(
        ({ predicate: { field, anyOf } }) => field === time && anyOf[0]!.kind === 'int',
      ),
    );
    this.#questions = this.#questionsOf();
    this.#probes = threads && new FilterProbes(threads, this.#questions, stats);
  }

  /**
   * Where not all members of a clause can be asked, the answers for the others still tell which columns need not be searched. Such clauses are
   * asked last, of the row groups that are left.
   */
  #questionsOf(): FilterQuestion[] {
    const asked = this.#clauses
      .map((clause) => {
        const members = allMembers(clause).filter(({ predicate }) => predicate.asked.length > 0);
        const concludes = members.length === clause.members.length && clause.absent.length === 0;
        return { members, concludes, length: concludes ? shortestAsked(members) : 0 };
      })
      .sort((a, b) => b.length - a.length);
    const questions: FilterQuestion[] = [];
    for (const { members, concludes } of asked) {
      members.forEach((ranked, i) => {
        const { field, asked } = ranked.predicate;
        this.#numbers.set(ranked, questions.length);
        const isLast = i === members.length - 1;
        questions.push({ field, asked, concludes: concludes && isLast ? members.length : 0 });
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
      ({ concludes }, last) =>
        concludes > 0 && this.#questions.slice(last + 1 - concludes, last + 1).every(asksValues),
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
    return left && left.flatMap(allMembers);
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
    const clauses = this.#leftByFilters(left, rulings, rowGroup.index);
    if (clauses === null) {
      stats.rowGroupsPrunedByGram++;
      return none;
    }
    if (this.asks && (await open.isRuledOutByFile?.(this.#questions, stats)) === true) {
      stats.rowGroupsPrunedByValue++;
      return none;
    }
    return clauses.length === 0 ? this.#every() : { kind: 'undecided', open, clauses };
  }

  /** The clauses with the members that the filters of a row group allow for; null where they say that no row matches. */
  #leftByFilters(
    clauses: readonly RankedClause[],
    rulings: SegmentRulings,
    rowGroup: number,
  ): RankedClause[] | null {
    let columnsPruned = 0;
    const mayHold = (ranked: RankedPredicate): ZoneVerdict => {
      const question = this.#numbers.get(ranked);
      if (question === undefined || !rulings.isWithout(question, rowGroup)) return 'some';
      columnsPruned++;
      return 'none';
    };
    const left = clausesLeft(clauses, mayHold);
    if (left !== null) this.stats.columnsPrunedByGram += columnsPruned;
    return left;
  }

  /** Whether the query has no predicates. */
  get #isForAll(): boolean {
    return this.#clauses.length === 0;
  }

  #every(): Pruned {
    this.stats.rowGroupsScanned++;
    return { kind: 'all' };
  }

  /** Whether the time bounds in the manifest say that no row matches. Reads no file. */
  #isApartInTime({ timeMinMs, timeMaxMs, rows }: RowGroup): boolean {
    if (this.#onTime.length === 0 || timeMinMs === null || timeMaxMs === null) return false;
    const zone = { min: BigInt(timeMinMs), max: BigInt(timeMaxMs), nullCount: 0, rows };
    return clausesLeft(this.#onTime, ({ predicate }) => zoneVerdict(predicate, zone)) === null;
  }

  /** What zone maps leave undecided; null where they say that no row matches. */
  #leftByZones(open: OpenRowGroup): RankedClause[] | null {
    return clausesLeft(this.#clauses, ({ predicate }) => zoneVerdict(predicate, open.zone(predicate.field)));
  }
}

/**
 * The clauses that are left undecided by verdicts on their members, each with the members that may still hold; null where one holds for no
 * row.
 */
function clausesLeft(
  clauses: readonly RankedClause[],
  verdictOf: (member: RankedPredicate) => ZoneVerdict,
): RankedClause[] | null {
  const left: RankedClause[] = [];
  for (const { members, absent } of clauses) {
    const ofMembers = alternativesLeft(members, verdictOf);
    const ofAbsent = absent.map((each) => alternativesLeft(each, verdictOf));
    // A text that is in all rows is absent from none, and the other way round.
    if (ofMembers === 'all' || ofAbsent.includes('none')) continue;
    const lacking = ofAbsent.filter((each) => typeof each !== 'string');
    if (ofMembers === 'none' && lacking.length === 0) return null;
    left.push({ members: ofMembers === 'none' ? [] : ofMembers, absent: lacking });
  }
  return left;
}

/** The members that may hold for some rows; `all` where one holds for all rows, `none` where none holds for any. */
function alternativesLeft(
  members: readonly RankedPredicate[],
  verdictOf: (member: RankedPredicate) => ZoneVerdict,
): readonly RankedPredicate[] | 'all' | 'none' {
  const verdicts = members.map(verdictOf);
  if (verdicts.includes('all')) return 'all';
  const left = members.filter((_, i) => verdicts[i] === 'some');
  return left.length === 0 ? 'none' : left;
}

/** Length of the shortest text that is asked for. A whole value counts as longer than any text. */
function shortestAsked(members: readonly RankedPredicate[]): number {
  const lengths = members.flatMap(({ predicate }) =>
    predicate.asked.map(({ hash, folded }) => (hash === null ? folded.length : Number.MAX_SAFE_INTEGER)),
  );
  return Math.min(...lengths);
}

/** What a zone map says of a predicate: no row matches, every row matches, or only the values can tell. */
export type ZoneVerdict = 'none' | 'all' | 'some';

/** The verdict of a column chunk's zone map; `some` where it has no bounds. Only null matches `exists` with false, and nothing else. */
export function zoneVerdict(predicate: PreparedPredicate, zone: ZoneMap | null): ZoneVerdict {
  if (zone === null) return 'some';
  const { nullCount, rows } = zone;
  const [first] = predicate.anyOf;
  if (first!.kind === 'exists') return verdictOf(nullCount === rows, nullCount === 0, first!.outside);
  if (nullCount === rows) return 'none';
  const verdicts = predicate.anyOf.map((comparison) => comparisonVerdict(comparison, zone));
  if (verdicts.includes('all')) return nullCount > 0 ? 'some' : 'all';
  return verdicts.includes('some') ? 'some' : 'none';
}

function comparisonVerdict(comparison: Comparison, { min, max }: ZoneMap): ZoneVerdict {
  if (comparison.kind === 'string' && comparison.needle.op !== 'exact') {
    if (comparison.needle.folded.length > 0) return 'some';
    return comparison.outside ? 'none' : 'all';
  }
  if (min === null || max === null) return 'some';
  switch (comparison.kind) {
    case 'exists':
    case 'pattern':
      return 'some';
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
