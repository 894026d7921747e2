import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import {
  jsonBool,
  jsonFloat64,
  jsonInt64,
  lineKeysOf,
  jsonNull,
  jsonString,
  lineTable,
  kernelBlock,
  lineBytesMax,
  nullJsonColumn as empty,
  callWords,
  writeJsonRows,
  writePlacedRows,
  type JsonColumn,
  type LineOutput,
  type LineTable,
} from '../../engine/kernels/json-rows.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { lineFormats, type LineFormat } from '../../engine/core/schema.js';
import { both, type Lay } from './lay.js';
import { TestMemory } from './memory.js';
import { writeJsonRows as writePlainRows, type PlainTable } from './plain/json-rows.js';
import { stringsOf } from './strings.js';
import { anyText } from '../model/any-text.js';

const numRuns = caseCount(150, 20_000);
const memory = TestMemory.create(0, 4 * 1024 * 1024)!;
const guard = 0xa5;

const rowCount = 40;
const entryCount = 5;

const integers = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -20n, max: 2000n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n, 999_999_999n, 1_000_000_000n, -1_000_000_000n),
);
const decimals = fc.tuple(fc.integer(), fc.constantFrom(1, 10, 100, 1000, 10_000)).map(([n, by]) => n / by);
const doubles = fc.oneof(
  decimals,
  decimals,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0, 0.0005, 1.0005, 0.1, -0.001, 1e9, 1e9 + 0.5, 2 ** 53, 1e21, 5e-324, 999_999_999.999),
);
const texts = fc.oneof(
  anyText({ maxLength: 50 }),
  fc
    .array(
      fc.constantFrom('"', ',', '\\', '\n', '\t', '\r', '\b', '\f', '\0', '\u001f', '\u007f', 'é', 'a'),
      {
        maxLength: 40,
      },
    )
    .map((some) => some.join('')),
  fc.constantFrom(15, 16, 17, 31, 32, 33).map((n) => `${'x'.repeat(n)}"`),
);

/** A column of rows, or of entries behind codes of either width, with or without nulls. */
function columnOf(): fc.Arbitrary<JsonColumn> {
  const shapes = fc.record({
    width: fc.constantFrom(0, 1, 2),
    codes: fc.array(fc.nat(entryCount - 1), { minLength: rowCount, maxLength: rowCount }),
    validity: fc.option(fc.uint8Array({ minLength: rowCount / 8, maxLength: rowCount / 8 }), {
      nil: empty.validity,
    }),
  });
  const values = fc.record({
    kind: fc.constantFrom(jsonInt64, jsonFloat64, jsonString, jsonNull, jsonBool),
    integers: fc.array(integers, { minLength: rowCount, maxLength: rowCount }),
    doubles: fc.array(doubles, { minLength: rowCount, maxLength: rowCount }),
    texts: fc.array(texts, { minLength: rowCount, maxLength: rowCount }),
  });
  return fc.tuple(shapes, values).map(([{ width, codes, validity }, { kind, ...lists }]) => {
    const count = width === 0 ? rowCount : entryCount;
    const shape = {
      ...empty,
      validity,
      codes: width === 0 ? empty.codes : width === 1 ? Uint8Array.from(codes) : Uint16Array.from(codes),
    };
    if (kind === jsonNull) return { ...empty, kind };
    if (kind === jsonInt64) {
      const column = BigInt64Array.from(lists.integers.slice(0, count));
      return { ...shape, kind, halves: new Int32Array(column.buffer) };
    }
    if (kind === jsonBool) {
      const column = BigInt64Array.from(lists.integers.slice(0, count), (value) => value & 1n);
      return { ...shape, kind, halves: new Int32Array(column.buffer) };
    }
    if (kind === jsonFloat64)
      return { ...shape, kind, doubles: Float64Array.from(lists.doubles.slice(0, count)) };
    const { bytes, offsets } = stringsOf(lists.texts.slice(0, count).map((text) => Buffer.from(text)));
    return { ...shape, kind, bytes, offsets };
  });
}

/** Keys of all lengths; those of up to 16 bytes are copied in one step. */
function tableOf(columns: readonly JsonColumn[], format: LineFormat = 'jsonl'): PlainTable {
  const names = columns.map((_, i) => `field_${'x'.repeat(i * 7)}`);
  return { ...lineKeysOf(names, format), columns };
}

const tables = fc
  .tuple(
    fc.nat(4).chain((n) => fc.tuple(...Array.from({ length: n }, columnOf))),
    fc.constantFrom(...lineFormats),
  )
  .map(([columns, format]) => tableOf(columns, format));
/** Rows in any order, or the first rows in their order. */
const rowLists = fc
  .oneof(fc.array(fc.nat(rowCount - 1), { maxLength: 50 }), fc.nat(rowCount))
  .map((list) =>
    typeof list === 'number'
      ? { rows: null, count: list }
      : { rows: Uint32Array.from(list), count: list.length },
  );

