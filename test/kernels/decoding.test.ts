import { describe, expect, it } from 'vitest';
import { packedRun } from './packed-run.js';
import * as plainPacking from './plain/bit-packing.js';
import * as plainDelta from './plain/delta.js';
import * as plainStrings from './plain/plain-strings.js';
import { caseCount, fc } from '../cases.js';
import * as simdPacking from '../../engine/kernels/bit-packing.js';
import * as simdDelta from '../../engine/kernels/delta.js';
import * as simdLz4 from '../../engine/kernels/lz4.js';
import * as simdStrings from '../../engine/kernels/plain-strings.js';
import { asciiFold } from '../../engine/kernels/substring.js';
import { both } from './lay.js';
import { TestMemory } from './memory.js';
import { stringColumns } from './strings.js';

const numRuns = caseCount(100, 10_000);

/** Lengths around the sizes of a vector and of a block, and around the smallest length for the kernel. */
const counts = fc.oneof(
  fc.constantFrom(0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 271, 272, 273, 4097),
  fc.nat(1000),
);

describe('the largest code', () => {
  it('equals that of the plain twin, wherever it is and whatever follows the codes', () => {
    fc.assert(
      fc.property(
        fc.boolean(),
        counts,
        fc.nat(),
        fc.nat(65_534),
        fc.nat(20),
        (isWide, count, place, largest, behind) => {
          const codes = isWide ? new Uint16Array(count + behind) : new Uint8Array(count + behind);
          const top = isWide ? largest : largest % 255;
          for (let i = 0; i < count; i++) codes[i] = Math.imul(i, 40_503) % (top + 1);
          if (count > 0) codes[place % count] = top;
          // One more than any code in range, so that reading too far is noticed.
          codes.fill(top + 1, count);
          const wanted = plainPacking.largestCode(codes, count);
          expect(wanted).toBe(count === 0 ? -1 : top);
          both((lay) => expect(simdPacking.largestCode(lay(codes), count)).toBe(wanted));
        },
      ),
      { numRuns },
    );
  });
});

describe('lengths of strings', () => {
  const length = fc.oneof(
    { weight: 60, arbitrary: fc.bigInt({ min: 0n, max: 40n }) },
    { weight: 20, arbitrary: fc.constant(0n) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(-1n, -40n, 2n ** 32n, 2n ** 32n + 3n, 2n ** 63n - 1n, -(2n ** 63n)),
    },
  );

  /** Lengths, and about as many bytes as the lengths add up to. */
  const pages = fc
    .tuple(
      fc.oneof(fc.array(length, { maxLength: 20 }), fc.array(length, { minLength: 60, maxLength: 400 })),
      fc.constantFrom(0, 0, 0, 0, -1, 1, 70),
    )
    .map(([list, off]) => {
      const lengths = BigInt64Array.from(list);
      const sum = list.reduce((total, one) => total + one, 0n);
      const bytes = sum >= 0n && sum < 100_000n ? Math.max(0, Number(sum) + off) : 100;
      const head = new Uint8Array(simdDelta.deltaBytesMax(lengths.length));
      const end = plainDelta.encodeDelta(lengths, lengths.length, head, 0);
      const page = new Uint8Array(end + bytes).fill(0x61);
      page.set(head.subarray(0, end));
      return { lengths, page, end };
    });

  function expectAsTwin(page: Uint8Array, count: number): { bytesAt: number; offsets: Uint32Array } {
    const offsets = new Uint32Array(count + 1).fill(7);
    const bytesAt = plainDelta.decodeLengths(page, count, offsets);
    both((lay) => {
      const got = lay(new Uint32Array(count + 1).fill(7));
      expect(simdDelta.decodeLengths(lay(page), count, got)).toBe(bytesAt);
      if (bytesAt >= 0) expect([...got]).toEqual([...offsets]);
    });
    return { bytesAt, offsets };
  }

  it('become the same offsets as in the plain twin, and only if they match the bytes that follow', () => {
    fc.assert(
      fc.property(pages, ({ lengths, page, end }) => {
        const { bytesAt, offsets } = expectAsTwin(page, lengths.length);
        const sum = lengths.reduce((total, one) => total + one, 0n);
        const isWhole = lengths.every((one) => one >= 0n) && sum === BigInt(page.length - end);
        expect(bytesAt).toBe(isWhole ? end : -1);
        if (!isWhole) return;
        lengths.forEach((one, row) => expect(offsets[row + 1]! - offsets[row]!).toBe(Number(one)));
      }),
      { numRuns },
    );
  });

  it('are rejected if damaged, as by the plain twin', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 });
    fc.assert(
      fc.property(pages, damage, fc.nat(40), fc.integer({ min: -2, max: 2 }), (whole, changes, cut, off) => {
        const page = whole.page.slice(0, Math.max(1, whole.page.length - cut));
        for (const [at, byte] of changes) page[at % Math.min(page.length, whole.end)] = byte;
        expectAsTwin(page, Math.max(0, whole.lengths.length + off));
      }),
      { numRuns: numRuns * 2 },
    );
  });
});

