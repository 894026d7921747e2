import type { ValueHash } from '../../parquet/bloom-filter.js';
import { GramProbing } from './gram-probing.js';
import type { GramFilterPlace, SegmentFilters, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import { isInBlock } from '../../parquet/bloom-filter.js';
import { hasChecksum, mayBeInStripe, probeOf, stripeBytes, stripeOf, wholeStripe } from './value-filter.js';

/** Bytes of a segment's file. */
export interface WantedBytes {
  readonly offset: number;
  readonly bytes: number;
}

/** Work that asks for bytes and goes on with what was read, which may be fewer. */
export type Reading<T> = Generator<WantedBytes, T, Uint8Array>;

/** A value that is looked for, or a text that values are to contain. */
export interface Asked {
  /** Of the whole value; null where only a part of it is known. */
  readonly hash: ValueHash | null;
  /** Case-folded UTF-8, which gram filters are asked for; empty for what is no text. */
  readonly folded: Uint8Array;
}

/** A filter of the query, as the filters of segments are asked: rows match only where one of `asked` is in the field. */
export interface FilterQuestion {
  /** Position in the schema of the query. */
  readonly field: number;
  readonly asked: readonly Asked[];
}

/** What filters say of a row group: its rows may match, or a filter of whole values or of grams rules it out. */
export const ruling = { mayMatch: 0, byValue: 1, byGram: 2 } as const;
export type Ruling = (typeof ruling)[keyof typeof ruling];

/** Pieces of filters that were read. */
export interface ProbeCounters {
  gramPiecesRead: number;
  valuePiecesRead: number;
}

/**
 * Where the probes of each question's texts begin. What tells a text apart stands at the same place for every filter of a column, so
 * that the gram that ruled out the last row group is likely to rule out the next.
 */
export type FirstProbes = number[][];

/**
 * Asks the filters of a segment about some of its row groups, with as few bytes read as possible: all sketches of a value in one read, then
 * the filters of the row groups that are left.
 *
 * @param fields the stored field of each question; -1 where the segment can't be asked
 * @returns what the filters say of each of `rowGroups`
 */
export function* probeFilters(
  filters: SegmentFilters,
  rowGroups: readonly number[],
  questions: readonly FilterQuestion[],
  fields: readonly number[],
  firsts: FirstProbes,
  counters: ProbeCounters,
): Reading<Ruling[]> {
  const rulings: Ruling[] = rowGroups.map(() => ruling.mayMatch);
  for (const [i, { asked }] of questions.entries()) {
    const field = fields[i]!;
    if (field < 0 || asked.length === 0) continue;
    const sketches = filters.sketches(field);
    const sketched: (Uint8Array | null)[] = [];
    for (const { hash } of asked) {
      const wanted = sketches !== undefined && hash !== null;
      sketched.push(wanted ? yield* readStripe(sketches, filters.rowGroups, hash, counters) : null);
    }
    for (const [k, rowGroup] of rowGroups.entries()) {
      if (rulings[k] !== ruling.mayMatch) continue;
      const places = {
        values: filters.valueFilter(field, rowGroup),
        grams: filters.gramFilter(field, rowGroup),
      };
      let said: Ruling = ruling.byValue;
      for (const [j, one] of asked.entries()) {
        const stripe = sketched[j]!;
        if (stripe !== null && !mayBeInStripe(stripe, rowGroup, one.hash!)) continue;
        said = yield* probeOne(places, one, firsts[i]!, j, counters);
        if (said === ruling.mayMatch) break;
      }
      rulings[k] = said;
    }
  }
  return rulings;
}

interface Places {
  readonly values: ValueFilterPlace | undefined;
  readonly grams: GramFilterPlace | undefined;
}

/** Filters of whole values are asked first: they need one piece, and are wrong for one value in a hundred. */
function* probeOne(
  { values, grams }: Places,
  { hash, folded }: Asked,
  firsts: number[],
  index: number,
  counters: ProbeCounters,
): Reading<Ruling> {
  if (hash !== null && values !== undefined) {
    return (yield* probeValue(values, hash, counters)) ? ruling.mayMatch : ruling.byValue;
  }
  if (grams === undefined || folded.length === 0) return ruling.mayMatch;
  const probing = new GramProbing(grams, folded, firsts[index]!);
  for (let piece = probing.wanted(); piece !== null; piece = probing.wanted()) {
    counters.gramPiecesRead++;
    probing.take(piece, yield { offset: grams.offset + piece.offset, bytes: piece.storedBytes });
  }
  if (probing.mayContain) return ruling.mayMatch;
  firsts[index] = probing.missed;
  return ruling.byGram;
}

/** Whether a row group may hold the value. What does not match its checksum rules nothing out: `verify` reports it. */
function* probeValue(place: ValueFilterPlace, hash: ValueHash, counters: ProbeCounters): Reading<boolean> {
  const { piece, at } = probeOf(place.blocks, hash);
  counters.valuePiecesRead++;
  const bytes = yield { offset: place.offset + piece.offset, bytes: piece.bytes };
  const checksum = yield { offset: place.offset + piece.checksumOffset, bytes: 4 };
  return !hasChecksum(bytes, checksum) || isInBlock(bytes, at, hash);
}

function* readStripe(
  { offset, stripes }: SketchPlace,
  rowGroups: number,
  hash: ValueHash,
  counters: ProbeCounters,
): Reading<Uint8Array | null> {
  const bytes = stripeBytes(rowGroups);
  counters.valuePiecesRead++;
  return wholeStripe(yield { offset: offset + stripeOf(hash, stripes) * bytes, bytes }, rowGroups);
}