describe('lines of every format', () => {
  it('equal those of the plain twin byte for byte, and end at the same row', () => {
    fc.assert(
      fc.property(
        tables,
        rowLists,
        fc.nat(2 ** 24 - 1),
        fc.integer({ min: -1000, max: 2 ** 40 - 2000 }),
        fc.nat(12_000),
        fc.nat(20),
        (table, { rows, count }, partition, ordinal, room, start) => {
          memory.reset();
          const ordinalOfRow0 = Math.max(ordinal, 0);
          const wanted: LineOutput = { bytes: new Uint8Array(start + room), at: start };
          const end = writePlainRows(table, rows, 0, count, partition, ordinalOfRow0, wanted);
          const outputAt = memory.room(start + room);
          const got: LineOutput = {
            bytes: memory.bytes.subarray(outputAt, outputAt + start + room),
            at: start,
          };
          const blockAt = memory.place(
            kernelBlock(table.keys, table.columns, (array) => memory.place(array)),
          );
          const rowsAt = rows === null ? 0 : memory.place(rows);
          const call = {
            format: table.format,
            blockAt,
            columnCount: table.columns.length,
            fixedBytes: table.fixedBytes,
            rowsAt,
            ordinalsAt: rowsAt,
            to: count,
            agents: 0,
            cursorOf0: (BigInt(partition) << 40n) + BigInt(ordinalOfRow0),
          };
          const placed = { kernels: memory.kernels, callAt: memory.place(callWords(call)), from: 0 };
          expect(writePlacedRows(placed, got, outputAt)).toBe(end);
          expect(got.at).toBe(wanted.at);
          const lines = Buffer.from(wanted.bytes.subarray(start, wanted.at)).toString();
          expect(Buffer.from(got.bytes.subarray(start, got.at)).toString()).toBe(lines);
          expect(memory.bytes[outputAt - 1]).toBe(guard);
        },
      ),
      { numRuns },
    );
  });

  it('hold every cursor', () => {
    for (const [partition, ordinal, text] of [
      [0, 1, '0000000000000001'],
      [0x123456, 0x789abcdef0, '123456789abcdef0'],
      [0xffffff, 2 ** 40 - 1, 'ffffffffffffffff'],
    ] as const) {
      const output = { bytes: new Uint8Array(200), at: 0 };
      const table = lineTable(lineKeysOf([]), []);
      expect(writeJsonRows(table, Uint32Array.of(0), 0, 1, partition, ordinal, output)).toBe(1);
      expect(Buffer.from(output.bytes.subarray(0, output.at)).toString()).toBe(`{"_cursor":"${text}"}\n`);
    }
  });
});

type WriteRows = (next: number, output: LineOutput) => number;

/** Foreign bytes before and after the buffer of a piece; kernels write up to `slack` bytes behind a buffer in their memory. */
const before = 3;
const slack = 64;

/** Buffers on the heap, and in the memory of the kernels. */
const heapRoom = (sizeBytes: number): Uint8Array => new Uint8Array(sizeBytes);
let sharedAddress: number | null = null;
const sharedRoom = (sizeBytes: number): Uint8Array => {
  const shared = sharedMemory();
  if (sharedAddress !== null) shared.free(sharedAddress);
  sharedAddress = shared.allocate(sizeBytes)!;
  return new Uint8Array(shared.buffer, sharedAddress, sizeBytes);
};

/** All rows in pieces of `pieceBytes`, or of the possible size of the next line if that is larger. */
function inPieces(
  table: PlainTable,
  { rows, count }: { rows: Uint32Array | null; count: number },
  pieceBytes: number,
  roomOf: (sizeBytes: number) => Uint8Array,
  write: WriteRows,
): string[] {
  const pieces: string[] = [];
  for (let next = 0; next < count;) {
    const room = Math.max(pieceBytes, lineBytesMax(lineTable(table, table.columns), rows, next));
    const around = roomOf(before + room + 2 * slack).fill(guard);
    const output: LineOutput = { bytes: around.subarray(before, before + room), at: 0 };
    const end = write(next, output);
    const outside = [...around.subarray(0, before), ...around.subarray(before + room + slack)];
    if (end <= next || outside.some((byte) => byte !== guard))
      expect({ next, end, outside }).toBe('as it was');
    pieces.push(Buffer.from(output.bytes.subarray(0, output.at)).toString());
    next = end;
  }
  return pieces;
}

function layColumn(column: JsonColumn, lay: Lay): JsonColumn {
  const { validity, codes, halves, doubles, offsets, bytes } = column;
  return {
    ...column,
    validity: lay(validity),
    codes: lay(codes),
    halves: lay(halves),
    doubles: lay(doubles),
    offsets: lay(offsets),
    bytes: lay(bytes),
  };
}

