import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { countRange, listRange, setRange, andRange } from '../../engine/kernels/bitmap.js';
import {
  jsonFloat64,
  jsonInt64,
  lineKeysOf,
  jsonString,
  lineTable,
  nullJsonColumn,
  writeJsonRows,
  type JsonColumn,
} from '../../engine/kernels/json-rows.js';
import { kernelNeedle } from '../../engine/kernels/needle.js';
import { buildSearchTables, findFolded, selectContaining } from '../../engine/kernels/substring.js';
import { prepareNeedle, matchString, selectStrings } from '../../engine/scan/string-search.js';
import type { NeedleOp } from '../../engine/scan/query.js';
import { holdsString } from '../model/answer.js';
import { strangeText } from '../model/arbitraries.js';
import { between, seededRandom } from '../model/random.js';
import { expectEqual } from '../expect-equal.js';

const runs = caseCount(1500, 100_000);
const encoder = new TextEncoder();

interface Strings {
  kind: 'bytes';
  length: number;
  offsets: Uint32Array;
  bytes: Uint8Array;
  validity: null;
}

function columnOf(values: readonly string[]): Strings {
  const parts = values.map((value) => encoder.encode(value));
  const offsets = new Uint32Array(values.length + 1);
  parts.forEach((part, i) => (offsets[i + 1] = offsets[i]! + part.length));
  const bytes = new Uint8Array(Buffer.concat([...parts, encoder.encode('kſ\u212aé')]));
  return { kind: 'bytes', length: values.length, offsets, bytes, validity: null };
}

describe('string search', () => {
  it('selects the texts that /iu finds, in one text and row by row', () => {
    const ops = fc.constantFrom<NeedleOp>('exact', 'like', 'prefix', 'suffix');
    const cases = fc.array(strangeText(6), { minLength: 1, maxLength: 40 }).chain((values) => {
      const stored = fc.tuple(fc.constantFrom(...values), fc.nat(3), fc.nat(6)).map(([text, from, to]) => {
        return Array.from(text).slice(from, to).join('');
      });
      const cased = fc.oneof(
        stored,
        stored.map((text) => text.toUpperCase()),
        stored.map((text) => text.toLowerCase()),
      );
      return fc.tuple(fc.constant(values), fc.oneof(cased, strangeText(2)), fc.nat(values.length - 1));
    });
    fc.assert(
      fc.property(cases, ops, ([values, text, first], op) => {
        const column = columnOf(values);
        const needle = prepareNeedle(op, text);
        const out = new Uint8Array(((values.length + 7) >> 3) + 1).fill(0xff);
        const from = first & ~7;
        selectStrings(column, needle, from, values.length, out);
        for (let row = from; row < values.length; row++) {
          const wanted = holdsString(op, values[row]!, text);
          expectEqual(((out[row >> 3]! >> (row & 7)) & 1) === 1, wanted, `row ${row}`);
          expectEqual(matchString(column, needle, row), wanted, `row ${row}`);
        }
        const tail = values.length & 7;
        if (tail !== 0) expect(out[values.length >> 3]! >> tail).toBe(0);
      }),
      { numRuns: runs },
    );
  });

  it('finds needles in periodic text', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 300; round++) {
      const alphabet = round % 2 === 0 ? 'aA' : 'ab=';
      const pick = (length: number): string =>
        Array.from({ length }, () => alphabet[between(random, 0, alphabet.length)]!).join('');
      const text = pick(2000) + (round % 3 === 0 ? pick(5) : 'b');
      const needle = (pick(between(random, 1, 40)) + (round % 5 === 0 ? 'b' : '')).toLowerCase();
      const tables = buildSearchTables(encoder.encode(needle));
      expect(findFolded(encoder.encode(text), 0, text.length, tables)).toBe(
        text.toLowerCase().indexOf(needle),
      );
    }
  });

  it('takes linear time if text and needle are periodic', () => {
    // Quadratic work would be 10^11 comparisons here, which exceeds the time limit of the test.
    const needle = encoder.encode(`b${'a'.repeat(20_000)}`);
    const rows = 40;
    const rowBytes = 100_000;
    const bytes = new Uint8Array(rows * rowBytes).fill(0x61);
    const offsets = Uint32Array.from({ length: rows + 1 }, (_, i) => i * rowBytes);
    const out = new Uint8Array(8);
    selectContaining(offsets, bytes, buildSearchTables(needle), kernelNeedle(needle, true), 0, rows, out);
    expect(out.every((byte) => byte === 0)).toBe(true);
  });
});

