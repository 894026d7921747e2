import type { BytesColumn, Column, DictionaryColumn, NumberColumn } from '../columns/column.js';
import { heap } from '../core/arena.js';
import { encoding, FormatError, physicalType } from '../parquet/format.js';
import type { AnyDataPageHeader } from '../parquet/page-header.js';
import {
  hasCodes,
  isData,
  isDictionary,
  readDictionaryPage,
  readEntryPage,
  type DictionaryPage,
  type EntryPage,
  type Page,
  type PageReading,
  type StoredPage,
} from './chunk-pages.js';
import type { RowSource } from './span-columns.js';
import { formatOf, type LeafValue, type ValueFormat } from './stored-type.js';
import { halfFloat, JsonText, signedInteger } from './value-texts.js';
import { decodeEntryCodes, pageValues } from './page-values.js';
import type { LeafType, ListNode, MapNode, SchemaNode } from './parquet-schema.js';

/** How the values of a leaf are read and written as text. */
interface LeafFormat extends ValueFormat {
  /** Reads a value of a decoded column. */
  readonly read: (values: Column, i: number) => LeafValue;
}

const dayNanos = 86_400_000_000_000n;
/** The Julian day number of 1970-01-01. */
const epochJulianDay = 2_440_588n;

/** The format of a leaf of a Parquet schema. */
function leafFormatOf(leaf: LeafType): LeafFormat {
  return { read: readerOf(leaf), ...formatOf(leaf.stored) };
}

function readerOf({ type, stored }: LeafType): LeafFormat['read'] {
  switch (type) {
    case physicalType.boolean:
      return (values, i) => (values as DictionaryColumn).codes[i] !== 0;
    case physicalType.int32:
    case physicalType.int64:
      if (stored.kind === 'int' && !stored.isSigned)
        return (values, i) => BigInt.asUintN(stored.bits, numberAt(values, i) as bigint);
      return numberAt;
    case physicalType.int96:
      return (values, i) => int96Nanos(bytesAt(values, i));
    case physicalType.float:
    case physicalType.double:
      return numberAt;
    default:
      if (stored.kind === 'decimal') return (values, i) => signedInteger(bytesAt(values, i), 'big');
      if (stored.kind !== 'float') return bytesAt;
      return (values, i) => {
        const bytes = bytesAt(values, i);
        return halfFloat(bytes[0]! + 256 * bytes[1]!);
      };
  }
}

function numberAt(values: Column, i: number): number | bigint {
  return (values as NumberColumn).values[i]!;
}

function bytesAt(values: Column, i: number): Uint8Array {
  const { bytes, offsets } = values as BytesColumn;
  return bytes.subarray(offsets[i], offsets[i + 1]);
}

/**
 * An INT96 timestamp in nanoseconds since the epoch. It stores 8 bytes of nanoseconds of the day, then the Julian day in 4.
 * Spark computes microseconds, which overflow 64 bits for years from 287396 on; this gives the same values.
 */
function int96Nanos(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const day = BigInt(view.getInt32(8, true)) - epochJulianDay;
  const nanosOfDay = view.getBigInt64(0, true);
  const belowMicro = ((nanosOfDay % 1000n) + 1000n) % 1000n;
  return BigInt.asIntN(64, (day * dayNanos + nanosOfDay - belowMicro) / 1000n) * 1000n + belowMicro;
}

/**
 * Iterates over the entries of a column chunk. The values of a page are decoded when the first of them is read, and a page whose
 * rows are all skipped is not even decompressed where its number of rows is known.
 */
export class LeafCursor {
  readonly format: LeafFormat;
  readonly #pages: Iterator<Page>;
  readonly #reading: PageReading;
  #dictionaryPage: DictionaryPage | null = null;
  #dictionary: Column | null = null;
  /** Null before the first page and after the last one. */
  #page: EntryPage | null = null;
  /** Reads the page's value with an index among those of its entries that have one; null until one is read. */
  #valueAt: ((index: number) => LeafValue) | null = null;
  #entry = 0;
  #value = 0;

