import { FormatError } from '../parquet/format.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import type { ArrowDictionary, ArrowIndex } from './arrow-index.js';
import type { ArrowField } from './arrow-schema.js';
import { BatchBuffers, type ReadingTally, fieldPlaces } from './batch-buffers.js';
import {
  integersOf,
  readLeaf,
  elementsOf,
  missingReader,
  nestedReader,
  offsetsOf,
  presenceOf,
  type FieldRange,
  type ValueReader,
} from './leaf-reader.js';

/** Reads fields of one batch, with the dictionaries that apply to it. */
export class FieldReader {
  /** Ids of dictionaries that are being read, to detect a dictionary that contains itself. */
  readonly #open = new Set<bigint>();

  constructor(
    private readonly file: ForeignPlace,
    private readonly index: ArrowIndex,
    private readonly batch: number,
    private readonly tally: ReadingTally,
  ) {}

  /** Reads a range of rows of a field. Throws `FormatError`, `limit` and `io`. */
  async read(range: FieldRange): Promise<ValueReader> {
    const { place, to } = range;
    const { type, field } = place;
    if (to > place.rows)
      throw new FormatError(`the field "${field.name}" has ${place.rows} rows, not ${to}`, 0);
    // Where all rows are null, some writers leave the buffers out.
    if (place.buffers > 0 && type.kind !== 'union' && place.nullCount === place.rows) return missingReader;
    if (field.dictionary !== null) return await this.#readCodes(range, field, field.dictionary.id);
    const leaf = readLeaf(range);
    if (leaf !== null) return leaf;
    switch (type.kind) {
      case 'struct':
        return await this.#readStruct(range);
      case 'union':
        return await this.#readUnion(range, type.isDense, type.typeIds);
      case 'run end encoded':
        return await this.#readRuns(range);
      default:
        return await this.#readItems(range);
    }
  }

  /** Reads a range of rows of a child field; without bounds, all rows. */
  async #child(range: FieldRange, index: number, from = 0, to?: number): Promise<ValueReader> {
    const place = range.place.children[index]!;
    return await this.read({ ...range, place, from, to: to ?? place.rows });
  }

  /** Reads lists of any layout, and maps, which are lists of pairs. */
  async #readItems(range: FieldRange): Promise<ValueReader> {
    const { place } = range;
    const isMap = place.type.kind === 'map';
    const items = isMap ? { ...range, place: place.children[0]! } : range;
    const { begin, end, itemsOf } = itemRanges(range);
    if (isMap && end > items.place.rows)
      throw new FormatError(`a map has ${items.place.rows} pairs, expected ${end}`, 0);
    // Checksums in indexes depend on the order in which buffers are read.
    const isPresent = isMap || place.type.kind === 'list' ? presenceOf(range) : null;
    const item = await this.#child(items, 0, begin, end);
    const value = isMap ? await this.#child(items, 1, begin, end) : null;
    return nestedReader(isPresent ?? presenceOf(range), (row, json) => {
      const [first, last] = itemsOf(row);
      json.add(isMap ? '{' : '[');
      for (let at = first; at < last; at++) {
        if (at > first) json.add(',');
        if (value !== null) json.addKey(() => item.write(at, json));
        (value ?? item).write(at, json);
      }
      json.add(isMap ? '}' : ']');
    });
  }

  async #readStruct(range: FieldRange): Promise<ValueReader> {
    const fields: { name: string; reader: ValueReader }[] = [];
    for (const [i, { field }] of range.place.children.entries())
      fields.push({ name: field.name, reader: await this.#child(range, i, range.from, range.to) });
    return nestedReader(presenceOf(range), (row, json) => {
      json.add('{');
      fields.forEach(({ name, reader }, i) => {
        json.addName(name, i === 0);
        reader.write(row, json);
      });
      json.add('}');
    });
  }

  /** Each value of a union is a value of one of its child fields. */
  async #readUnion(range: FieldRange, isDense: boolean, typeIds: readonly number[]): Promise<ValueReader> {
    const { place, buffers, from, to } = range;
    const ids = elementsOf(buffers, place.buffer, 1, from, to);
    const offsets = isDense ? elementsOf(buffers, place.buffer + 1, 4, from, to) : null;
    const fields: ValueReader[] = [];
    for (const i of place.children.keys())
      fields.push(isDense ? await this.#child(range, i) : await this.#child(range, i, from, to));
    return located(null, (row) => {
      const id = ids.getInt8(row - from);
      const number = typeIds.length === 0 ? id : typeIds.indexOf(id);
      const at = offsets === null ? row : offsets.getInt32(4 * (row - from), true);
      const reader = fields[number];
      if (reader === undefined || at < 0 || at >= place.children[number]!.rows)
        throw new FormatError('a union refers to a value that does not exist', 0);
      return { reader, at };
    });
  }

  /** Reads run-end encoded values: the end row of each run, and its value. */
  async #readRuns(range: FieldRange): Promise<ValueReader> {
    const [endsPlace] = range.place.children;
    const runs = endsPlace!.rows;
    const { type } = endsPlace!;
    if (type.kind !== 'int') throw new FormatError('run-end-encoded values have no run ends', 0);
    const ends = integersOf({ ...range, place: endsPlace!, from: 0, to: runs }, type.bits, true);
    const values = await this.#child(range, 1, 0, runs);
    return located(values, (row) => {
      // The run that contains a row is the first one that ends after it.
      let [low, high] = [0, runs];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (Number(ends(middle)) > row) high = middle;
        else low = middle + 1;
      }
      if (low === runs) throw new FormatError('the runs have fewer rows than the batch', 0);
      return { reader: values, at: low };
    });
  }

  async #readCodes(range: FieldRange, field: ArrowField, id: bigint): Promise<ValueReader> {
    const { type } = range.place;
    if (type.kind !== 'int') throw new FormatError('the codes of a dictionary are not integers', 0);
    const isPresent = presenceOf(range);
    const codes = integersOf(range, type.bits, type.isSigned);
    const parts = await this.#dictionaryOf(field, id);
    const locate = (row: number): LocatedValue => {
      let at = Number(codes(row));
      for (const { reader, rows } of parts) {
        if (at >= 0 && at < rows) return { reader, at };
        at -= rows;
      }
      throw new FormatError(`the code ${codes(row)} is not in the dictionary`, 0);
    };
    const nowhere = { reader: missingReader, at: 0 };
    return located(parts[0]?.reader ?? missingReader, (row) => (isPresent(row) ? locate(row) : nowhere));
  }

  /** Reads the dictionary `id` as it applies to the batch: the last full one, followed by its deltas. */
  async #dictionaryOf(field: ArrowField, id: bigint): Promise<{ reader: ValueReader; rows: number }[]> {
    if (this.#open.has(id)) throw new FormatError('a dictionary contains itself', 0);
    this.#open.add(id);
    let parts: ArrowDictionary[] = [];
    for (const dictionary of this.index.dictionaries) {
      if (dictionary.id !== id || dictionary.firstBatch > this.batch) continue;
      parts = dictionary.isDelta ? [...parts, dictionary] : [dictionary];
    }
    const read: { reader: ValueReader; rows: number }[] = [];
    for (const { values } of parts) {
      const buffers = await BatchBuffers.open(this.file, values, this.tally);
      const [place] = fieldPlaces([{ ...field, dictionary: null }], values);
      const { rows } = place!;
      read.push({ reader: await this.read({ place: place!, buffers, from: 0, to: rows }), rows });
    }
    this.#open.delete(id);
    return read;
  }
}

