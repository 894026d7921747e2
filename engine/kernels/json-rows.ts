/**
 * Rows of columns written as lines, of JSON or of CSV. The bytes of JSON are those of `JSON.stringify` (strings are valid UTF-8, so nothing
 * else needs an escape), save that 64-bit integers keep every digit. As elements of an array, objects have a comma before them. In CSV null
 * is an empty field, and an empty string `""`.
 */
import { assertNever } from '../terms/assert.js';
import type { LineFormat } from '../terms/line-format.js';
import { copyBytes } from '../terms/utf8.js';
import { bufferBytes } from '../memory/allocator.js';
import { openScratch, scratchBytes, type Scratch } from '../memory/scratch.js';
import { sharedMemory } from '../memory/shared-memory.js';
import { kernelsOver, type Kernels } from './kernels.js';

export const jsonInt64 = 0;
export const jsonFloat64 = 1;
export const jsonString = 2;
/** Null in every row. */
export const jsonNull = 3;
/** Integers that stand for false (0) and true. */
export const jsonBool = 4;

/** One column of the rows, as typed arrays. Arrays that its kind has no use for are empty. */
export interface JsonColumn {
  readonly kind:
    typeof jsonInt64 | typeof jsonFloat64 | typeof jsonString | typeof jsonNull | typeof jsonBool;
  /** One bit a row, 1 = present; empty when every row is present. */
  readonly validity: Uint8Array;
  /** Row → entry of the arrays below; empty when the row is the entry. */
  readonly codes: Uint8Array | Uint16Array;
  /** jsonInt64, jsonBool: pairs of 32-bit halves, the low one first. */
  readonly halves: Int32Array;
  /** jsonFloat64; no NaN, no infinities. */
  readonly doubles: Float64Array;
  /** jsonString: entry e is bytes[offsets[e], offsets[e + 1]). */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** A column of nulls, and the arrays that a column has no use for. */
export const nullJsonColumn: JsonColumn = {
  kind: jsonNull,
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};

/** What stands before the values of a line: the same for all rows of an answer. */
export interface LineKeys {
  readonly format: LineFormat;
  /** `,"name":` in UTF-8, for each column; in CSV the comma alone. */
  readonly keys: readonly Uint8Array[];
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
}

/** Where rows are written to. */
export interface LineOutput {
  bytes: Uint8Array;
  /** First byte not yet written. */
  at: number;
}

/** The longest int64 and the longest double (-0.0000028663373879509285) have 20 and 25 characters; `null` has 4. */
const numberBytesMax = 25;

/** `,{"_cursor":"…16…"` and `}` with its line end. CSV takes less. */
const frameBytes = 13 + 16 + 1 + 2;

/** The keys of columns of these names, in their order. */
export function lineKeysOf(names: readonly string[], format: LineFormat = 'jsonl'): LineKeys {
  const encoder = new TextEncoder();
  const keys = names.map((name) => encoder.encode(format === 'csv' ? ',' : `,${JSON.stringify(name)}:`));
  const fixedBytes = keys.reduce((sum, key) => sum + key.length + numberBytesMax, frameBytes);
  return { format, keys, fixedBytes };
}

/** Puts an array into the kernels' memory and gives its address. */
export type Place = (array: Uint8Array | Uint16Array | Int32Array | Uint32Array | Float64Array) => number;

const wordsPerColumn = 8;
/** Where the key is, and its length; behind them stands what describes the values. */
const keyWord = 0;
const keyBytesWord = 1;
const valueWord = 2;

/**
 * A table as the kernel takes it: eight words for each column, and the bytes of the keys behind them, which it counts from the first
 * column. So the whole can lie anywhere.
 */
export type KernelBlock = Uint32Array<ArrayBuffer>;

const blocks = new WeakMap<LineKeys['keys'], KernelBlock>();

/** The block of these keys, with no columns in it yet. */
function blockOf(keys: LineKeys['keys']): KernelBlock {
  let block = blocks.get(keys);
  if (block === undefined) {
    block = layKeys(keys);
    blocks.set(keys, block);
  }
  return block.slice();
}

function layKeys(keys: LineKeys['keys']): KernelBlock {
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

function setColumn(block: KernelBlock, i: number, words: Uint32Array): void {
  block.set(words, i * wordsPerColumn + valueWord);
}

/** The words of a column behind those of its key. */
function columnWords({ kind, ...arrays }: JsonColumn, place: Place): Uint32Array {
  const placeAny: Place = (array) => (array.length === 0 ? 0 : place(array));
  const { validity, codes, halves, doubles, offsets, bytes } = arrays;
  const firstByte = offsets[0] ?? 0;
  const data =
    doubles.length > 0
      ? place(doubles)
      : halves.length > 0
        ? place(halves)
        : // Empty strings have no bytes, and need an address all the same only to be added to.
          placeAny(bytes.subarray(firstByte, offsets.at(-1))) - firstByte;
  return Uint32Array.of(
    kind,
    placeAny(validity),
    placeAny(codes),
    codes.BYTES_PER_ELEMENT,
    data,
    placeAny(offsets),
  );
}

/** The block of a table whose arrays `place` puts into the kernels' memory. */
export function kernelBlock(
  keys: LineKeys['keys'],
  columns: readonly JsonColumn[],
  place: Place,
): KernelBlock {
  const block = blockOf(keys);
  columns.forEach((column, i) => setColumn(block, i, columnWords(column, place)));
  return block;
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
  const strings = scratchBytes(bytes, (offsets.at(-1) ?? 0) - (offsets[0] ?? 0));
  let sizeBytes = strings === 0 ? 0 : bufferBytes(strings);
  for (const array of [validity, codes, halves, doubles, offsets]) {
    const copied = scratchBytes(array, array.length);
    if (copied > 0) sizeBytes += bufferBytes(copied);
  }
  return sizeBytes;
}

/** Columns with their keys, ready to be written. */
export interface LineTable {
  readonly format: LineFormat;
  /** Has the columns where they lie in the kernels' memory: then it is as good in any thread that has the memory. */
  readonly block: KernelBlock;
  readonly columnCount: number;
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
  /** Where one of them lies elsewhere, the columns, of which each call copies the rows that it writes; else null. */
  readonly columns: readonly JsonColumn[] | null;
}

/** A table of these columns. Keys and columns are as many. */
export function lineTable({ format, keys, fixedBytes }: LineKeys, columns: readonly JsonColumn[]): LineTable {
  const block = blockOf(keys);
  let isPlaced = true;
  columns.forEach((column, i) => {
    const words = placedWords(column);
    if (words === null) isPlaced = false;
    else setColumn(block, i, words);
  });
  return { format, block, columnCount: columns.length, fixedBytes, columns: isPlaced ? null : columns };
}

/** Rows [from, to) of a table where the kernel finds them. */
export interface KernelRows {
  readonly format: LineFormat;
  readonly kernels: Kernels;
  readonly blockAt: number;
  readonly columnCount: number;
  readonly fixedBytes: number;
  /** 0, or the address of a list of the rows of the columns; `from` and `to` are indexes into it then. */
  readonly rowsAt: number;
  /** 0, or the address of a list of what cursors count; as long as the one of the rows. */
  readonly ordinalsAt: number;
  readonly from: number;
  readonly to: number;
  /** The cursor where the row, or what stands in the list of ordinals, is 0. */
  readonly cursorOf0: bigint;
}

/** Writes as `writeJsonRows` does, to an output whose bytes lie at `outputAt` and are followed by slack. Returns how many lines. */
export function writePlacedRows(placed: KernelRows, output: LineOutput, outputAt: number): number {
  const { kernels } = placed;
  const atMax = outputAt + output.bytes.length;
  let next = placed.from;
  let column = 0;
  let at = outputAt + output.at;
  for (;;) {
    next = callKernel(placed, next, column, at, atMax);
    column = kernels.jsonDoubleColumn();
    if (column < 0) break;
    // The shortest decimal of a double with more than three decimals is left to the engine; the line goes on behind it.
    const text = String(kernels.jsonDouble());
    at = kernels.jsonDoubleAt() >>> 0;
    for (let i = 0; i < text.length; i++) output.bytes[at - outputAt + i] = text.charCodeAt(i);
    at += text.length;
    column++;
  }
  output.at = (kernels.jsonEnd() >>> 0) - outputAt;
  return next - placed.from;
}

/** Has the kernel of the format write lines from a row on, or from a column of it. Returns the row that it has not written. */
function callKernel(placed: KernelRows, from: number, column: number, at: number, atMax: number): number {
  const { format, kernels, blockAt, columnCount, fixedBytes, rowsAt, ordinalsAt, to, cursorOf0 } = placed;
  switch (format) {
    case 'jsonl':
    case 'json':
      return kernels.writeJsonRows(
        blockAt,
        columnCount,
        fixedBytes,
        rowsAt,
        ordinalsAt,
        from,
        to,
        column,
        cursorOf0,
        at,
        atMax,
        format === 'json' ? 1 : 0,
      );
    case 'csv':
      return kernels.writeCsvRows(
        blockAt,
        columnCount,
        fixedBytes,
        rowsAt,
        ordinalsAt,
        from,
        to,
        column,
        cursorOf0,
        at,
        atMax,
      );
    default:
      return assertNever(format);
  }
}

/** Rows of one call, of which a list is copied, and of columns elsewhere the values. */
const rowsOfCallMax = 4096;

/**
 * Writes the lines of rows[first], rows[first + 1], … up to `to`, or of the rows first, first + 1, … where `rows` is null, while
 * there surely is room: before each value, for its longest form and `fixedBytes`. Returns the index of the first row not
 * written. The ordinal of a row is `ordinalOfRow0` + row. An output in the kernels' memory has slack behind it.
 */
export function writeJsonRows(
  table: LineTable,
  rows: Uint32Array | null,
  first: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: LineOutput,
): number {
  const cursorOfRow0 = (BigInt(partition) << 40n) + BigInt(ordinalOfRow0);
  const isOutputThere = sharedMemory().holds(output.bytes);
  for (let next = first; next < to;) {
    const room = output.bytes.length - output.at;
    const end = endOfCall(table, rows, next, to, room);
    if (end === next) return next;
    const { scratch, placed } = placeRows(table, rows, next, end, cursorOfRow0, isOutputThere ? 0 : room);
    if (isOutputThere) {
      next += writePlacedRows(placed, output, output.bytes.byteOffset);
    } else {
      const outputAt = scratch.reserve(room);
      const lines: LineOutput = { bytes: scratch.view(outputAt, room), at: 0 };
      next += writePlacedRows(placed, lines, outputAt);
      output.bytes.set(lines.bytes.subarray(0, lines.at), output.at);
      output.at += lines.at;
    }
    if (next < end) return next;
  }
  return to;
}

/** Room in which the line of rows[index], or of the row `index` without a list, is surely written: a control character takes six bytes. */
export function lineBytesMax(table: LineTable, rows: Uint32Array | null, index: number): number {
  const { placed } = placeRows(table, rows, index, index + 1, 0n, 0);
  const { kernels, blockAt, columnCount, fixedBytes, rowsAt, from } = placed;
  return kernels.jsonLineBytesMax(blockAt, columnCount, fixedBytes, rowsAt, from);
}

/** Where a call that begins at `next` ends: of columns that are copied, no more strings are taken than there is room for. */
function endOfCall(
  { columns, fixedBytes }: LineTable,
  rows: Uint32Array | null,
  next: number,
  to: number,
  room: number,
): number {
  if (columns === null) return rows === null ? to : Math.min(to, next + rowsOfCallMax);
  const lineBytesMin = fixedBytes - columns.length * numberBytesMax;
  const most = Math.min(to, next + rowsOfCallMax, next + Math.ceil(room / lineBytesMin));
  const strings = columns.filter(({ kind }) => kind === jsonString);
  let left = room;
  for (let i = next; i < most; i++) {
    const row = rows === null ? i : rows[i]!;
    for (const { codes, offsets } of strings) {
      const entry = codes.length === 0 ? row : codes[row]!;
      left -= offsets[entry + 1]! - offsets[entry]!;
    }
    if (left < 0) return i;
  }
  return most;
}

/** Puts the rows at [first, end) where the kernel finds them, with `outputBytes` left of the scratch memory. */
function placeRows(
  table: LineTable,
  rows: Uint32Array | null,
  first: number,
  end: number,
  cursorOfRow0: bigint,
  outputBytes: number,
): { readonly scratch: Scratch; readonly placed: KernelRows } {
  const { format, block, columnCount, fixedBytes } = table;
  // Rows that follow one another are cut out at a whole byte of the bitmaps.
  const base = table.columns === null || rows !== null ? 0 : first & ~7;
  const copied = table.columns?.map((column) =>
    rows === null ? cutRows(column, base, end) : gatherRows(column, rows.subarray(first, end)),
  );
  const copiedBytes = copied?.reduce((sum, column) => sum + bytesToCopy(column), 0) ?? 0;
  const listBytes = rows === null ? 0 : bufferBytes((end - first) * 4);
  const scratch = openScratch(bufferBytes(block.byteLength) + copiedBytes + listBytes + outputBytes);
  copied?.forEach((column, i) => {
    setColumn(
      block,
      i,
      columnWords(column, (array) => scratch.place(array, 0, array.length)),
    );
  });
  const ordinalsAt = rows === null ? 0 : scratch.place(rows, first, end);
  return {
    scratch,
    placed: {
      format,
      kernels: kernelsOver(scratch),
      blockAt: scratch.place(block, 0, block.length),
      columnCount,
      fixedBytes,
      rowsAt: table.columns === null ? ordinalsAt : 0,
      ordinalsAt,
      from: rows === null ? first - base : 0,
      to: rows === null ? end - base : end - first,
      cursorOf0: cursorOfRow0 + BigInt(base),
    },
  };
}

/** The rows [from, end) of a column as one of its own; `from` is a multiple of 8. Entries that are more than the rows are left out. */
function cutRows(column: JsonColumn, from: number, end: number): JsonColumn {
  const { validity, codes, halves, doubles, offsets } = column;
  const isCoded = codes.length > 0;
  const entries = Math.max(halves.length / 2, doubles.length, offsets.length - 1);
  if (isCoded && entries > end - from)
    return gatherRows(
      column,
      Uint32Array.from({ length: end - from }, (_, i) => from + i),
    );
  const present = validity.subarray(from >> 3, (end + 7) >> 3);
  if (isCoded) return { ...column, validity: present, codes: codes.subarray(from, end) };
  return {
    ...column,
    validity: present,
    halves: halves.subarray(2 * from, 2 * end),
    doubles: doubles.subarray(from, end),
    offsets: offsets.subarray(from, end + 1),
  };
}

/** The rows of a list as a column of their own, without codes. */
function gatherRows(column: JsonColumn, rows: Uint32Array): JsonColumn {
  const { kind, validity, codes, halves, doubles } = column;
  if (kind === jsonNull) return column;
  const entries = codes.length === 0 ? rows : gatherNumbers(codes, rows, new Uint32Array(rows.length));
  const taken = { ...nullJsonColumn, kind, validity: gatherBits(validity, rows) };
  if (kind === jsonFloat64)
    return { ...taken, doubles: gatherNumbers(doubles, entries, new Float64Array(rows.length)) };
  if (kind === jsonString) return { ...taken, ...gatherStrings(column, entries) };
  return { ...taken, halves: gatherPairs(halves, entries) };
}

function gatherBits(bits: Uint8Array, rows: Uint32Array): Uint8Array {
  if (bits.length === 0) return bits;
  const gathered = new Uint8Array((rows.length + 7) >> 3);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    gathered[i >> 3]! |= ((bits[row >> 3]! >> (row & 7)) & 1) << (i & 7);
  }
  return gathered;
}

function gatherNumbers<Target extends Uint32Array | Float64Array>(
  source: Uint8Array | Uint16Array | Float64Array,
  rows: Uint32Array,
  target: Target,
): Target {
  for (let i = 0; i < rows.length; i++) target[i] = source[rows[i]!]!;
  return target;
}

function gatherPairs(halves: Int32Array, entries: Uint32Array): Int32Array {
  const gathered = new Int32Array(2 * entries.length);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!;
    gathered[2 * i] = halves[2 * entry]!;
    gathered[2 * i + 1] = halves[2 * entry + 1]!;
  }
  return gathered;
}

function gatherStrings(
  { offsets, bytes }: JsonColumn,
  entries: Uint32Array,
): Pick<JsonColumn, 'offsets' | 'bytes'> {
  const ends = new Uint32Array(entries.length + 1);
  for (let i = 0; i < entries.length; i++)
    ends[i + 1] = ends[i]! + offsets[entries[i]! + 1]! - offsets[entries[i]!]!;
  const gathered = new Uint8Array(ends[entries.length]!);
  for (let i = 0; i < entries.length; i++)
    copyBytes(bytes, offsets[entries[i]!]!, offsets[entries[i]! + 1]!, gathered, ends[i]!);
  return { offsets: ends, bytes: gathered };
}
