import { filterBlockBytes } from '../../kernels/value-filter.js';
import { isInBlock, type ValueHash } from '../../parquet/bloom-filter.js';
import { shapeNumber } from './gram-filter.js';
import { mayHaveAll, planGramReads, type GramRead } from './gram-probing.js';
import type { Asked, FilterQuestion } from './filter-question.js';
import { ruling, type Ruling, type SegmentRulings } from './segment-rulings.js';
import type { GramFilterPlace, SegmentFilters, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import {
  checksumsOf,
  hasChecksum,
  isInSketch,
  probeOf,
  stripeBytes,
  stripeOf,
  wholeStripe,
} from './value-filter.js';

/** A range of bytes of a segment's file. */
export interface WantedBytes {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Work that yields requests for bytes and is resumed with the bytes read, which may be fewer at the end of the file. The bytes are only
 * valid until the next request.
 */
export type Reading<T> = Generator<WantedBytes, T, Uint8Array>;

/** Numbers of filter pieces that were read. */
export interface ProbeCounters {
  gramPiecesRead: number;
  valuePiecesRead: number;
}

/**
 * For each text of each question, the index of the read to begin with. The distinctive grams of a text are at the same bits in every filter
 * of a column, so the read that ruled out the last row group is likely to rule out the next.
 */
export type FirstReads = number[][];

/** Asks the filters of segments the questions of one query. */
export class FilterProbing {
  readonly #questions: readonly FilterQuestion[];
  readonly #firsts: FirstReads;
  readonly #counters: ProbeCounters;
  /** The reads for each text, by the shape of the filter. Most filters of a column have the same shape. */
  readonly #plans = new Map<Asked, Map<number, readonly GramRead[]>>();

  constructor(questions: readonly FilterQuestion[], firsts: FirstReads, counters: ProbeCounters) {
    this.#questions = questions;
    this.#firsts = firsts;
    this.#counters = counters;
  }

  /**
   * Asks about the row groups of a segment that are `mayMatch` in `rulings`, and stores the answers and what rules row groups out there.
   * Reads as few bytes as possible: all sketches for a value in one read, then the filters of the remaining row groups.
   *
   * @param fields the stored field of each question; negative if the segment cannot be asked
   */
  *probe(filters: SegmentFilters, fields: readonly number[], rulings: SegmentRulings): Reading<void> {
    for (const [i, question] of this.#questions.entries()) {
      const left = rulings.left();
      const toAsk = left.filter((rowGroup) => !rulings.isWithout(i, rowGroup));
      if (fields[i]! >= 0 && toAsk.length > 0) yield* this.#askOf(filters, fields[i]!, i, toAsk, rulings);
      rulings.conclude(i, question, left);
    }
  }

  /** Asks question `index` about row groups. */
  *#askOf(
    filters: SegmentFilters,
    field: number,
    index: number,
    rowGroups: readonly number[],
    rulings: SegmentRulings,
  ): Reading<void> {
    for (const rowGroup of rowGroups) rulings.say(index, rowGroup, ruling.byValue);
    let left = rowGroups;
    for (const [j, one] of this.#questions[index]!.asked.entries()) {
      const sketches = one.hash === null ? undefined : filters.sketches(field);
      const maybe =
        sketches === undefined
          ? left
          : yield* this.#askSketches(sketches, filters.rowGroups, one.hash!, left);
      for (const rowGroup of maybe) {
        const said = yield* this.#probeOne(filters, field, rowGroup, one, this.#firsts[index]!, j);
        rulings.say(index, rowGroup, said);
      }
      left = left.filter((rowGroup) => rulings.isWithout(index, rowGroup));
      if (left.length === 0) break;
    }
  }

  /** The row groups whose sketches may have the value. */
  *#askSketches(
    { offset, stripes }: SketchPlace,
    rowGroups: number,
    hash: ValueHash,
    among: readonly number[],
  ): Reading<readonly number[]> {
    const bytes = stripeBytes(rowGroups);
    this.#counters.valuePiecesRead++;
    const stripe = wholeStripe(yield { offset: offset + stripeOf(hash, stripes) * bytes, bytes }, rowGroups);
    return stripe === null
      ? among
      : among.filter((rowGroup) => isInSketch(stripe, rowGroup * filterBlockBytes, hash));
  }

  /** Asks the filters of one row group. Value filters come first: they need one piece, and their false positive rate is one in a hundred. */
  *#probeOne(
    filters: SegmentFilters,
    field: number,
    rowGroup: number,
    one: Asked,
    firsts: number[],
    index: number,
  ): Reading<Ruling> {
    const values = one.hash === null ? undefined : filters.valueFilter(field, rowGroup);
    if (values !== undefined) {
      const mayHold = yield* this.#probeValue(values, one.hash!, filters.checksums);
      return mayHold ? ruling.mayMatch : ruling.byValue;
    }
    const grams = filters.gramFilter(field, rowGroup);
    if (grams === undefined || one.folded.length === 0) return ruling.mayMatch;
    const reads = this.#readsOf(grams, one);
    const first = firsts[index]!;
    for (let i = 0; i < reads.length; i++) {
      const at = (first + i) % reads.length;
      const { offset, bytes, pieces } = reads[at]!;
      this.#counters.gramPiecesRead += pieces;
      if (mayHaveAll(reads[at]!, yield { offset: grams.offset + offset, bytes })) continue;
      firsts[index] = at;
      return ruling.byGram;
    }
    return ruling.mayMatch;
  }

  #readsOf(shape: GramFilterPlace, one: Asked): readonly GramRead[] {
    let plans = this.#plans.get(one);
    if (plans === undefined) {
      plans = new Map();
      this.#plans.set(one, plans);
    }
    const key = shapeNumber(shape);
    let reads = plans.get(key);
    if (reads === undefined) {
      reads = planGramReads(shape, one.folded);
      plans.set(key, reads);
    }
    return reads;
  }

  /** Whether a row group may have the value. A piece that does not match its checksum rules nothing out; `verify` reports it. */
  *#probeValue(
    place: ValueFilterPlace,
    hash: ValueHash,
    known: Map<ValueFilterPlace, Uint8Array>,
  ): Reading<boolean> {
    const { piece, at } = probeOf(place.blocks, hash);
    const { offset, bytes } = checksumsOf(place.blocks);
    let checksums = known.get(place);
    if (checksums === undefined) {
      checksums = (yield { offset: place.offset + offset, bytes }).slice();
      known.set(place, checksums);
    }
    this.#counters.valuePiecesRead++;
    const blocks = yield { offset: place.offset + piece.offset, bytes: piece.bytes };
    const from = piece.checksumOffset - offset;
    return !hasChecksum(blocks, checksums.subarray(from, from + 4)) || isInBlock(blocks, at, hash);
  }
}
