import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import {
  arraysOf,
  type Column,
  type PlainColumn,
  type Validity,
  columnAt,
  columnLayout,
  layoutEnd,
} from '../../engine/columns/column.js';
import { SharedMemory } from '../../engine/core/shared-memory.js';
import { createMemory } from '../../engine/core/wasm.js';
import { RangeSpace } from '../../engine/parquet/column-space.js';
import { copyColumn } from '../../engine/columns/convert-column.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import { expectEqual } from '../expect-equal.js';
import { anyText } from '../model/any-text.js';

const numRuns = caseCount(30, 2000);
const rowsMax = 300;
const rangeBytes = 64 * 1024;
const kinds = ['int64', 'float64', 'bytes'] as const;
const codeSizes = [0, 1, 2] as const;

const anyWords = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const anyTexts = anyText({ maxLength: 12 });

function plain(
  kind: PlainColumn['kind'],
  length: number,
  words: readonly bigint[],
  texts: readonly string[],
  validity: Validity,
): PlainColumn {
  const word = (row: number): bigint => words[row % words.length]! ^ BigInt(row);
  if (kind === 'int64')
    return { kind, length, values: BigInt64Array.from({ length }, (_, row) => word(row)), validity };
  if (kind === 'float64')
    return { kind, length, values: Float64Array.from({ length }, (_, row) => Number(word(row))), validity };
  const parts = Array.from({ length }, (_, row) => Buffer.from(texts[row % texts.length]!));
  const offsets = new Uint32Array(length + 1).fill(3);
  parts.forEach((part, row) => (offsets[row + 1] = offsets[row]! + part.length));
  const bytes = new Uint8Array(Buffer.concat([Buffer.from('abc'), ...parts, Buffer.from('de')]));
  return { kind, length, offsets, bytes, validity };
}

/** Columns of one shape: plain if `codeBytes` is 0, else with a dictionary. Some have no rows. */
function columns(kind: PlainColumn['kind'], codeBytes: 0 | 1 | 2, hasNulls: boolean): fc.Arbitrary<Column> {
  return fc
    .record({
      rows: fc.nat(rowsMax),
      entries: fc.integer({ min: 1, max: codeBytes === 1 ? 256 : rowsMax }),
      words: fc.array(anyWords, { minLength: 1, maxLength: 20 }),
      texts: fc.array(anyTexts, { minLength: 1, maxLength: 20 }),
      present: fc.uint8Array({ minLength: bitmapBytes(rowsMax), maxLength: bitmapBytes(rowsMax) }),
    })
    .map(({ rows, entries, words, texts, present }) => {
      const validity = hasNulls && rows > 0 ? present.slice(0, bitmapBytes(rows)) : null;
      if (codeBytes === 0) return plain(kind, rows, words, texts, validity);
      const codes = codeBytes === 1 ? new Uint8Array(rows) : new Uint16Array(rows);
      for (let row = 0; row < rows; row++) codes[row] = Math.imul(row, 40_503) % entries;
      const values = plain(kind, entries, words, texts, null);
      return { kind: 'dictionary', length: rows, codes, values, validity };
    });
}

function copyInto(space: RangeSpace, column: Column): Column {
  return copyColumn(column, space.kept);
}

/** Offset and length of each array of a column; arrays without bytes are left out. */
function places(column: Column): [byteOffset: number, byteLength: number][] {
  const arrays = arraysOf(column).filter(({ byteLength }) => byteLength > 0);
  return arrays.map(({ byteOffset, byteLength }) => [byteOffset, byteLength]);
}

describe.each(kinds)('the layout of a column of %s', (kind) => {
  it.each(codeSizes)(
    'with codes of %d bytes, is enough to reach the column from another view of the memory',
    (codeBytes) => {
      const memory = new SharedMemory(createMemory(1, 4096));
      const some = fc.boolean().chain((hasNulls) => columns(kind, codeBytes, hasNulls));
      fc.assert(
        fc.property(some, fc.nat(1000), (column, before) => {
          const taken = [memory.allocate(before)!, memory.allocate(rangeBytes)!];
          const laid = copyInto(new RangeSpace(memory, taken[1]!, rangeBytes), column);
          // The layout is cloned, as when it is sent to another thread.
          const layout = structuredClone(columnLayout(laid));
          const ends = places(laid).map(([byteOffset, byteLength]) => byteOffset + byteLength);
          expect(layoutEnd(layout)).toBe(Math.max(0, ...ends));
          const back = columnAt(memory.bufferUpTo(layoutEnd(layout)), layout);
          expectEqual(back, column);
          expectEqual(places(back), places(laid));
          expect(arraysOf(back).every((array) => memory.holds(array))).toBe(true);
          for (const address of taken) memory.free(address);
        }),
        { numRuns },
      );
    },
  );
});

it('reaches a column that lies beyond the size that the memory had before another thread grew it', () => {
  const memory = createMemory(1, 4096);
  const owner = new SharedMemory(memory);
  const other = new SharedMemory(memory, owner.id);
  const address = owner.allocate(20 * rangeBytes)!;
  const column = plain('int64', 5, [1n], ['a'], null);
  const space = new RangeSpace(owner, address + 19 * rangeBytes, rangeBytes);
  const layout = columnLayout(copyInto(space, column));
  expect(layoutEnd(layout)).toBeGreaterThan(other.buffer.byteLength);
  expect(columnAt(other.bufferUpTo(layoutEnd(layout)), layout)).toEqual(column);
});
