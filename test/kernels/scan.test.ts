import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { asciiFold } from '../../engine/kernels/substring.js';
import { affixEnd, affixStart, kernelNeedle } from '../../engine/kernels/needle.js';
import { TestMemory } from './memory.js';
import * as bitmap from './plain/bitmap.js';
import { selectFloat64, selectInt64, selectInt64Wide } from './plain/compare.js';
import { selectCodes } from './plain/dictionary-select.js';
import { selectContaining, selectEqual, selectPrefix, selectSuffix } from './plain/substring.js';
import { stringColumns, stringsOf, type Strings } from './strings.js';

const numRuns = caseCount(200, 20_000);
const memory = TestMemory.create(0, 4 * 1024 * 1024)!;
const guard = 0xa5;

/** An output bitmap with arbitrary content: its bytes outside the rows [from, to) must not change. */
function outBits(rows: number): Uint8Array {
  return new Uint8Array(((rows + 7) >> 3) + 9).fill(guard);
}

/** Rows [from, to) of a column, `from` a multiple of 8. */
function rangeOf(rows: number, a: number, b: number): [from: number, to: number] {
  const [low, high] = [a % (rows + 1), b % (rows + 1)].sort((x, y) => x - y) as [number, number];
  return [low & ~7, high];
}

const longs = fc.oneof(
  fc.bigInt({ min: -4n, max: 4n }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n, 2n ** 32n, -1n),
);
const doubles = fc.oneof(
  fc.double({ noNaN: true }),
  fc.constantFrom(0, -0, 1, -1, Infinity, -Infinity, Number.MIN_VALUE),
);
const flips = fc.constantFrom(0, 0xff);

function half(value: bigint): { high: number; low: number } {
  return { high: Number(BigInt.asIntN(32, value >> 32n)), low: Number(BigInt.asUintN(32, value)) };
}

describe('numbers in a range', () => {
  it('select the same integers as the plain twin', () => {
    fc.assert(
      fc.property(
        fc.array(longs, { maxLength: 150 }),
        longs,
        longs,
        flips,
        fc.nat(),
        fc.nat(),
        (values, low, high, flip, a, b) => {
          memory.reset();
          const column = BigInt64Array.from(values);
          const [from, to] = rangeOf(column.length, a, b);
          const wanted = outBits(column.length);
          const out = memory.place(wanted);
          const [l, h] = [half(low), half(high)];
          const halves = new Int32Array(column.buffer);
          selectInt64Wide(halves, from, to, l.high, l.low, h.high, h.low, flip, wanted);
          memory.kernels.selectInt64(memory.place(column), from, to, low, high, flip, out);
          expect(memory.take(out, wanted.length)).toEqual(wanted);
        },
      ),
      { numRuns },
    );
  });

  it('select the same doubles as the plain twin', () => {
    fc.assert(
      fc.property(
        fc.array(doubles, { maxLength: 150 }),
        doubles,
        doubles,
        flips,
        fc.nat(),
        fc.nat(),
        (values, low, high, flip, a, b) => {
          memory.reset();
          const column = Float64Array.from(values);
          const [from, to] = rangeOf(column.length, a, b);
          const wanted = outBits(column.length);
          const out = memory.place(wanted);
          selectFloat64(column, from, to, low, high, flip, wanted);
          memory.kernels.selectFloat64(memory.place(column), from, to, low, high, flip, out);
          expect(memory.take(out, wanted.length)).toEqual(wanted);
        },
      ),
      { numRuns },
    );
  });

  it('are found at addresses beyond 2 GiB', () => {
    const far = TestMemory.create(2 ** 31 + 12_345, 64 * 1024);
    // A machine that does not provide that much memory has no such addresses either.
    if (far === null) return;
    const column = BigInt64Array.from({ length: 1000 }, (_, row) => BigInt((row * 7919) % 1000));
    const wanted = outBits(1000);
    const out = far.place(wanted);
    selectInt64(new Int32Array(column.buffer), 0, 1000, 100, 300, 0, wanted);
    far.kernels.selectInt64(far.place(column), 0, 1000, 100n, 300n, 0, out);
    expect(far.take(out, wanted.length)).toEqual(wanted);
    const rows = far.room(4000);
    expect(far.kernels.listRange32(out, 0, 1000, 5, rows)).toBe(5);
    const strings = stringsOf(Array.from({ length: 500 }, (_, row) => Buffer.from(`row ${row} of 500`)));
    const needle = kernelNeedle(Buffer.from('w 77'), true);
    const hits = far.place(outBits(500));
    const [bytesAt, offsetsAt, needleAt] = [
      far.place(strings.bytes),
      far.place(strings.offsets),
      far.place(needle.planes),
    ];
    const { length, first, second } = needle;
    expect(
      far.kernels.selectContaining(bytesAt, offsetsAt, 0, 500, needleAt, length, first, second, hits),
    ).toBe(1);
    expect(far.bytes[hits + (77 >> 3)]).toBe(1 << (77 & 7));
  });
});