describe('pages that are decoded in place', () => {
  it('give the same values for LZ4', () => {
    const pieces = fc.array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 30 }), fc.nat(60)), {
      minLength: 10,
      maxLength: 40,
    });
    fc.assert(
      fc.property(pieces, (list) => {
        const source = Uint8Array.from(
          list.flatMap(([piece, times]) => Array.from({ length: 1 + times }, () => [...piece]).flat()),
        );
        both((lay) => {
          const target = lay(new Uint8Array(simdLz4.lz4BytesMax(source.length)));
          const written = simdLz4.lz4Compress(lay(source), target);
          const back = lay(new Uint8Array(source.length));
          expect(simdLz4.lz4Decompress(target.subarray(0, written), back, source.length)).toBe(source.length);
          expect(Buffer.compare(back, source)).toBe(0);
        });
      }),
      { numRuns },
    );
  });

  it('give the same values for deltas', () => {
    const steps = fc.array(fc.bigInt({ min: -(2n ** 40n), max: 2n ** 40n }), {
      minLength: 1,
      maxLength: 400,
    });
    fc.assert(
      fc.property(steps, fc.nat(9), (deltas, at) => {
        let value = 0n;
        const values = BigInt64Array.from(deltas, (delta) => (value += delta));
        const wanted = new Uint8Array(at + simdDelta.deltaBytesMax(values.length));
        const end = plainDelta.encodeDelta(values, values.length, wanted, at);
        both((lay) => {
          const target = lay(new Uint8Array(wanted.length));
          expect(simdDelta.encodeDelta(lay(values), values.length, target, at)).toBe(end);
          expect(Buffer.compare(target, wanted)).toBe(0);
          const back = lay(new BigInt64Array(values.length));
          expect(simdDelta.decodeDelta(target.subarray(0, end), at, back, values.length)).toBe(end);
          expect([...back]).toEqual([...values]);
        });
      }),
      { numRuns },
    );
  });

  it('give the same values for PLAIN strings', () => {
    fc.assert(
      fc.property(stringColumns, ({ rows, bytes, offsets }) => {
        const stringBytes = offsets[rows]! - offsets[0]!;
        const wanted = new Uint8Array(stringBytes + 4 * rows);
        plainStrings.encodePlainStrings(bytes, offsets, rows, wanted);
        both((lay) => {
          const page = lay(new Uint8Array(wanted.length));
          expect(simdStrings.encodePlainStrings(lay(bytes), lay(offsets), rows, page)).toBe(wanted.length);
          expect(Buffer.compare(page, wanted)).toBe(0);
          const [backBytes, backOffsets] = [lay(new Uint8Array(stringBytes)), lay(new Uint32Array(rows + 1))];
          expect(simdStrings.decodePlainStrings(page, rows, backBytes, backOffsets)).toBe(stringBytes);
          expect(Buffer.compare(backBytes, bytes.subarray(offsets[0], offsets[rows]))).toBe(0);
          expect([...backOffsets]).toEqual([...offsets].map((offset) => offset - offsets[0]!));
        });
      }),
      { numRuns },
    );
  });

  it('give the same values for codes, and keep the codes that were there before', () => {
    const widths = fc.integer({ min: 1, max: 16 });
    fc.assert(
      fc.property(counts, widths, fc.nat(40), fc.nat(), (count, width, before, seed) => {
        const mask = (1 << width) - 1;
        const codes = Uint16Array.from(
          { length: count },
          (_, i) => (Math.imul(i + seed, 40_503) >>> 3) & mask,
        );
        const packedBytes = Math.ceil(count / 8) * width;
        const wanted = new Uint8Array(before + packedBytes);
        plainPacking.packCodes(codes, count, width, wanted, before);
        both((lay) => {
          const packed = lay(new Uint8Array(before + packedBytes));
          expect(simdPacking.packCodes(lay(codes), count, width, packed, before)).toBe(before + packedBytes);
          expect(Buffer.compare(packed, wanted)).toBe(0);
          for (const isWide of width <= 8 ? [false, true] : [true]) {
            const rows = before + count;
            const target = lay(isWide ? new Uint16Array(rows).fill(0xa5) : new Uint8Array(rows).fill(0xa5));
            const run = lay(packedRun(packed.subarray(before), count, width));
            simdPacking.decodeHybrid(run, 0, count, width, target.subarray(before));
            expect([...target.subarray(before)]).toEqual([...codes]);
            expect(target.subarray(0, before).every((code) => code === 0xa5)).toBe(true);
          }
        });
      }),
      { numRuns },
    );
  });
});

describe('bytes', () => {
  const memory = TestMemory.create(0, 1024 * 1024)!;
  const texts = fc.oneof(fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ maxLength: 100, max: 127 }));

  it('are folded as by the plain twin, into another buffer or in place', () => {
    fc.assert(
      fc.property(texts, (text) => {
        memory.reset();
        const wanted = text.map((byte) => asciiFold[byte]!);
        const source = memory.place(text);
        const target = memory.room(text.length);
        memory.kernels.foldAscii(source, text.length, target);
        expect(memory.take(target, text.length)).toEqual(wanted);
        expect(memory.take(source, text.length)).toEqual(text);
        memory.kernels.foldAscii(source, text.length, source);
        expect(memory.take(source, text.length)).toEqual(wanted);
        expect(memory.bytes[source - 1]).toBe(0xa5);
      }),
      { numRuns },
    );
  });

  it('are recognised as ASCII by their own content only, however few they are', () => {
    fc.assert(
      fc.property(texts, (text) => {
        memory.reset();
        // The bytes before and after them are not ASCII.
        const at = memory.place(text);
        expect(memory.kernels.isAscii(at, text.length) !== 0).toBe(text.every((byte) => byte < 128));
      }),
      { numRuns },
    );
  });
});
