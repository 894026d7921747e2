import { jsonBool, jsonFloat64, jsonInt64, jsonNull, writeJsonRows as writePlainRows } from './json-rows.js';
import type { JsonColumn, JsonKeys, JsonOutput, JsonTable } from './json-rows.js';
import { bufferBytes } from '../memory/allocator.js';
import { openScratchWithin, scratchBytes } from '../memory/scratch.js';
import { sharedMemory } from '../memory/shared-memory.js';
import { kernelsOver, type Kernels } from './kernels.js';
import { bitmapBytes } from './bitmap.js';

/** Puts an array into the kernels' memory and gives its address. */
export type Place = (array: Uint8Array | Uint16Array | Int32Array | Uint32Array | Float64Array) => number;

const wordsPerColumn = 10;
/** Where the key is, and its length; behind them stands what describes the values. */
const keyWord = 0;
const keyBytesWord = 1;
const valueWord = 2;

/**
 * A table as the kernel takes it: ten words for each column, and the bytes of the keys behind them, which it counts from the first
 * column. So the whole can lie anywhere.
 */
export type KernelBlock = Uint32Array<ArrayBuffer>;

const blocks = new WeakMap<JsonKeys['keys'], KernelBlock>();

/** The block of these keys, with no columns in it yet. */
function blockOf(keys: JsonKeys['keys']): KernelBlock {
  let block = blocks.get(keys);
  if (block === undefined) {
    block = layKeys(keys);
    blocks.set(keys, block);
  }
  return block.slice();
}

function layKeys(keys: JsonKeys['keys']): KernelBlock {
  const keysBytes = keys.reduce((sum, key) => sum + key.length, 0);
  const block = new Uint32Array(keys.length * wordsPerColumn + Math.ceil(keysBytes / 4));
  const bytes = new Uint8Array(block.buffer);
  let at = keys.length * wordsPerColumn * 4;
  keys.forEach((key, i) => {
    bytes.set(key, at);
    block[i * wordsPerColumn + keyWord] = at;
    block[i * wordsPerColumn + keyBytesWord] = key.length;
    at += key.length;
  });
  return block;
}

/** The words of a column behind those of its key. */
function columnWords(column: JsonColumn, place: Place): Uint32Array {
  const placeAny: Place = (array) => (array.length === 0 ? 0 : place(array));
  const { kind, validity, codes, halves, doubles, offsets, bytes } = column;
  // Empty strings have no bytes, and need an address all the same only to be added to.
  const data = doubles.length > 0 ? doubles : halves.length > 0 ? halves : bytes;
  return Uint32Array.of(
    kind,
    placeAny(validity),
    placeAny(codes),
    codes.BYTES_PER_ELEMENT,
    placeAny(data),
    placeAny(offsets),
    rowsOf(column),
    entriesOf(column),
  );
}

/** As many rows as a column surely has; 0 where nothing of it is looked up by row. */
function rowsOf(column: JsonColumn): number {
  return column.codes.length > 0 ? column.codes.length : entriesOf(column);
}

function entriesOf({ halves, doubles, offsets }: JsonColumn): number {
  return Math.max(halves.length / 2, doubles.length, offsets.length - 1, 0);
}

/** The views of a column whose words these are, in a buffer that reaches up to all of its arrays. */
function columnOfWords(
  buffer: ArrayBufferLike,
  [kind, validityAt, codesAt, codeBytes, dataAt, offsetsAt, rows, entries]: readonly number[],
): JsonColumn {
  const validity =
    validityAt === 0 ? absent.validity : new Uint8Array(buffer, validityAt, bitmapBytes(rows!));
  const codes =
    codesAt === 0
      ? absent.codes
      : codeBytes === 1
        ? new Uint8Array(buffer, codesAt, rows)
        : new Uint16Array(buffer, codesAt, rows);
  switch (kind) {
    case jsonNull:
      return absent;
    case jsonInt64:
    case jsonBool:
      return { ...absent, kind, validity, codes, halves: new Int32Array(buffer, dataAt, 2 * entries!) };
    case jsonFloat64:
      return { ...absent, kind, validity, codes, doubles: new Float64Array(buffer, dataAt, entries) };
    default: {
      const offsets = new Uint32Array(buffer, offsetsAt, entries! + 1);
      const bytes = new Uint8Array(buffer, dataAt, offsets[entries!]);
      return { ...absent, kind: kind as JsonColumn['kind'], validity, codes, offsets, bytes };
    }
  }
}

const absent: JsonColumn = {
  kind: jsonNull,
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};

