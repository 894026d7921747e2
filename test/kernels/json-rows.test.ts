import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fixedLineBytesMax,
  jsonFloat64,
  jsonInt64,
  jsonRendered,
  jsonString,
  lineBytesMax,
  writeJsonRows as writePlainRows,
  type JsonColumn,
  type JsonOutput,
} from '../../engine/kernels/json-rows.js';
import {
  bytesToCopy,
  kernelJsonColumns,
  writeJsonRows,
  writeRowsByKernel,
} from '../../engine/kernels/simd/json-rows.js';
import { jsonKey } from '../../engine/scan/json-columns.js';
import { both, type Lay } from './lay.js';
import { TestMemory } from './memory.js';
import { stringsOf } from './strings.js';

const numRuns = process.env.LOGSTRATA_LONG === '1' ? 20_000 : 300;
const memory = TestMemory.create(0, 4 * 1024 * 1024)!;
const guard = 0xa5;

const empty = {
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};
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
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc
    .array(fc.constantFrom('"', '\\', '\n', '\t', '\r', '\b', '\f', '\0', '\u001f', '\u007f', 'é', 'a'), {
      maxLength: 40,
    })
    .map((some) => some.join('')),
  fc.constantFrom(15, 16, 17, 31, 32, 33).map((n) => `${'x'.repeat(n)}"`),
);

/** A column of rows, or of entries behind codes of either width; with nulls or without. */
function columnOf(name: string): fc.Arbitrary<JsonColumn> {
  const shapes = fc.record({
    width: fc.constantFrom(0, 1, 2),
    codes: fc.array(fc.nat(entryCount - 1), { minLength: rowCount, maxLength: rowCount }),
    validity: fc.option(fc.uint8Array({ minLength: rowCount / 8, maxLength: rowCount / 8 }), {
      nil: empty.validity,
    }),
  });
  const values = fc.record({
    kind: fc.constantFrom(jsonInt64, jsonFloat64, jsonString, jsonRendered),
    integers: fc.array(integers, { minLength: rowCount, maxLength: rowCount }),
    doubles: fc.array(doubles, { minLength: rowCount, maxLength: rowCount }),
    texts: fc.array(texts, { minLength: rowCount, maxLength: rowCount }),
  });
  return fc.tuple(shapes, values).map(([{ width, codes, validity }, { kind, ...lists }]) => {
    const count = width === 0 ? rowCount : entryCount;
    const key = jsonKey(name);
    const shape = {
      ...empty,
      key,
      validity,
      codes: width === 0 ? empty.codes : width === 1 ? Uint8Array.from(codes) : Uint16Array.from(codes),
    };
    if (kind === jsonInt64) {
      const column = BigInt64Array.from(lists.integers.slice(0, count));
      return { ...shape, kind, halves: new Int32Array(column.buffer) };
    }
    if (kind === jsonFloat64)
      return { ...shape, kind, doubles: Float64Array.from(lists.doubles.slice(0, count)) };
    const { bytes, offsets } = stringsOf(lists.texts.slice(0, count).map((text) => Buffer.from(text)));
    return { ...shape, kind, bytes, offsets };
  });
}

const columnLists = fc
  .nat(4)
  .chain((n) => fc.tuple(...Array.from({ length: n }, (_, i) => columnOf(`field_${'x'.repeat(i * 7)}`))));

