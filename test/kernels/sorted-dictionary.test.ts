import { describe, expect, it } from 'vitest';
import { both } from './lay.js';
import * as plain from './plain/dictionary.js';
import { stringColumns, stringsOf, type Strings } from './strings.js';
import { caseCount, fc } from '../cases.js';
import * as simd from '../../engine/kernels/dictionary.js';

const numRuns = caseCount(100, 5000);

interface Dictionary {
  readonly entries: number;
  readonly codes: Uint16Array;
  readonly firstRows: Uint32Array;
}

function dictionaryOf(
  rows: number,
  number: (codes: Uint16Array, firstRows: Uint32Array) => number,
): Dictionary {
  const codes = new Uint16Array(rows);
  const firstRows = new Uint32Array(rows);
  const entries = number(codes, firstRows);
  return { entries, codes, firstRows: firstRows.slice(0, entries) };
}

function copyOf({ entries, codes, firstRows }: Dictionary): Dictionary {
  return { entries, codes: codes.slice(), firstRows: firstRows.slice() };
}

function sortedStrings({ rows, bytes, offsets }: Strings): Dictionary {
  const found = dictionaryOf(rows, (codes, firstRows) =>
    plain.numberBytes(bytes, offsets, rows, rows, codes, firstRows),
  );
  const wanted = copyOf(found);
  plain.sortBytes(bytes, offsets, rows, wanted.entries, wanted.codes, wanted.firstRows);
  both((lay) => {
    const got = { codes: lay(found.codes.slice()), firstRows: lay(found.firstRows.slice()) };
    simd.sortBytes(lay(bytes), lay(offsets), rows, found.entries, got.codes, got.firstRows);
    expect([...got.codes]).toEqual([...wanted.codes]);
    expect([...got.firstRows]).toEqual([...wanted.firstRows]);
  });
  return wanted;
}

function sortedWords(values: BigInt64Array): Dictionary {
  const halves = new Int32Array(values.buffer);
  const rows = values.length;
  const found = dictionaryOf(rows, (codes, firstRows) =>
    plain.numberWords(halves, rows, rows, codes, firstRows),
  );
  const wanted = copyOf(found);
  plain.sortWords(halves, rows, wanted.entries, wanted.codes, wanted.firstRows);
  both((lay) => {
    const got = { codes: lay(found.codes.slice()), firstRows: lay(found.firstRows.slice()) };
    simd.sortWords(lay(halves), rows, found.entries, got.codes, got.firstRows);
    expect([...got.codes]).toEqual([...wanted.codes]);
    expect([...got.firstRows]).toEqual([...wanted.firstRows]);
  });
  return wanted;
}

/** Numbers without an order, each of them once. */
function scattered(count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i * 7919) % count);
}

describe('the entries of a dictionary', () => {
  it('are sorted like by the plain twin if they are strings', () => {
    fc.assert(
      fc.property(stringColumns, (strings) => {
        sortedStrings(strings);
      }),
      { numRuns },
    );
  });

  it('are sorted like by the plain twin if they are words', () => {
    const words = fc.oneof(
      fc.bigInt({ min: -300n, max: 300n }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 300 }), (values) => {
        sortedWords(BigInt64Array.from(values));
      }),
      { numRuns },
    );
  });

  it('are in order, and the code of each row still leads to its value', () => {
    const texts = scattered(5000).map(
      (n) => `/a/long/prefix/that/all/texts/share/${String(n % 2500).padStart(6, '0')}`,
    );
    const strings = sortedStrings(stringsOf(texts.map((text) => Buffer.from(text))));
    const entries = [...strings.firstRows].map((row) => texts[row]!);
    expect(entries).toEqual([...new Set(texts)].sort());
    expect([...strings.codes].map((code) => entries[code])).toEqual(texts);

    const values = BigInt64Array.from(scattered(5000), (n) => BigInt(n % 2500) * 1_000_003n);
    const words = sortedWords(values);
    expect([...words.firstRows].map((row) => values[row])).toEqual([...new Set(values.toSorted())]);
    expect([...words.codes].map((code) => values[words.firstRows[code]!])).toEqual([...values]);
  });

  it('keep their order if they differ only beyond the bytes that are compared, or in bytes of 0 at their end', () => {
    const far = (end: string): Uint8Array => Buffer.from('a'.repeat(simd.sortedBytesMax) + end);
    const near = (end: string): Uint8Array => Buffer.from('a'.repeat(simd.sortedBytesMax - 1) + end);
    const { firstRows } = sortedStrings(
      stringsOf([far('z'), far('y'), near('c'), near('b'), Buffer.from('x\0'), Buffer.from('x')]),
    );
    expect([...firstRows]).toEqual([0, 1, 3, 2, 4, 5]);
  });
});