function expectSamePieces(
  table: PlainTable,
  list: { rows: Uint32Array | null; count: number },
  pieceBytes: number,
  partition: number,
  ordinalOfRow0: number,
): void {
  const { rows, count } = list;
  const wanted = inPieces(table, list, pieceBytes, heapRoom, (next, output) =>
    writePlainRows(table, rows, next, count, partition, ordinalOfRow0, output),
  );
  both((lay) => {
    const laid = lineTable(
      table,
      table.columns.map((column) => layColumn(column, lay)),
    );
    for (const roomOf of [heapRoom, sharedRoom]) {
      const got = inPieces(table, list, pieceBytes, roomOf, (next, output) =>
        writeJsonRows(laid, rows, next, count, partition, ordinalOfRow0, output),
      );
      expect(got).toEqual(wanted);
    }
    if (laid.columns !== null) return;
    placedTables++;
    const told: LineTable = { ...laid, block: laid.block.slice() };
    const there = inPieces(table, list, pieceBytes, heapRoom, (next, output) =>
      writeJsonRows(told, rows, next, count, partition, ordinalOfRow0, output),
    );
    expect(there).toEqual(wanted);
  });
}

/** How many tables were reduced to plain numbers and rebuilt, as when they are sent to other threads. */
let placedTables = 0;

describe('lines in pieces', () => {
  it('equal those of the plain twin, wherever the columns are stored', () => {
    fc.assert(
      fc.property(
        tables,
        rowLists,
        fc.nat(4000),
        fc.nat(2 ** 24 - 1),
        fc.integer({ min: 0, max: 2 ** 40 - 2000 }),
        expectSamePieces,
      ),
      { numRuns },
    );
    expect(placedTables).toBeGreaterThanOrEqual(numRuns);
  });

  it('continue where one call of the kernel ends', () => {
    const rows = 9000;
    const values = BigInt64Array.from({ length: rows }, (_, row) => BigInt(row) * 1_000_003n);
    const numbers: JsonColumn = {
      ...empty,
      kind: jsonInt64,
      halves: new Int32Array(values.buffer, 0, 2 * 7000),
    };
    const list = { rows: Uint32Array.from({ length: rows }, (_, i) => (i * 7) % 7000), count: rows };
    for (const pieceBytes of [1_000_000, 150_000])
      expectSamePieces(tableOf([numbers]), list, pieceBytes, 77, 5);
  });

  it('equal those of the list from any of its rows on', () => {
    // The scratch memory is at low addresses, which equal the tested distances from the beginning of the list.
    const count = 4000;
    const table = tableOf([{ ...empty, kind: jsonFloat64, doubles: new Float64Array(count) }]);
    const rows = Uint32Array.from({ length: count }, (_, i) => count - 1 - i);
    both((lay) => {
      const laid = lineTable(
        table,
        table.columns.map((column) => layColumn(column, lay)),
      );
      for (let next = 0; next < count; next++) {
        const wanted: LineOutput = { bytes: new Uint8Array(1000), at: 0 };
        writePlainRows(table, rows, next, next + 1, 1, 1, wanted);
        const got: LineOutput = { bytes: new Uint8Array(1000), at: 0 };
        writeJsonRows(laid, rows, next, next + 1, 1, 1, got);
        const linesOf = ({ bytes, at }: LineOutput): string => Buffer.from(bytes.subarray(0, at)).toString();
        if (linesOf(got) !== linesOf(wanted)) expect(linesOf(got), `from ${next} on`).toBe(linesOf(wanted));
      }
    });
  });

  it('equal those of rows that are copied out of large columns, in any order', () => {
    const rows = 50_000;
    const values = BigInt64Array.from({ length: rows }, (_, row) => BigInt(row) * 1_000_003n);
    const { bytes, offsets } = stringsOf(
      Array.from({ length: rows }, (_, row) => Buffer.from(`row ${row} "${'x'.repeat(row % 40)}"`)),
    );
    const strings: JsonColumn = { ...empty, kind: jsonString, bytes, offsets };
    const codes = Uint16Array.from({ length: rows }, (_, row) => (row * 7919) % rows);
    const table = tableOf([
      { ...empty, kind: jsonInt64, halves: new Int32Array(values.buffer) },
      strings,
      { ...strings, codes },
      { ...empty, kind: jsonFloat64, doubles: Float64Array.from(values, Number), codes },
    ]);
    const some = Uint32Array.from({ length: 3000 }, (_, i) => (i * 48_271) % rows);
    expectSamePieces(table, { rows: some, count: some.length }, 60_000, 9, 3);
    expectSamePieces(table, { rows: null, count: 9000 }, 60_000, 9, 3);
  });

  it('have numbers of every digit count, and decimals that end in zeros', () => {
    const integerList = [0n];
    for (let power = 1n; power < 10n ** 18n; power *= 10n)
      integerList.push(power - 1n, power, power + 1n, -power);
    const decimalList = Array.from({ length: 1000 }, (_, i) => 1234 + i / 1000).flatMap((n) => [n, -n]);
    const count = decimalList.length;
    const integerColumn = BigInt64Array.from(
      { length: count },
      (_, i) => integerList[i % integerList.length]!,
    );
    const table = tableOf([
      { ...empty, kind: jsonInt64, halves: new Int32Array(integerColumn.buffer) },
      { ...empty, kind: jsonFloat64, doubles: Float64Array.from(decimalList) },
    ]);
    expectSamePieces(table, { rows: null, count }, 100_000, 1, 1);
  });
});
