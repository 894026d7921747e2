import { filterBlockBytes } from '../../kernels/value-filter.js';
import { isInBlock, type ValueHash } from '../../parquet/bloom-filter.js';
import type { FilterPiece, LoadedPiece } from './filter-piece.js';
import { shapeNumber } from './gram-filter.js';
import { mayHaveAll, planGramLookups, type GramLookup } from './gram-probing.js';
import type { Asked, FilterQuestion } from './filter-question.js';
import { ruling, type Ruling, type SegmentRulings } from './segment-rulings.js';
import type {
  FieldFilters,
  GramFilterPlace,
  SegmentFilters,
  SketchPlace,
  ValueFilterPlace,
} from './segment-filters.js';
import { isInSketch, probeOf, stripeBytes, stripeOf } from './value-filter.js';

/** Finds a checked piece of a segment's filters; null if it has not been read. The piece is only valid until the next call. */
export type PieceSource = (piece: FilterPiece) => LoadedPiece | null;

/**
 * For each text of each question, the index of the piece to begin with. The distinctive grams of a text are at the same bits in every filter
 * of a column, so the piece that ruled out the last row group is likely to rule out the next.
 */
export type FirstLookups = number[][];

/** Answers the questions of one query from pieces of filters, which the source reads when they are wanted, or between two calls. */
export class FilterEvaluator {
  readonly #questions: readonly FilterQuestion[];
  readonly #firsts: FirstLookups;
  /** The pieces to look up each text in, by the shape of the filter. Most filters of a column have the same shape. */
  readonly #plans = new Map<Asked, Map<number, readonly GramLookup[]>>();

  constructor(
    questions: readonly FilterQuestion[],
    firsts: FirstLookups = questions.map(({ asked }) => asked.map(() => 0)),
  ) {
    this.#questions = questions;
    this.#firsts = firsts;
  }

  /**
   * Asks about row groups of a segment what was not answered yet, and stores the answers and what rules row groups out. Asks for as few
   * pieces as possible: a value's sketches of all row groups, which are one piece, then the filters of the remaining row groups.
   *
   * @param fields the stored field of each question; negative if the segment cannot be asked
   * @returns whether no piece was missing
   */
  evaluate(
    filters: SegmentFilters,
    fields: ArrayLike<number>,
    rowGroups: readonly number[],
    rulings: SegmentRulings,
    source: PieceSource,
  ): boolean {
    let left = rowGroups;
    let isTold = true;
    for (const [i, question] of this.#questions.entries()) {
      const field = fields[i]! < 0 ? null : filters.of(fields[i]!);
      const toAsk = left.filter((rowGroup) => rulings.said(i, rowGroup) === ruling.unknown);
      if (field === null) for (const rowGroup of toAsk) rulings.say(i, rowGroup, ruling.mayMatch);
      else if (!this.#askOf(field, filters.rowGroups, i, toAsk, rulings, source)) isTold = false;
      left = rulings.conclude(i, question, left);
    }
    return isTold;
  }

  /** Asks question `index` about row groups. Returns false if pieces were missing. */
  #askOf(
    field: FieldFilters,
    rowGroups: number,
    index: number,
    toAsk: readonly number[],
    rulings: SegmentRulings,
    source: PieceSource,
  ): boolean {
    let isTold = true;
    let left = toAsk;
    for (const [j, one] of this.#questions[index]!.asked.entries()) {
      if (left.length === 0) break;
      const sketched = this.#askSketches(field.sketches, rowGroups, one.hash, left, source);
      left = left.filter((rowGroup, k) => {
        const isSketched = sketched !== null;
        const said =
          sketched?.[k] === false
            ? ruling.byValue
            : this.#askOne(field, rowGroup, one, index, j, isSketched, source);
        if (said === null) isTold = false;
        rulings.say(index, rowGroup, said ?? ruling.unknown);
        return said !== null && said !== ruling.mayMatch;
      });
    }
    return isTold;
  }

  /** Whether the sketches of row groups may have the value; undefined if there are none, and null if they are missing. */
  #askSketches(
    place: SketchPlace | undefined,
    rowGroups: number,
    hash: ValueHash | null,
    among: readonly number[],
    source: PieceSource,
  ): readonly boolean[] | null | undefined {
    if (hash === null || place === undefined) return undefined;
    const stored = stripeBytes(rowGroups);
    const bytes = rowGroups * filterBlockBytes;
    const offset = place.offset + stripeOf(hash, place.stripes) * stored;
    const stripe = source({ kind: 'sketches', place, offset, bytes, checksumOffset: offset + bytes });
    return (
      stripe &&
      among.map((rowGroup) => isInSketch(stripe.bytes, stripe.at + rowGroup * filterBlockBytes, hash))
    );
  }

  /**
   * Asks the filters of one row group for a value or a text. Value filters come first: they need one piece, and their false positive rate is
   * one in a hundred. Null if missing pieces could rule out the row group.
   */
  #askOne(
    field: FieldFilters,
    rowGroup: number,
    one: Asked,
    index: number,
    j: number,
    isSketched: boolean,
    source: PieceSource,
  ): Ruling | null {
    const values = one.hash === null ? undefined : field.values[rowGroup];
    const grams = one.folded.length === 0 ? undefined : field.grams[rowGroup];
    let said: Ruling | null = ruling.mayMatch;
    if (values !== undefined) said = this.#askValues(values, one.hash!, source);
    else if (grams !== undefined) said = this.#askGrams(grams, one, this.#firsts[index]!, j, source);
    return said === ruling.mayMatch && !isSketched ? null : said;
  }

  #askValues(place: ValueFilterPlace, hash: ValueHash, source: PieceSource): Ruling | null {
    const { piece, at } = probeOf(place.blocks, hash);
    const offset = place.offset + piece.offset;
    const checksumOffset = place.offset + piece.checksumOffset;
    const found = source({ kind: 'values', place, offset, bytes: piece.bytes, checksumOffset });
    if (found === null) return null;
    return isInBlock(found.bytes, found.at + at, hash) ? ruling.mayMatch : ruling.byValue;
  }

  #askGrams(
    place: GramFilterPlace,
    one: Asked,
    firsts: number[],
    j: number,
    source: PieceSource,
  ): Ruling | null {
    const lookups = this.#planOf(place, one);
    const first = firsts[j]!;
    let isTold = true;
    for (let i = 0; i < lookups.length; i++) {
      const number = (first + i) % lookups.length;
      const { piece } = lookups[number]!;
      const offset = place.offset + piece.offset;
      const bytes = piece.bitmapBytes;
      const found = source({ kind: 'grams', place, offset, bytes, checksumOffset: offset + bytes });
      if (found === null) isTold = false;
      else if (!mayHaveAll(lookups[number]!, found.bytes, found.at)) {
        firsts[j] = number;
        return ruling.byGram;
      }
    }
    return isTold ? ruling.mayMatch : null;
  }

  #planOf(shape: GramFilterPlace, one: Asked): readonly GramLookup[] {
    let plans = this.#plans.get(one);
    if (plans === undefined) {
      plans = new Map();
      this.#plans.set(one, plans);
    }
    const key = shapeNumber(shape);
    let lookups = plans.get(key);
    if (lookups === undefined) {
      lookups = planGramLookups(shape, one.folded);
      plans.set(key, lookups);
    }
    return lookups;
  }
}
