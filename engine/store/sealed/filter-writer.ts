import type { GramFilter } from './gram-filter.js';
import type { FilterPlaces, GramFilterPlace, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import { bloomFilterBytes, joinSketches, type ValueFilter } from './value-filter.js';

/**
 * Of one row group alone a sketch would save no read. Of two it does: a row group is ruled out in 2.9 µs in place of 6.9, which reading 4 KiB and
 * their checksum takes.
 */
export const sketchedRowGroupsMin = 2;

/** The filters of a row group's columns. */
export interface RowGroupFilters {
  readonly gramFilters: readonly { readonly field: number; readonly filter: GramFilter }[];
  /** For each field; null where there is none. */
  readonly valueFilters: readonly (ValueFilter | null)[];
}

/** Writes the filters of row groups one after another, then their sketches, and notes where they are. */
export class FilterWriter {
  /** Appends bytes and gives their offset in the file. */
  readonly #append: (bytes: Uint8Array) => Promise<number>;
  readonly #fields: number;
  readonly #gramFilters: GramFilterPlace[] = [];
  readonly #valueFilters: ValueFilterPlace[] = [];
  /** Of each row group and field, until they are written; null for one that has none. */
  #sketches: (Uint8Array | null)[][] = [];
  #sketchPlaces: SketchPlace[] | null = null;
  #rowGroups = 0;

  constructor(fields: number, append: (bytes: Uint8Array) => Promise<number>) {
    this.#fields = fields;
    this.#append = append;
  }

  get rowGroups(): number {
    return this.#rowGroups;
  }

  /** Whether the sketches are written, behind which no more row groups can follow. */
  get hasEnded(): boolean {
    return this.#sketchPlaces !== null;
  }

  get places(): FilterPlaces {
    return {
      gramFilters: this.#gramFilters,
      valueFilters: this.#valueFilters,
      sketches: this.#sketchPlaces ?? [],
    };
  }

  /**
   * Writes the filters of the next row group.
   *
   * @returns where Parquet's own Bloom filter of each field lies; null for a field without one
   */
  async write({
    gramFilters,
    valueFilters,
  }: RowGroupFilters): Promise<({ readonly offset: number; readonly bytes: number } | null)[]> {
    const rowGroup = this.#rowGroups++;
    for (const { field, filter } of gramFilters) {
      const { bytes, ...shape } = filter;
      const offset = await this.#append(bytes);
      this.#gramFilters.push({ rowGroup, field, offset, ...shape });
    }
    const bloomFilters: ({ offset: number; bytes: number } | null)[] = [];
    for (const [field, filter] of valueFilters.entries()) {
      if (filter === null || filter.blocks === 0) {
        bloomFilters.push(null);
        continue;
      }
      const { blocks } = filter;
      const offset = await this.#append(filter.bytes);
      this.#valueFilters.push({ rowGroup, field, offset, blocks });
      bloomFilters.push({ offset, bytes: bloomFilterBytes(blocks) });
    }
    this.#sketches.push(valueFilters.map((filter) => filter?.sketch ?? null));
    return bloomFilters;
  }

  /** Writes the sketches of all row groups. Done once. */
  async end(): Promise<void> {
    if (this.#sketchPlaces !== null) return;
    const places: SketchPlace[] = [];
    this.#sketchPlaces = places;
    const groups = this.#sketches;
    this.#sketches = [];
    for (let field = 0; field < this.#fields; field++) {
      const sketches = groups.map((group) => group[field] ?? null);
      const sketched = sketches.filter((sketch) => sketch !== null);
      if (sketched.length < sketchedRowGroupsMin) continue;
      const joined = joinSketches(sketches);
      places.push({ field, offset: await this.#append(joined.bytes), stripes: joined.stripes });
    }
  }
}