/** The block of a table whose arrays `place` puts into the kernels' memory. */
export function kernelBlock(
  { keys, columns }: Pick<JsonTable, 'keys' | 'columns'>,
  place: Place,
): KernelBlock {
  const block = blockOf(keys);
  columns.forEach((column, i) => block.set(columnWords(column, place), i * wordsPerColumn + valueWord));
  return block;
}

/** Where the kernel finds what the twin is given. */
export interface KernelJsonRows {
  readonly kernels: Kernels;
  readonly blockAt: number;
  readonly columnCount: number;
  /** 0 where the twin is given no list of rows; else the address of its element `rowsFrom`. */
  readonly rowsAt: number;
  readonly rowsFrom: number;
  /** Address of the output's bytes, which are a view of the kernels' memory and followed by slack. */
  readonly outputAt: number;
}

/** As the twin, for columns, rows and output that lie in the kernels' memory. */
export function writeJsonRows(
  placed: KernelJsonRows,
  table: JsonTable,
  rows: Uint32Array | null,
  from: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: JsonOutput,
): number {
  const { kernels, blockAt, columnCount, rowsAt, rowsFrom, outputAt } = placed;
  const cursorOfRow0 = (BigInt(partition) << 40n) + BigInt(ordinalOfRow0);
  const atMax = outputAt + output.bytes.length;
  const { fixedBytes } = table;
  const last = to - rowsFrom;
  let i = from;
  while (i < to) {
    const at = outputAt + output.at;
    const first = i - rowsFrom;
    i = kernels.writeJsonRows(blockAt, columnCount, fixedBytes, rowsAt, first, last, cursorOfRow0, at, atMax);
    i += rowsFrom;
    output.at = (kernels.jsonEnd() >>> 0) - outputAt;
    // Where there is no room the twin finds none either.
    if (i === to || kernels.jsonIsFull() !== 0) break;
    // The row has a double that only the twin can write.
    const next = writePlainRows(table, rows, i, i + 1, partition, ordinalOfRow0, output);
    if (next === i) break;
    i = next;
  }
  return i;
}

/** Arrays that may be copied for each call: those of a few hot rows. */
const copiedBytesMax = 64 * 1024;
/** Rows of one call, of which a list is copied. */
const rowsOfCallMax = 4096;

/** A table that kernels can write: its columns lie in their memory, or are quickly copied to it. */
export interface ReachableTable extends JsonTable {
  readonly block: KernelBlock;
  readonly columnCount: number;
  /** Columns of which something is copied for each call, … */
  readonly copied: readonly number[];
  /** … and how much, with the block. */
  readonly copiedBytes: number;
}

/** The table as kernels take it; null where too much would have to be copied. */
export function reachableTable(table: JsonTable): ReachableTable | null {
  const block = blockOf(table.keys);
  const copied: number[] = [];
  let copiedBytes = bufferBytes(block.byteLength);
  table.columns.forEach((column, i) => {
    const words = placedWords(column);
    if (words !== null) {
      block.set(words, i * wordsPerColumn + valueWord);
    } else {
      copied.push(i);
      copiedBytes += bytesToCopy(column);
    }
  });
  if (copiedBytes > copiedBytesMax) return null;
  const { keys, columns, fixedBytes } = table;
  return { keys, columns, fixedBytes, block, columnCount: columns.length, copied, copiedBytes };
}

/**
 * The block of a table of which all lies in the kernels' memory: as good in any thread that has the memory. Null for any other
 * table.
 */
export function placedBlock({ keys, columns }: Pick<JsonTable, 'keys' | 'columns'>): KernelBlock | null {
  const block = blockOf(keys);
  for (const [i, column] of columns.entries()) {
    const words = placedWords(column);
    if (words === null) return null;
    block.set(words, i * wordsPerColumn + valueWord);
  }
  return block;
}

/**
 * A table that a thread was given as a placed block. Its keys and columns are views that are made when they are asked for, which is
 * seldom: kernels write nearly all of its rows, and some dozens of views take longer than a few hundred of these.
 */
class ToldTable implements ReachableTable {
  readonly block: KernelBlock;
  readonly columnCount: number;
  readonly fixedBytes: number;
  readonly copied: readonly number[] = [];
  readonly copiedBytes: number;
  readonly #buffer: ArrayBufferLike;
  #keys: readonly Uint8Array[] | undefined;
  #columns: readonly JsonColumn[] | undefined;

