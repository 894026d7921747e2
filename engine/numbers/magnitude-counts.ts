import { magnitudesPerOctave, middleOf } from '../kernels/numbers.js';

/** Magnitudes of a page: half an octave. */
const pageLength = magnitudesPerOctave / 2;
const pagesAtFirst = 64;

/** The pages of a set: those of consecutive half octaves, by their place among all pages; 0 where there is none. */
interface Pages {
  first: number;
  readonly places: number[];
}

/** How many values of each magnitude sets of numbers have. The sets are numbered from 0. Together they share the memory. */
export class MagnitudeCounts {
  #counts = new Float64Array(pagesAtFirst * pageLength);
  /** Place 0 is no page. */
  #used = 1;
  readonly #sets: Pages[] = [];
  readonly #take: (bytes: number) => void;

  /** @param take as for `DistinctValues` */
  constructor(take: (bytes: number) => void) {
    take(this.#counts.byteLength);
    this.#take = take;
  }

  /** Adds `rows` values of a magnitude to a set. */
  add(set: number, magnitude: number, rows: number): void {
    const page = Math.floor(magnitude / pageLength);
    const pages = (this.#sets[set] ??= { first: page, places: [] });
    const place = pages.places[page - pages.first] ?? 0;
    const at = (place === 0 ? this.#addPage(pages, page) : place) * pageLength;
    this.#counts[at + (magnitude & (pageLength - 1))]! += rows;
  }

  /** The magnitudes of the numbers in some sets, ascending, each with the number of values. */
  of(sets: readonly number[]): [magnitude: number, rows: number][] {
    const counted = new Map<number, number>();
    for (const set of sets)
      this.#sets[set]?.places.forEach((place, i) => {
        const first = (this.#sets[set]!.first + i) * pageLength;
        for (let k = 0; place > 0 && k < pageLength; k++) {
          const rows = this.#counts[place * pageLength + k]!;
          if (rows > 0) counted.set(first + k, (counted.get(first + k) ?? 0) + rows);
        }
      });
    return [...counted].sort(([a], [b]) => a - b);
  }

  #addPage(pages: Pages, page: number): number {
    const place = this.#used++;
    // A place in a list of pages takes eight bytes.
    const before = Math.max(0, pages.first - page);
    this.#take(8 * Math.max(before, page - pages.first - pages.places.length + 1, 1));
    pages.places.unshift(...new Array<number>(before).fill(0));
    pages.first -= before;
    while (pages.places.length < page - pages.first) pages.places.push(0);
    pages.places[page - pages.first] = place;
    const known = this.#counts;
    if ((place + 1) * pageLength > known.length) {
      this.#take(known.byteLength);
      this.#counts = new Float64Array(2 * known.length);
      this.#counts.set(known);
    }
    return place;
  }
}

/** A number within 1 % of the value that `percent` of the values are not above (the nearest rank). At least one is counted. */
export function percentileOf(
  counted: readonly (readonly [magnitude: number, rows: number])[],
  percent: number,
): number {
  const rank = Math.ceil((percent * counted.reduce((sum, [, rows]) => sum + rows, 0)) / 100);
  let passed = 0;
  for (const [magnitude, rows] of counted) {
    passed += rows;
    if (passed >= rank)
      return magnitude < 0 ? -middleOf(-magnitude) : magnitude === 0 ? 0 : middleOf(magnitude);
  }
  return NaN;
}