/** A row of another reader. */
interface LocatedValue {
  readonly reader: ValueReader;
  readonly at: number;
}

/**
 * A reader whose rows are rows of other readers.
 *
 * @param like one of them, if all have values of one type
 */
function located(like: ValueReader | null, locate: (row: number) => LocatedValue): ValueReader {
  return {
    isMissing: (row) => {
      const { reader, at } = locate(row);
      return reader.isMissing(at);
    },
    leaf:
      like === null || like.leaf === null
        ? null
        : (row) => {
            const { reader, at } = locate(row);
            return reader.leaf!(at);
          },
    text: like?.text ?? String,
    write: (row, json) => {
      const { reader, at } = locate(row);
      reader.write(at, json);
    },
  };
}

/** The items of each row of a list, and the items [begin, end) that the rows have. */
interface ItemRanges {
  readonly begin: number;
  readonly end: number;
  readonly itemsOf: (row: number) => readonly [from: number, to: number];
}

function itemRanges(range: FieldRange): ItemRanges {
  const { place, buffers, from, to } = range;
  const { type } = place;
  if (type.kind === 'fixed list') {
    const { length } = type;
    return {
      begin: from * length,
      end: to * length,
      itemsOf: (row) => [row * length, (row + 1) * length],
    };
  }
  if (type.kind === 'list view') {
    const starts = integersOf(range, type.bits, true);
    const lengths = elementsOf(buffers, place.buffer + 2, type.bits / 8, from, to);
    const items = place.children[0]!.rows;
    const itemsOf = (row: number): [number, number] => {
      const start = Number(starts(row));
      const at = row - from;
      const length =
        type.bits === 32 ? lengths.getInt32(4 * at, true) : Number(lengths.getBigInt64(8 * at, true));
      if (start < 0 || length < 0 || start + length > items)
        throw new FormatError('a list refers to items that do not exist', 0);
      return [start, start + length];
    };
    return { begin: 0, end: items, itemsOf };
  }
  const offsets = offsetsOf(range, type.kind === 'list' ? type.bits : 32);
  const itemsOf = (row: number): [number, number] => [offsets[row - from]!, offsets[row - from + 1]!];
  return { begin: offsets[0]!, end: offsets[to - from]!, itemsOf };
}
