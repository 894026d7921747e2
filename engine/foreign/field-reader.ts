import { FormatError } from '../parquet/format.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import type { JsonText } from './value-texts.js';
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
      case 'list':
      case 'map':
        return await this.#readList(range, type.kind === 'list' ? type.bits : 32);
      case 'list view':
        return await this.#readListView(range, type.bits);
      case 'fixed list':
        return await this.#readFixedList(range, type.length);
      case 'struct':
        return await this.#readStruct(range);
      case 'union':
        return await this.#readUnion(range, type.isDense, type.typeIds);
      default:
        return await this.#readRuns(range);
    }
  }

  /** Reads a range of rows of a child field; without bounds, all rows. */
  async #child(range: FieldRange, index: number, from = 0, to?: number): Promise<ValueReader> {
    const place = range.place.children[index]!;
    return await this.read({ ...range, place, from, to: to ?? place.rows });
  }

  async #readList(range: FieldRange, bits: number): Promise<ValueReader> {
    const { place, from, to } = range;
    const offsets = offsetsOf(range, bits);
    const isPresent = presenceOf(range);
    const [start, end] = [offsets[0]!, offsets[to - from]!];
    if (place.type.kind === 'map') {
      const pairs = place.children[0]!;
      if (end > pairs.rows) throw new FormatError(`a map has ${pairs.rows} pairs, expected ${end}`, 0);
      const inner = { ...range, place: pairs };
      const key = await this.#child(inner, 0, start, end);
      const value = await this.#child(inner, 1, start, end);
      return nestedReader(isPresent, (row, json) => {
        writeItems(json, '{', '}', offsets[row - from]!, offsets[row - from + 1]!, (item) => {
          json.addKey(() => key.write(item, json));
          value.write(item, json);
        });
      });
    }
    const item = await this.#child(range, 0, start, end);
    return nestedReader(isPresent, (row, json) =>
      writeItems(json, '[', ']', offsets[row - from]!, offsets[row - from + 1]!, (at) =>
        item.write(at, json),
      ),
    );
  }

  async #readListView(range: FieldRange, bits: number): Promise<ValueReader> {
    const { place, buffers, from, to } = range;
    const starts = integersOf(range, bits, true);
    const lengths = elementsOf(buffers, place.buffer + 2, bits / 8, from, to);
    const item = await this.#child(range, 0);
    const items = place.children[0]!.rows;
    return nestedReader(presenceOf(range), (row, json) => {
      const start = Number(starts(row));
      const at = row - from;
      const length = bits === 32 ? lengths.getInt32(4 * at, true) : Number(lengths.getBigInt64(8 * at, true));
      if (start < 0 || length < 0 || start + length > items)
        throw new FormatError('a list refers to items that do not exist', 0);
      writeItems(json, '[', ']', start, start + length, (i) => item.write(i, json));
    });
  }

  async #readFixedList(range: FieldRange, length: number): Promise<ValueReader> {
    const item = await this.#child(range, 0, range.from * length, range.to * length);
    return nestedReader(presenceOf(range), (row, json) =>
      writeItems(json, '[', ']', row * length, (row + 1) * length, (i) => item.write(i, json)),
    );
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
    const locate = (row: number): { reader: ValueReader; at: number } => {
      const id = ids.getInt8(row - from);
      const number = typeIds.length === 0 ? id : typeIds.indexOf(id);
      const at = offsets === null ? row : offsets.getInt32(4 * (row - from), true);
      const reader = fields[number];
      if (reader === undefined || at < 0 || at >= place.children[number]!.rows)
        throw new FormatError('a union refers to a value that does not exist', 0);
      return { reader, at };
    };
    const isPresent = (row: number): boolean => {
      const { reader, at } = locate(row);
      return !reader.isMissing(at);
    };
    return nestedReader(isPresent, (row, json) => {
      const { reader, at } = locate(row);
      reader.write(at, json);
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
    /** The run that contains a row: the first one that ends after it. */
    const runOf = (row: number): number => {
      let [low, high] = [0, runs];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (Number(ends(middle)) > row) high = middle;
        else low = middle + 1;
      }
      if (low === runs) throw new FormatError('the runs have fewer rows than the batch', 0);
      return low;
    };
    return mapped(values, runOf);
  }

  async #readCodes(range: FieldRange, field: ArrowField, id: bigint): Promise<ValueReader> {
    const { type } = range.place;
    if (type.kind !== 'int') throw new FormatError('the codes of a dictionary are not integers', 0);
    const isPresent = presenceOf(range);
    const codes = integersOf(range, type.bits, type.isSigned);
    const parts = await this.#dictionaryOf(field, id);
    const locate = (row: number): { reader: ValueReader; at: number } => {
      let at = Number(codes(row));
      for (const { reader, rows } of parts) {
        if (at >= 0 && at < rows) return { reader, at };
        at -= rows;
      }
      throw new FormatError(`the code ${codes(row)} is not in the dictionary`, 0);
    };
    const [first] = parts;
    return {
      isMissing: (row) => {
        if (!isPresent(row)) return true;
        const { reader, at } = locate(row);
        return reader.isMissing(at);
      },
      leaf:
        first?.reader.leaf === null
          ? null
          : (row) => {
              const { reader, at } = locate(row);
              return reader.leaf!(at);
            },
      text: first?.reader.text ?? String,
      write: (row, json) => {
        if (!isPresent(row)) {
          json.add('null');
          return;
        }
        const { reader, at } = locate(row);
        reader.write(at, json);
      },
    };
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

/** A reader whose row `row` is row `rowOf(row)` of another reader. */
function mapped(reader: ValueReader, rowOf: (row: number) => number): ValueReader {
  const { leaf, text } = reader;
  return {
    isMissing: (row) => reader.isMissing(rowOf(row)),
    leaf: leaf === null ? null : (row) => leaf(rowOf(row)),
    text,
    write: (row, json) => reader.write(rowOf(row), json),
  };
}

function writeItems(
  json: JsonText,
  open: string,
  close: string,
  from: number,
  to: number,
  writeItem: (item: number) => void,
): void {
  json.add(open);
  for (let item = from; item < to; item++) {
    if (item > from) json.add(',');
    writeItem(item);
  }
  json.add(close);
}