  /**
   * @param pages the pages of the chunk from the wanted rows on, the dictionary first
   * @param skipped number of rows to skip at first
   * @param areFew whether only a few of the values are read, so that they are better decoded one by one
   */
  constructor(
    readonly type: LeafType,
    pages: Iterable<Page>,
    reading: PageReading,
    skipped: number,
    private readonly areFew: boolean,
  ) {
    this.format = leafFormatOf(type);
    this.#pages = pages[Symbol.iterator]();
    this.#reading = reading;
    this.skipRows(this.#turnPage(skipped));
  }

  /** Definition level of the current entry; -1 after the last entry. */
  get definition(): number {
    if (this.#page === null) return -1;
    return this.#page.definitions?.[this.#entry] ?? this.type.definitionMax;
  }

  /** Repetition level of the current entry; 0 at the beginning of a row and after the last entry. */
  get repetition(): number {
    return this.#page?.repetitions?.[this.#entry] ?? 0;
  }

  /** The value of the current entry, which must have one. */
  get value(): LeafValue {
    this.#valueAt ??= this.#decode();
    return this.#valueAt(this.#value);
  }

  /** Goes to the next entry. Throws `FormatError` after the last one. */
  advance(): void {
    if (this.#page === null) throw noMoreValues();
    if (this.definition === this.type.definitionMax) this.#value++;
    this.#entry++;
    if (this.#entry === this.#page.entries) this.#turnPage(0);
  }

  /** Goes to the beginning of the row that is `rows` after this one. Throws `FormatError` where there are fewer. */
  skipRows(rows: number): void {
    let left = rows;
    while (left > 0) {
      if (this.#page === null) throw noMoreValues();
      const { entries, definitions, repetitions } = this.#page;
      const from = this.#entry;
      let end = repetitions === null ? Math.min(entries, from + left) : from + 1;
      if (repetitions === null) left -= end - from;
      else while (end < entries && (repetitions[end] !== 0 || --left > 0)) end++;
      this.#value += countEqual(definitions, this.type.definitionMax, from, end);
      this.#entry = end;
      if (end < entries) continue;
      // The next page may continue the last row of this one.
      if (repetitions === null) left = this.#turnPage(left);
      else left = this.#turnPage(left - 1) + Number(this.repetition !== 0);
    }
  }

  /** Goes to the next page, or, where pages are known to have only rows that are skipped, beyond these. Returns how many rows are left to skip. */
  #turnPage(rows: number): number {
    this.#page = null;
    this.#valueAt = null;
    this.#entry = 0;
    this.#value = 0;
    let left = rows;
    for (;;) {
      const next = this.#pages.next();
      if (next.done === true) return left;
      const page = next.value;
      if (isDictionary(page)) this.#dictionaryPage = page;
      if (!isData(page) || page.header.rows === 0) continue;
      const isFlat = this.type.repetitionMax === 0;
      if (isFlat && page.header.rows !== (page.rows ?? page.header.rows)) throw unlikeTable(page);
      const known = isFlat ? page.header.rows : page.rows;
      if (known === undefined || left < known) {
        this.#page = this.#readPage(page);
        return left;
      }
      left -= known;
    }
  }

  #readPage(page: Page<AnyDataPageHeader>): EntryPage {
    const entries = readEntryPage(page, this.#reading);
    const { repetitions } = entries;
    if (page.rows === undefined || repetitions === null) return entries;
    const rows = countEqual(repetitions, 0, 0, repetitions.length);
    if (rows !== page.rows || repetitions[0]! > 0) throw unlikeTable(page);
    return entries;
  }

  #decode(): (index: number) => LeafValue {
    const { type } = this;
    const { read } = this.format;
    const stored = this.#page!.stored();
    if (hasCodes(stored.encoding)) {
      if (this.#dictionaryPage === null)
        throw new FormatError('the page refers to a dictionary, but there is none', stored.at);
      // The page keeps its own room while the dictionary is read.
      const reading = { ...this.#reading, room: heap };
      const entries = (this.#dictionary ??= pageValues(
        readDictionaryPage(this.#dictionaryPage, reading),
        type,
      ));
      const codes = decodeEntryCodes(stored, entries.length);
      return (index) => read(entries, codes[index]!);
    }
    const single = this.areFew ? plainValues(stored, type) : null;
    if (single !== null) return (index) => read(single(index), 0);
    const values = pageValues(stored, type);
    return (index) => read(values, index);
  }
}

/**
 * Reads single values of a page in the encoding PLAIN, in ascending order, as columns of one value. Null for other encodings and for
 * bits, of which all have to be decoded.
 */
function plainValues(page: StoredPage, type: LeafType): ((index: number) => Column) | null {
  if (page.encoding !== encoding.plain || type.type === physicalType.boolean) return null;
  const { values, at, present } = page;
  const width = type.valueBytes || (widthOf.get(type.type) ?? 0);
  if (width > 0) {
    if (values.length < present * width)
      throw new FormatError(`the page has ${values.length} bytes for ${present} values`, at);
    const one = { ...page, rows: 1, present: 1 };
    return (index) =>
      pageValues({ ...one, values: values.subarray(index * width, (index + 1) * width) }, type);
  }
  const view = new DataView(values.buffer, values.byteOffset, values.length);
  let next = 0;
  let from = 0;
  let to = 0;
  return (index) => {
    for (; next <= index; next++) {
      from = to + lengthBytes;
      to = from > values.length ? Infinity : from + view.getUint32(to, true);
      if (to > values.length) throw new FormatError('the strings do not fill their page', at);
    }
    return { kind: 'bytes', length: 1, offsets: Uint32Array.of(from, to), bytes: values, validity: null };
  };
}

/** Bytes of the length before each string in PLAIN. */
const lengthBytes = 4;

/** Bytes of the numbers in PLAIN, by physical type. */
const widthOf = new Map<number, number>([
  [physicalType.int32, 4],
  [physicalType.float, 4],
  [physicalType.int64, 8],
  [physicalType.double, 8],
]);

function noMoreValues(): FormatError {
  return new FormatError('the column has fewer values than rows', 0);
}

function unlikeTable({ at, rows }: Page): FormatError {
  return new FormatError(`expected a data page of ${rows} rows here`, at);
}

/** The number of levels in [from, to) that are `level`; where there are no levels, all are. */
function countEqual(levels: Uint16Array | null, level: number, from: number, to: number): number {
  if (levels === null) return to - from;
  let count = 0;
  for (let i = from; i < to; i++) if (levels[i] === level) count++;
  return count;
}

/**
 * Assembles rows from the entries of a column's leaves (Dremel's record assembly). Methods throw `FormatError` where the
 * leaves contradict each other.
 */
export class RowReader implements RowSource {
  readonly #json = new JsonText();

  /** @param cursors the cursors of the node's leaves, in order */
  constructor(
    private readonly node: SchemaNode,
    private readonly cursors: readonly LeafCursor[],
  ) {}

  get text(): RowSource['text'] {
    return this.cursors[0]!.format.text;
  }

  /** Reads the next row of a column that is not nested; null where it has no value. */
  value(): LeafValue | null {
    const cursor = this.cursors[0]!;
    const value = cursor.definition < cursor.type.definitionMax ? null : cursor.value;
    cursor.advance();
    return value;
  }

  /** Reads the next row as JSON; null where it has no value. Throws `limit` for one that is too long. */
  json(): string | null {
    const isMissing = this.#isMissing(this.node);
    this.#write(this.node);
    for (const { repetition } of this.cursors)
      if (repetition !== 0) throw new FormatError('the columns of a row end at different places', 0);
    const text = this.#json.take();
    return isMissing ? null : text;
  }

  /** Skips the next rows. */
  skip(rows: number): void {
    for (const cursor of this.cursors) cursor.skipRows(rows);
  }

  #cursorsOf({ firstLeaf, leaves }: SchemaNode): readonly LeafCursor[] {
    const from = firstLeaf - this.node.firstLeaf;
    return from === 0 && leaves === this.cursors.length
      ? this.cursors
      : this.cursors.slice(from, from + leaves);
  }

  #isMissing(node: SchemaNode): boolean {
    return this.#isBelow(node, node.presentFrom);
  }

  /** Whether the definition levels of a node's leaves are below `level`. Throws where only some of them are. */
  #isBelow(node: SchemaNode, level: number): boolean {
    const [first, ...others] = this.#cursorsOf(node);
    if (first!.definition < 0) throw noMoreValues();
    const isBelow = first!.definition < level;
    for (const { definition } of others)
      if (definition < level !== isBelow)
        throw new FormatError('the columns disagree on which values are null', 0);
    return isBelow;
  }

  /** Whether the list continues with another item after the one that was just read. */
  #isContinued(node: ListNode | MapNode): boolean {
    const [first, ...others] = this.#cursorsOf(node);
    const { repetition } = first!;
    for (const other of others)
      if (other.repetition !== repetition)
        throw new FormatError('the columns disagree on where list items begin', 0);
    if (repetition > node.itemLevel) throw new FormatError('a list item begins inside another one', 0);
    return repetition === node.itemLevel;
  }

  #advance(node: SchemaNode): void {
    for (const cursor of this.#cursorsOf(node)) cursor.advance();
  }

  #write(node: SchemaNode): void {
    if (this.#isMissing(node)) {
      this.#json.add('null');
      this.#advance(node);
      return;
    }
    switch (node.kind) {
      case 'leaf':
        this.#json.add(this.#leafJson(node));
        return;
      case 'struct':
        this.#json.add('{');
        node.fields.forEach(({ name, node: field }, i) => {
          this.#json.addName(name, i === 0);
          this.#write(field);
        });
        this.#json.add('}');
        return;
      case 'list':
        this.#writeItems(node, '[', ']', () => this.#write(node.item));
        return;
      case 'map':
        this.#writeItems(node, '{', '}', () => this.#writePair(node));
        return;
    }
  }

  #writeItems(node: ListNode | MapNode, open: string, close: string, writeItem: () => void): void {
    this.#json.add(open);
    if (this.#isBelow(node, node.itemFrom)) this.#advance(node);
    else
      for (;;) {
        writeItem();
        if (!this.#isContinued(node)) break;
        this.#json.add(',');
      }
    this.#json.add(close);
  }

  #writePair({ key, value }: MapNode): void {
    this.#json.addKey(() => this.#write(key));
    this.#write(value);
  }

  #leafJson(node: SchemaNode): string {
    const cursor = this.#cursorsOf(node)[0]!;
    const text = cursor.format.text(cursor.value);
    cursor.advance();
    return cursor.format.isJson ? text : JSON.stringify(text);
  }
}