  constructor(block: KernelBlock, columnCount: number, fixedBytes: number, buffer: ArrayBufferLike) {
    this.block = block;
    this.columnCount = columnCount;
    this.fixedBytes = fixedBytes;
    this.copiedBytes = bufferBytes(block.byteLength);
    this.#buffer = buffer;
  }

  get keys(): readonly Uint8Array[] {
    const { buffer, byteOffset } = this.block;
    this.#keys ??= this.#eachColumn((at) => {
      const keyAt = byteOffset + this.block[at + keyWord]!;
      return new Uint8Array(buffer, keyAt, this.block[at + keyBytesWord]);
    });
    return this.#keys;
  }

  get columns(): readonly JsonColumn[] {
    this.#columns ??= this.#eachColumn((at) =>
      columnOfWords(this.#buffer, [...this.block.subarray(at + valueWord, at + wordsPerColumn)]),
    );
    return this.#columns;
  }

  /** What `use` makes of each column, whose words begin at `at`. */
  #eachColumn<Made>(use: (at: number) => Made): Made[] {
    return Array.from({ length: this.columnCount }, (_, i) => use(i * wordsPerColumn));
  }
}

/**
 * The table of `columnCount` columns that a thread was given as a placed block, as kernels take it. The buffer
 * is that of the kernels' memory, and reaches up to all that lies in it.
 */
export function tableOfBlock(
  block: KernelBlock,
  columnCount: number,
  fixedBytes: number,
  buffer: ArrayBufferLike,
): ReachableTable {
  return new ToldTable(block, columnCount, fixedBytes, buffer);
}

/** Where an array of the kernels' memory lies. */
const addressOf: Place = (array) => array.byteOffset;

const placedColumns = new WeakMap<JsonColumn, Uint32Array | null>();

/** The words of a column that lies in the kernels' memory; null for any other. Found once for all queries that read it. */
function placedWords(column: JsonColumn): Uint32Array | null {
  let words = placedColumns.get(column);
  if (words === undefined) {
    words = bytesToCopy(column) === 0 ? columnWords(column, addressOf) : null;
    placedColumns.set(column, words);
  }
  return words;
}

function bytesToCopy({ validity, codes, halves, doubles, offsets, bytes }: JsonColumn): number {
  let sizeBytes = 0;
  for (const array of [validity, codes, halves, doubles, offsets, bytes]) {
    const copied = scratchBytes(array, array.length);
    if (copied > 0) sizeBytes += bufferBytes(copied);
  }
  return sizeBytes;
}

/** As the twin. An output that lies in the kernels' memory is written to where it is, and has slack behind it. */
export function writeRowsByKernel(
  table: ReachableTable,
  rows: Uint32Array | null,
  first: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: JsonOutput,
): number {
  const isOutputThere = sharedMemory().holds(output.bytes);
  const rowsAtOnce = rows === null ? to - first : rowsOfCallMax;
  let next = first;
  while (next < to) {
    const end = Math.min(to, next + rowsAtOnce);
    const room = isOutputThere ? 0 : output.bytes.length - output.at;
    const listBytes = rows === null ? 0 : (end - next) * 4;
    const scratch = openScratchWithin(table.copiedBytes + listBytes + room);
    if (scratch === null) {
      return writePlainRows(table, rows, next, to, partition, ordinalOfRow0, output);
    }
    const { block, columnCount } = table;
    for (const i of table.copied) {
      const words = columnWords(table.columns[i]!, (array) => scratch.place(array, 0, array.length));
      block.set(words, i * wordsPerColumn + valueWord);
    }
    const blockAt = scratch.place(block, 0, block.length);
    // Not the address that the whole list would have: that can be 0, which says that there is none.
    const rowsAt = rows === null ? 0 : scratch.place(rows, next, end);
    const rowsFrom = rows === null ? 0 : next;
    const kernels = kernelsOver(scratch);
    if (isOutputThere) {
      const outputAt = output.bytes.byteOffset;
      const placed = { kernels, blockAt, columnCount, rowsAt, rowsFrom, outputAt };
      next = writeJsonRows(placed, table, rows, next, end, partition, ordinalOfRow0, output);
    } else {
      const outputAt = scratch.room(room);
      const lines: JsonOutput = { bytes: scratch.view(outputAt, room), at: 0 };
      const placed = { kernels, blockAt, columnCount, rowsAt, rowsFrom, outputAt };
      next = writeJsonRows(placed, table, rows, next, end, partition, ordinalOfRow0, lines);
      output.bytes.set(lines.bytes.subarray(0, lines.at), output.at);
      output.at += lines.at;
    }
    if (next < end) break;
  }
  return next;
}
