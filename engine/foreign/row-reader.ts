import type { BytesColumn, Column, DictionaryColumn, NumberColumn, PlainColumn } from '../columns/column.js';
import { encoding, FormatError, physicalType } from '../parquet/format.js';
import {
  hasCodes,
  isData,
  isDictionary,
  readDictionaryPage,
  readEntryPage,
  type EntryPage,
  type Page,
  type PageReading,
} from './chunk-pages.js';
import type { RowSource } from './span-columns.js';
import { formatOf, type LeafValue, type ValueFormat } from './stored-type.js';
import { halfFloat, JsonText, signedInteger } from './value-texts.js';
import { decodeEntryCodes, pageValues } from './page-values.js';
import type { LeafType, ListNode, MapNode, SchemaNode } from './parquet-schema.js';

/** The entries of a data page with their values. */
interface LeafPage extends EntryPage {
  /** The values of the entries that have one; with `codes`, the dictionary that these index. */
  readonly values: Column;
  readonly codes: Uint32Array | null;
}

/** Decodes the data pages among `pages` one by one. */
function* leafPages(pages: Iterable<Page>, type: LeafType, reading: PageReading): Generator<LeafPage> {
  let dictionary: PlainColumn | null = null;
  for (const page of pages) {
    if (isDictionary(page)) dictionary = pageValues(readDictionaryPage(page, reading), type) as PlainColumn;
    if (!isData(page) || page.header.rows === 0) continue;
    const entries = readEntryPage(page, reading);
    const { stored, repetitions } = entries;
    const rows = repetitions?.reduce((sum, level) => sum + Number(level === 0), 0) ?? page.header.rows;
    if (page.rows !== undefined && (rows !== page.rows || (repetitions?.[0] ?? 0) > 0))
      throw new FormatError(`expected a data page of ${page.rows} rows here`, page.at);
    if (stored.present === 0)
      yield { ...entries, values: pageValues({ ...stored, encoding: encoding.plain }, type), codes: null };
    else if (!hasCodes(stored.encoding)) yield { ...entries, values: pageValues(stored, type), codes: null };
    else if (dictionary === null)
      throw new FormatError('the page refers to a dictionary, but there is none', page.at);
    else yield { ...entries, values: dictionary, codes: decodeEntryCodes(stored, dictionary.length) };
  }
}

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

/** Iterates over the entries of a column chunk. */
export class LeafCursor {
  readonly format: LeafFormat;
  readonly #pages: Iterator<LeafPage>;
  #page: LeafPage | undefined;
  #entry = 0;
  #value = 0;

  /** @param pages the pages of the chunk from the wanted rows on, the dictionary first */
  constructor(
    readonly type: LeafType,
    pages: Iterable<Page>,
    reading: PageReading,
  ) {
    this.format = leafFormatOf(type);
    this.#pages = leafPages(pages, type, reading);
    this.#turnPage();
  }

  /** Definition level of the current entry; -1 after the last entry. */
  get definition(): number {
    if (this.#page === undefined) return -1;
    return this.#page.definitions?.[this.#entry] ?? this.type.definitionMax;
  }

  /** Repetition level of the current entry; 0 at the beginning of a row and after the last entry. */
  get repetition(): number {
    return this.#page?.repetitions?.[this.#entry] ?? 0;
  }

  /** The value of the current entry, which must have one. */
  get value(): LeafValue {
    const { values, codes } = this.#page!;
    return this.format.read(values, codes === null ? this.#value : codes[this.#value]!);
  }

  /** Goes to the next entry. Throws `FormatError` after the last one. */
  advance(): void {
    if (this.#page === undefined) throw new FormatError('the column has fewer values than rows', 0);
    if (this.definition === this.type.definitionMax) this.#value++;
    this.#entry++;
    if (this.#entry === this.#page.entries) this.#turnPage();
  }

  /** Goes to the beginning of the row that is `rows` after this one. */
  skipRows(rows: number): void {
    for (; rows > 0; rows--)
      do this.advance();
      while (this.repetition !== 0);
  }

  #turnPage(): void {
    this.#page = this.#pages.next().value as LeafPage | undefined;
    this.#entry = 0;
    this.#value = 0;
  }
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

  /** Skips the next row. */
  skip(): void {
    for (const cursor of this.cursors) cursor.skipRows(1);
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
    if (first!.definition < 0) throw new FormatError('the column has fewer values than rows', 0);
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