describe('selections', () => {
  const bits = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc
      .array(fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 255), { maxLength: 200 })
      .map((some) => Uint8Array.from(some)),
  );

  it('are combined as by the plain twin', () => {
    fc.assert(
      fc.property(bits, bits, fc.nat(), fc.nat(), (one, two, a, b) => {
        const length = Math.min(one.length, two.length);
        const [from, to] = rangeOf(length * 8, a, b);
        for (const name of ['andRange', 'orRange'] as const) {
          memory.reset();
          const wanted = one.slice();
          bitmap[name](wanted, two, from, to);
          const at = memory.place(one);
          memory.kernels[name](at, memory.place(two), from, to);
          expect(memory.take(at, one.length)).toEqual(wanted);
        }
      }),
      { numRuns },
    );
  });

  it('are counted and listed as by the plain twin', () => {
    fc.assert(
      fc.property(bits, fc.nat(), fc.nat(), fc.nat(40), (some, a, b, most) => {
        memory.reset();
        const rows = some.length * 8;
        const [from, to] = [a % (rows + 1), b % (rows + 1)].sort((x, y) => x - y) as [number, number];
        const listed = new Uint32Array(rows);
        const all = [...listed.subarray(0, bitmap.listRange(some, from, to, listed, 0))];
        const at = memory.place(some);
        const out = memory.room(4 * most);
        const { kernels } = memory;
        expect(kernels.countRange(at, from, to)).toBe(bitmap.countRange(some, from, to));
        const taken = (count: number): number[] => [
          ...new Uint32Array(memory.take(out, 4 * most).buffer, 0, count),
        ];
        expect(taken(kernels.listRange32(at, from, to, most, out))).toEqual(all.slice(0, most));
        expect(kernels.listRange16(at, from, to, most, out)).toBe(Math.min(most, all.length));
        const short = new Uint16Array(memory.take(out, 4 * most).buffer, 0, Math.min(most, all.length));
        expect([...short]).toEqual(all.slice(0, most));
        expect(memory.bytes[out + 4 * most]).toBe(guard);
      }),
      { numRuns },
    );
  });
});

describe('bits that are expanded to bytes', () => {
  it('equal those of the plain twin', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(), (bits, some) => {
        memory.reset();
        const count = some % (bits.length * 8 + 1);
        const wanted = new Uint8Array(count);
        bitmap.spreadBits(bits, count, wanted);
        const out = memory.room(count);
        memory.kernels.spreadBits(memory.place(bits), count, out);
        expect(memory.take(out, count)).toEqual(wanted);
      }),
      { numRuns },
    );
  });
});

describe('codes that are looked up in a set', () => {
  it('select the same rows as in the plain twin', () => {
    const sets = fc.uint8Array({ min: 0, max: 1, minLength: 256, maxLength: 256 });
    fc.assert(
      fc.property(
        fc.array(fc.nat(65535), { maxLength: 400 }),
        sets,
        fc.nat(),
        fc.nat(),
        (some, set, a, b) => {
          const [from, to] = rangeOf(some.length, a, b);
          for (const narrow of [true, false]) {
            memory.reset();
            const entries = narrow ? set : Uint8Array.from({ length: 65536 }, (_, i) => set[(i * 31) & 255]!);
            const codes = narrow ? Uint8Array.from(some) : Uint16Array.from(some);
            const wanted = outBits(some.length);
            const out = memory.place(wanted);
            selectCodes(codes, entries, from, to, wanted);
            const select = narrow ? memory.kernels.selectCodes8 : memory.kernels.selectCodes16;
            select(memory.place(codes), memory.place(entries), from, to, out);
            expect(memory.take(out, wanted.length)).toEqual(wanted);
          }
        },
      ),
      { numRuns },
    );
  });
});