describe('JSON Lines', () => {
  it('are byte for byte those of the twin, and end at the same row', () => {
    fc.assert(
      fc.property(
        columnLists,
        fc.array(fc.nat(rowCount - 1), { maxLength: 50 }),
        fc.nat(2 ** 24 - 1),
        fc.integer({ min: -1000, max: 2 ** 40 - 2000 }),
        fc.nat(12_000),
        fc.nat(20),
        (columns, list, partition, ordinal, room, start) => {
          memory.reset();
          const rows = Uint32Array.from(list);
          const fixedBytes = fixedLineBytesMax(columns);
          const ordinalOfRow0 = Math.max(ordinal, 0);
          const wanted: JsonOutput = { bytes: new Uint8Array(start + room), at: start };
          const end = writePlainRows(
            columns,
            fixedBytes,
            rows,
            0,
            rows.length,
            partition,
            ordinalOfRow0,
            wanted,
          );
          const outputAt = memory.room(start + room);
          const got: JsonOutput = {
            bytes: memory.bytes.subarray(outputAt, outputAt + start + room),
            at: start,
          };
          const columnsAt = memory.place(kernelJsonColumns(columns, (array) => memory.place(array)));
          const placed = { kernels: memory.kernels, columnsAt, rowsAt: memory.place(rows), outputAt };
          expect(
            writeJsonRows(placed, columns, fixedBytes, rows, 0, rows.length, partition, ordinalOfRow0, got),
          ).toBe(end);
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
      memory.reset();
      const rows = Uint32Array.of(0);
      const outputAt = memory.room(200);
      const output = { bytes: memory.bytes.subarray(outputAt, outputAt + 200), at: 0 };
      const placed = { kernels: memory.kernels, columnsAt: 0, rowsAt: memory.place(rows), outputAt };
      expect(writeJsonRows(placed, [], fixedLineBytesMax([]), rows, 0, 1, partition, ordinal, output)).toBe(
        1,
      );
      expect(Buffer.from(output.bytes.subarray(0, output.at)).toString()).toBe(`{"_cursor":"${text}"}\n`);
    }
  });
});

type WriteRows = (next: number, output: JsonOutput) => number;

/** All rows in pieces of `pieceBytes`, or of what the next line may take where that is more, behind three bytes of others. */
function inPieces(
  columns: readonly JsonColumn[],
  rows: Uint32Array,
  pieceBytes: number,
  write: WriteRows,
): string[] {
  const fixedBytes = fixedLineBytesMax(columns);
  const pieces: string[] = [];
  for (let next = 0; next < rows.length;) {
    const room = Math.max(pieceBytes, lineBytesMax(columns, fixedBytes, rows[next]!));
    const output: JsonOutput = { bytes: new Uint8Array(3 + room).fill(guard), at: 3 };
    const end = write(next, output);
    expect(end).toBeGreaterThan(next);
    expect(output.bytes.subarray(0, 3).every((byte) => byte === guard)).toBe(true);
    expect(output.bytes.subarray(output.at).every((byte) => byte === guard)).toBe(true);
    pieces.push(Buffer.from(output.bytes.subarray(3, output.at)).toString());
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
  columns: readonly JsonColumn[],
  rows: Uint32Array,
  pieceBytes: number,
  partition: number,
  ordinalOfRow0: number,
): void {
  const fixedBytes = fixedLineBytesMax(columns);
  const to = rows.length;
  const wanted = inPieces(columns, rows, pieceBytes, (next, output) =>
    writePlainRows(columns, fixedBytes, rows, next, to, partition, ordinalOfRow0, output),
  );
  both((lay) => {
    const laid = columns.map((column) => layColumn(column, lay));
    const copiedBytes = bytesToCopy(laid)!;
    expect(copiedBytes).not.toBeNull();
    const reachable = { columns: laid, fixedBytes, copiedBytes };
    const got = inPieces(laid, rows, pieceBytes, (next, output) =>
      writeRowsByKernel(reachable, rows, next, to, partition, ordinalOfRow0, output),
    );
    expect(got).toEqual(wanted);
  });
}

describe('lines in pieces', () => {
  it('are those of the twin, wherever the columns lie', () => {
    fc.assert(
      fc.property(
        columnLists,
        fc.array(fc.nat(rowCount - 1), { maxLength: 50 }),
        fc.nat(2 ** 24 - 1),
        fc.integer({ min: 0, max: 2 ** 40 - 2000 }),
        fc.nat(4000),
        (columns, list, partition, ordinal, pieceBytes) =>
          expectSamePieces(columns, Uint32Array.from(list), pieceBytes, partition, ordinal),
      ),
      { numRuns },
    );
  });

  it('go on where one call of the kernel ends', () => {
    const rows = 9000;
    const values = BigInt64Array.from({ length: rows }, (_, row) => BigInt(row) * 1_000_003n);
    const numbers: JsonColumn = {
      ...empty,
      kind: jsonInt64,
      key: jsonKey('n'),
      // In the copy on the heap all of it has to be copied for each call, which is bounded.
      halves: new Int32Array(values.buffer, 0, 2 * 7000),
    };
    const list = Uint32Array.from({ length: rows }, (_, i) => (i * 7) % 7000);
    for (const pieceBytes of [1_000_000, 150_000]) expectSamePieces([numbers], list, pieceBytes, 77, 5);
  });

  it('are left to the twin where too much would have to be copied', () => {
    const numbers: JsonColumn = {
      ...empty,
      kind: jsonFloat64,
      key: jsonKey('n'),
      doubles: new Float64Array(9000),
    };
    expect(bytesToCopy([numbers])).toBeNull();
  });
});
