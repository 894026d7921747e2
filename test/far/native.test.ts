import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { columnValue } from '../../engine/columns/column.js';
import { columnOfField } from '../../engine/far/far-sql.js';
import { readNative, fieldColumn, nativeBlock, unsignedColumn } from '../../engine/far/native-format.js';
import { murmur32 } from '../../engine/far/far-checksum.js';
import { positionToInt64 } from '../../engine/core/cursor.js';
import { isLogstrataError } from '../../engine/core/errors.js';
import { datasets, strangeSchema } from '../model/arbitraries.js';
import type { Dataset } from '../model/dataset.js';
import { batchFromRows } from '../model/rows.js';

const names = strangeSchema.fields.map(columnOfField);

/** The rows [from, to) of a dataset as a block. */
function blockOf({ records }: Dataset, from: number, to: number): Uint8Array {
  const batch = batchFromRows(
    strangeSchema,
    records.map(({ values }) => values),
  );
  const cursors = records
    .slice(from, to)
    .map(({ position }) => BigInt.asUintN(64, positionToInt64(position)));
  return nativeBlock(
    [
      unsignedColumn('_cursor', BigUint64Array.from(cursors)),
      ...strangeSchema.fields.map(({ type }, i) => fieldColumn(names[i]!, type, batch.columns[i]!, from, to)),
    ],
    to - from,
  );
}

describe('blocks in the format Native', () => {
  it('are read as they were written, in one block or several', () => {
    const cases = fc.tuple(datasets(40), fc.nat(40));
    fc.assert(
      fc.property(cases, ([dataset, cut]) => {
        const rows = dataset.records.length;
        const middle = Math.min(cut, rows);
        const bytes = Buffer.concat([blockOf(dataset, 0, middle), blockOf(dataset, middle, rows)]);
        const { batch, partitions, ordinals } = readNative(bytes, strangeSchema, names);
        expect(batch.length).toBe(rows);
        for (const [row, { position, values }] of dataset.records.entries()) {
          expect({ partition: partitions[row], ordinal: ordinals[row] }).toEqual(position);
          const read = batch.columns.map((column) => columnValue(column, row));
          expect(read).toEqual(values);
        }
      }),
      { numRuns: caseCount(60) },
    );
  });

  it('are refused with a message, or read completely, whatever bytes they have', () => {
    const cases = fc.tuple(datasets(10), fc.nat(), fc.nat(255), fc.boolean());
    fc.assert(
      fc.property(cases, ([dataset, at, byte, isCut]) => {
        const bytes = Buffer.from(blockOf(dataset, 0, dataset.records.length));
        const place = at % bytes.length;
        if (!isCut) bytes[place] = byte;
        const given = isCut ? bytes.subarray(0, place) : bytes;
        try {
          const { batch, ordinals } = readNative(given, strangeSchema, names);
          expect(ordinals.length).toBe(batch.length);
          if (isCut) expect(given.length).toBe(0);
        } catch (error) {
          expect(isLogstrataError(error), String(error)).toBe(true);
        }
      }),
      { numRuns: caseCount(400) },
    );
  });

  it.each([0x00, 0x01, 0x7f, 0x80, 0xff])('end soon if all of their bytes are %i', (byte) => {
    const bytes = new Uint8Array(1_000_000).fill(byte);
    if (byte !== 0) expect(() => readNative(bytes, strangeSchema, names)).toThrow(/can't be read/);
    else expect(readNative(bytes, strangeSchema, names).batch.length).toBe(0);
  });

  it('report the failure that a server wrote after them', () => {
    const text = 'Code: 241. DB::Exception: Memory limit (total) exceeded';
    expect(() => readNative(Buffer.from(text), strangeSchema, names)).toThrow(
      'Memory limit (total) exceeded',
    );
  });

  it('refuse invalid UTF-8, also if two values would be valid together', () => {
    const schema = { fields: [{ name: 'a', type: 'string' as const }] };
    const block = (values: readonly number[][]): Uint8Array => {
      const bytes = Uint8Array.from(values.flat());
      const offsets = new Uint32Array(values.length + 1);
      values.forEach((value, i) => (offsets[i + 1] = offsets[i]! + value.length));
      const column = { kind: 'bytes' as const, length: values.length, offsets, bytes, validity: null };
      const cursors = new BigUint64Array(values.length);
      return nativeBlock(
        [unsignedColumn('_cursor', cursors), fieldColumn('a__string', 'string', column, 0, values.length)],
        values.length,
      );
    };
    expect(() => readNative(block([[0xc3], [0xa9]]), schema, ['a__string'])).toThrow('not UTF-8');
    expect(readNative(block([[0xc3, 0xa9]]), schema, ['a__string']).batch.length).toBe(1);
  });
});

describe('the hash of texts', () => {
  it('is MurmurHash3', () => {
    const hash = (text: string): number => murmur32(Buffer.from(text), 0, Buffer.byteLength(text));
    expect([hash(''), hash('abc'), hash('hello, world')]).toEqual([0, 3_017_643_002, 0x149bbb7f]);
  });
});