describe('strings', () => {
  interface Search {
    readonly strings: Strings;
    readonly needle: Uint8Array;
    readonly from: number;
    readonly to: number;
  }

  /** A column and a needle that is mostly a part of one of its rows, in either case, or runs on into the next row. */
  const searches: fc.Arbitrary<Search> = fc
    .tuple(stringColumns, fc.nat(), fc.integer({ min: 1, max: 40 }), fc.nat(), fc.nat(), fc.nat(9))
    .map(([strings, at, length, a, b, other]) => {
      const { bytes, rows } = strings;
      const [from, to] = rangeOf(rows, a, b);
      const start = bytes.length === 0 ? 0 : at % bytes.length;
      const found = bytes.slice(start, start + length);
      const needle = found.length === 0 ? Uint8Array.of(0x61) : found;
      if (other === 0) needle[needle.length - 1] = 0x07;
      return { strings, needle, from, to };
    });

  /** The maximum number of bytes that are compared at one position. */
  function paddedBytes(needle: Uint8Array): number {
    return Math.max(16, Math.ceil(needle.length / 16) * 16);
  }

  function kernelBits(
    { strings, from, to }: Search,
    needle: Uint8Array,
    kind: number | 'whole' | null,
  ): Uint8Array | null {
    memory.reset();
    const { kernels } = memory;
    const wanted = outBits(strings.rows);
    const out = memory.place(wanted);
    const { planes, length, first, second } = kernelNeedle(needle, kind !== 'whole');
    const needleAt = memory.place(planes);
    const offsetsAt = memory.place(strings.offsets);
    const bytesAt = memory.place(strings.bytes);
    if (kind === 'whole') kernels.selectEqual(bytesAt, offsetsAt, from, to, needleAt, length, out);
    else if (kind !== null) kernels.selectAffix(bytesAt, offsetsAt, from, to, needleAt, length, kind, out);
    else if (kernels.selectContaining(bytesAt, offsetsAt, from, to, needleAt, length, first, second, out) < 0)
      return null;
    return memory.take(out, wanted.length);
  }

  it('that contain, begin with, end with or equal the needle are those of the plain twin', () => {
    fc.assert(
      fc.property(searches, (search) => {
        const { strings, from, to } = search;
        const { offsets, bytes } = strings;
        const folded = search.needle.map((byte) => asciiFold[byte]!);
        const containing = outBits(strings.rows);
        selectContaining(offsets, bytes, folded, from, to, containing);
        const found = kernelBits(search, folded, null);
        // The kernel leaves text to the caller that is so periodic that comparing takes far longer than skipping.
        if (found === null)
          expect((offsets[to]! - offsets[from]!) * paddedBytes(folded)).toBeGreaterThan(65_536);
        else expect(found).toEqual(containing);
        const prefix = outBits(strings.rows);
        selectPrefix(offsets, bytes, folded, from, to, prefix);
        expect(kernelBits(search, folded, affixStart)).toEqual(prefix);
        const suffix = outBits(strings.rows);
        selectSuffix(offsets, bytes, folded, from, to, suffix);
        expect(kernelBits(search, folded, affixEnd)).toEqual(suffix);
        const equal = outBits(strings.rows);
        selectEqual(offsets, bytes, search.needle, from, to, equal);
        expect(kernelBits(search, search.needle, 'whole')).toEqual(equal);
      }),
      { numRuns },
    );
  });

  it('that equal one of the rows are those of the plain twin', () => {
    fc.assert(
      fc.property(stringColumns, fc.nat(), fc.nat(), fc.nat(), (strings, row, a, b) => {
        const { offsets, bytes, rows } = strings;
        const [from, to] = rangeOf(rows, a, b);
        const needle =
          rows === 0 ? new Uint8Array(0) : bytes.slice(offsets[row % rows], offsets[(row % rows) + 1]);
        const equal = outBits(rows);
        selectEqual(offsets, bytes, needle, from, to, equal);
        expect(kernelBits({ strings, needle, from, to }, needle, 'whole')).toEqual(equal);
      }),
      { numRuns },
    );
  });

  it('are found at every position within a vector, and not across rows', () => {
    for (let before = 0; before < 140; before++) {
      const text = `${'x'.repeat(before)}Needle, and more`;
      const strings = stringsOf([
        Buffer.from(text),
        Buffer.from('nee'),
        Buffer.from('dle'),
        Buffer.from('needle'),
      ]);
      const search = { strings, needle: Buffer.from('needle'), from: 0, to: 4 };
      expect(kernelBits(search, search.needle, null)?.[0]).toBe(0b1001);
    }
  });

  it('are left to the plain code if the text is periodic', () => {
    const strings = stringsOf([new Uint8Array(600_000).fill(0x61)]);
    const needle = new Uint8Array(4000).fill(0x61);
    needle[1999] = 0x62;
    // The rarest bytes identify this needle; only a needle whose bytes are all equal except for case has no such bytes.
    expect(kernelBits({ strings, needle, from: 0, to: 1 }, needle, null)?.[0]).toBe(0);
    const ab = Buffer.from('ab'.repeat(300_000));
    const almost = Buffer.from(`${'ab'.repeat(2000)}bb`);
    const bits = kernelBits({ strings: stringsOf([ab]), needle: almost, from: 0, to: 1 }, almost, null);
    expect(bits).toBeNull();
  });
});
