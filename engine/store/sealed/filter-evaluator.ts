import { filterBlockBytes } from '../../kernels/value-filter.js';
import { blockOfHash, isInBlock, type ValueHash } from '../../parquet/bloom-filter.js';
import type { FilterPiece } from './filter-piece.js';
import { mayHaveAll, planGramLookups, shapeNumber, type GramLookup } from './gram-filter.js';
import type { Asked, FilterQuestion } from './filter-question.js';
import { ruling, type Ruling, type SegmentRulings } from './segment-rulings.js';
import type { GramFilterPlace, SegmentFilters, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import { checkedAfter, isInSketch, probeOf, stripeBytes } from './value-filter.js';

/** Answers the questions of one query from pieces of filters. */
export class FilterEvaluator {
  /** The pieces to look up each text in, by the shape of the filter. Most filters of a column have the same shape. */
  readonly #plans = new Map<Asked, Map<number, GramLookup[]>>();

  constructor(private readonly questions: readonly FilterQuestion[]) {}

  /**
   * Asks about row groups of a segment what was not answered yet, and stores the answers and what rules row groups out. Yields the pieces
   * that it needs, one after another, and is given the bytes of each, which are valid until it asks for the next. Needs as few as possible:
   * a value's sketches of all row groups, which are one piece, then the filters of the remaining row groups. Value filters come before gram
   * filters: they need one piece, and their false positive rate is one in a hundred.
   *
   * @param fields the stored field of each question; negative if the segment cannot be asked
   */
  *evaluate(
    filters: SegmentFilters,
    fields: ArrayLike<number>,
    rowGroups: readonly number[],
    rulings: SegmentRulings,
  ): Generator<FilterPiece, void, Uint8Array> {
    let left = rowGroups;
    for (const [i, question] of this.questions.entries()) {
      const field = fields[i]! < 0 ? null : filters.of(fields[i]!);
      let asking = left.filter((rowGroup) => rulings.answerTo(i, rowGroup) === ruling.unknown);
      for (const rowGroup of asking) rulings.setAnswer(i, rowGroup, ruling.mayMatch);
      for (const one of field === null || asking.length === 0 ? [] : question.asked) {
        const { hash, folded } = one;
        const { sketches, values, grams } = field!;
        let mayHave: readonly boolean[] | null = null;
        if (hash !== null && sketches !== undefined) {
          const stripe = yield stripeOf(sketches, hash, filters.rowGroups);
          mayHave = asking.map((rowGroup) => isInSketch(stripe, rowGroup * filterBlockBytes, hash));
        }
        const without: number[] = [];
        for (const [k, rowGroup] of asking.entries()) {
          const value = hash === null ? undefined : values[rowGroup];
          const gram = folded.length === 0 ? undefined : grams[rowGroup];
          let said: Ruling = ruling.mayMatch;
          if (mayHave?.[k] === false) said = ruling.byValue;
          else if (value !== undefined) {
            const { piece, at } = valueProbe(value, hash!);
            if (!isInBlock(yield piece, at, hash!)) said = ruling.byValue;
          } else if (gram !== undefined) {
            const lookups = this.#planOf(gram, one);
            for (let next = 0; next < lookups.length && said === ruling.mayMatch; next++) {
              const lookup = lookups[next]!;
              if (mayHaveAll(lookup, yield gramPiece(gram, lookup))) continue;
              said = ruling.byGram;
              // The distinctive grams of a text are at the same bits in every filter of a column, so that the piece that ruled out this row
              // group is likely to rule out the next.
              lookups.unshift(...lookups.splice(next, 1));
            }
          }
          rulings.setAnswer(i, rowGroup, said);
          if (said !== ruling.mayMatch) without.push(rowGroup);
        }
        asking = without;
        if (asking.length === 0) break;
      }
      left = rulings.ruleOut(i, question, left);
    }
  }

  #planOf(shape: GramFilterPlace, one: Asked): GramLookup[] {
    let plans = this.#plans.get(one);
    if (plans === undefined) this.#plans.set(one, (plans = new Map()));
    const key = shapeNumber(shape);
    let lookups = plans.get(key);
    if (lookups === undefined) plans.set(key, (lookups = planGramLookups(shape, one.folded)));
    return lookups;
  }
}

/** The blocks of a value in the sketches of all row groups. */
function stripeOf(place: SketchPlace, hash: ValueHash, rowGroups: number): FilterPiece {
  const offset = place.offset + blockOfHash(hash, place.stripes) * stripeBytes(rowGroups);
  return { kind: 'sketches', place, ...checkedAfter(offset, rowGroups * filterBlockBytes) };
}

/** The piece of a Bloom filter that has a value's block, and where. */
function valueProbe(place: ValueFilterPlace, hash: ValueHash): { piece: FilterPiece; at: number } {
  const { piece, at } = probeOf(place.blocks, hash);
  const offset = place.offset + piece.offset;
  const checksumOffset = place.offset + piece.checksumOffset;
  return { piece: { kind: 'values', place, offset, bytes: piece.bytes, checksumOffset }, at };
}

function gramPiece(place: GramFilterPlace, { piece }: GramLookup): FilterPiece {
  return { kind: 'grams', place, ...checkedAfter(place.offset + piece.offset, piece.bytes) };
}
