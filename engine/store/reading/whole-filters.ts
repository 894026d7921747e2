import { crc32 } from 'node:zlib';
import { wholeFiltersBytesMax } from '../../core/limits.js';
import type { ReadableFile } from '../disk/directory.js';
import { FilterEvaluator } from '../sealed/filter-evaluator.js';
import { pieceChecksumBytes, type FilterPiece, type StoredFilter } from '../sealed/filter-piece.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import { sketchesBytes, type SegmentFilters } from '../sealed/segment-filters.js';
import type { SegmentRulings } from '../sealed/segment-rulings.js';
import { valueFilterBytes } from '../sealed/value-filter.js';

type FilterOfValues = Exclude<StoredFilter, { readonly kind: 'grams' }>;

/** Bytes of all filters that are held. */
let bytesHeld = 0;

/**
 * The value filters of some fields of a segment, whole and in memory. They answer for values that nobody has asked for before, without a
 * thread and without the disk: 0.15 ms of processor time instead of 1.1 ms for an id among two million.
 */
export class WholeFilters {
  /** By their offset in the file. */
  readonly #filters = new Map<number, Buffer>();
  /** For each field that was to be read, whether its filters are held. */
  readonly #fields = new Map<number, boolean>();
  #bytes = 0;
  #isClosed = false;

  /** @param segment the places of the segment's filters */
  constructor(private readonly segment: SegmentFilters) {}

  /** Reads the filters of fields that were not read before. Those for which there is no room are not held. */
  async read(file: ReadableFile, fields: Iterable<number>): Promise<void> {
    for (const field of fields) {
      if (this.#fields.has(field)) continue;
      this.#fields.set(field, false);
      const stored = this.#filtersOf(field);
      const bytes = stored.reduce((sum, filter) => sum + this.#sizeOf(filter), 0);
      if (bytes === 0 || this.#isClosed || bytesHeld + bytes > wholeFiltersBytesMax) continue;
      bytesHeld += bytes;
      this.#bytes += bytes;
      for (const filter of stored) {
        const { buffer, byteOffset, length } = await file.read(filter.place.offset, this.#sizeOf(filter));
        this.#filters.set(filter.place.offset, Buffer.from(buffer, byteOffset, length));
      }
      this.#fields.set(field, true);
    }
    if (this.#isClosed) this.close();
  }

  /** Does what `FilterEvaluator.evaluate` says, if everything that may be needed for that is held. Returns whether it is. */
  ask(
    questions: readonly FilterQuestion[],
    fields: readonly number[],
    rowGroups: readonly number[],
    rulings: SegmentRulings,
  ): boolean {
    const isHeld = (question: FilterQuestion, i: number): boolean =>
      fields[i]! < 0 || (asksValues(question) && this.#fields.get(fields[i]!) === true);
    if (!questions.every(isHeld)) return false;
    const asking = new FilterEvaluator(questions).evaluate(this.segment, fields, rowGroups, rulings);
    for (let wanted = asking.next(); wanted.done !== true;) wanted = asking.next(this.#pieceOf(wanted.value));
    return true;
  }

  /** Frees the memory. Nothing is held any more. */
  close(): void {
    this.#isClosed = true;
    bytesHeld -= this.#bytes;
    this.#bytes = 0;
    this.#fields.clear();
    this.#filters.clear();
  }

  /** The filters of a field that are asked for a value; none if a gram filter may have to be asked as well. */
  #filtersOf(field: number): FilterOfValues[] {
    const filters = this.segment.of(field);
    const found: FilterOfValues[] = [];
    for (let rowGroup = 0; filters !== null && rowGroup < this.segment.rowGroups; rowGroup++) {
      const place = filters.values[rowGroup];
      if (place !== undefined) found.push({ kind: 'values', place });
      else if (filters.grams[rowGroup] !== undefined) return [];
    }
    if (filters?.sketches !== undefined) found.push({ kind: 'sketches', place: filters.sketches });
    return found;
  }

  #sizeOf({ kind, place }: FilterOfValues): number {
    return kind === 'values' ? valueFilterBytes(place.blocks) : sketchesBytes(place, this.segment.rowGroups);
  }

  /** A piece of a filter. Where it is damaged, all of it is set, so that it rules nothing out. */
  #pieceOf({ place, offset, bytes, checksumOffset }: FilterPiece): Uint8Array {
    const whole = this.#filters.get(place.offset)!;
    const piece = whole.subarray(offset - place.offset, offset - place.offset + bytes);
    const at = checksumOffset - place.offset;
    const isSound = at + pieceChecksumBytes <= whole.length && whole.readUInt32LE(at) === crc32(piece);
    return isSound ? piece : new Uint8Array(bytes).fill(0xff);
  }
}

/** Whether a question is about whole values, so that only value filters are asked. */
export function asksValues({ asked }: FilterQuestion): boolean {
  return asked.every(({ hash }) => hash !== null);
}