describe('bitmaps', () => {
  it('set, count, list and intersect ranges', () => {
    const range = fc
      .tuple(fc.nat(130), fc.nat(130))
      .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    fc.assert(
      fc.property(range, range, range, ([a, b], [c, d], [from, to]) => {
        const bits = new Uint8Array(64);
        const other = new Uint8Array(64);
        setRange(bits, a, b);
        setRange(other, c, d);
        andRange(bits, other, 0, 130);
        const rows: number[] = [];
        for (let row = from; row < to; row++) if (row >= a && row < b && row >= c && row < d) rows.push(row);
        expect(countRange(bits, from, to)).toBe(rows.length);
        const listed = new Uint16Array(130);
        expect([...listed.subarray(0, listRange(bits, from, to, listed, 0))]).toEqual(rows);
      }),
      { numRuns: runs },
    );
  });
});

describe('JSON values', () => {
  const output = { bytes: new Uint8Array(4096), at: 0 };

  /** The value of the one row of a column, as it is written. */
  function written(column: JsonColumn): string {
    output.at = 0;
    expect(writeJsonRows(lineTable(lineKeysOf(['v']), [column]), null, 0, 1, 1, 1, output)).toBe(1);
    const line = Buffer.from(output.bytes.subarray(0, output.at)).toString();
    return line.slice(line.indexOf('"v":') + 4, -2);
  }

  it('writes every digit of an int64', () => {
    const edges = [
      0n,
      9n,
      10n,
      999_999_999n,
      10n ** 9n,
      2n ** 32n,
      2n ** 53n - 1n,
      2n ** 53n,
      2n ** 53n + 1n,
    ];
    const int64 = fc.oneof(
      fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
      fc.bigInt(-(2n ** 54n), 2n ** 54n),
      fc.constantFrom(...edges, ...edges.map((edge) => -edge), 2n ** 63n - 1n, -(2n ** 63n)),
      fc.nat(18).map((power) => 10n ** BigInt(power)),
    );
    fc.assert(
      fc.property(int64, (value) => {
        const halves = new Int32Array(BigInt64Array.of(value).buffer);
        expect(written({ ...nullJsonColumn, kind: jsonInt64, halves })).toBe(value.toString());
      }),
      { numRuns: runs },
    );
  });

  it('writes doubles as JSON.stringify does', () => {
    const decimal = fc.tuple(fc.integer(), fc.nat(9)).map(([digits, power]) => digits / 10 ** power);
    const double = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      decimal,
      fc.constantFrom(-0, 1e-3),
    );
    fc.assert(
      fc.property(double, (value) => {
        const doubles = Float64Array.of(value);
        expect(written({ ...nullJsonColumn, kind: jsonFloat64, doubles })).toBe(JSON.stringify(value));
      }),
      { numRuns: runs },
    );
  });

  it('writes strings as JSON.stringify does', () => {
    fc.assert(
      fc.property(strangeText(60), (value) => {
        const bytes = encoder.encode(value);
        const offsets = Uint32Array.of(0, bytes.length);
        const column = { ...nullJsonColumn, kind: jsonString, offsets, bytes } as const;
        expect(written(column)).toBe(JSON.stringify(value));
      }),
      { numRuns: runs },
    );
  });
});
