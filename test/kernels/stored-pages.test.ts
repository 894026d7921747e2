import { describe, expect, it } from 'vitest';
import * as plainPacking from './plain/bit-packing.js';
import * as plainDelta from './plain/delta.js';
import * as plainSnappy from './plain/snappy.js';
import { caseCount, fc } from '../cases.js';
import { decodeHybrid } from '../../engine/kernels/bit-packing.js';
import * as simdDelta from '../../engine/kernels/delta.js';
import { snappyDecompress } from '../../engine/kernels/snappy.js';
import * as numbers from '../../engine/kernels/stored-numbers.js';
import { decodeLevels } from '../../engine/kernels/validity.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import { both } from './lay.js';
import { expectEqual } from '../expect-equal.js';

const numRuns = caseCount(150, 20_000);

/** The bytes that are changed, and the number of bytes that are cut off. */
const damage = fc.tuple(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat(10));

function damaged(
  source: Uint8Array,
  [changes, cut]: readonly [(readonly [number, number])[], number],
): Uint8Array {
  const bytes = source.slice(0, Math.max(1, source.length - cut));
  for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
  return bytes;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return [...bytes, value];
}

describe('Snappy', () => {
  /** An element of a block: literals, or a copy of earlier output. */
  const piece = fc.oneof(
    fc.record({ literals: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.constantFrom(256, 300, 70_000)) }),
    fc.record({
      kind: fc.integer({ min: 1, max: 3 }),
      offset: fc.nat(5000),
      matched: fc.integer({ min: 1, max: 64 }),
    }),
  );

  function blockOf(
    pieces: readonly ({ literals: number } | { kind: number; offset: number; matched: number })[],
  ): {
    block: Uint8Array;
    length: number;
  } {
    const bytes: number[] = [];
    let length = 0;
    for (const one of pieces) {
      if ('literals' in one) {
        const rest = one.literals - 1;
        if (rest < 60) bytes.push(rest << 2);
        else if (rest < 256) bytes.push(60 << 2, rest);
        else bytes.push(62 << 2, rest & 255, (rest >> 8) & 255, rest >> 16);
        for (let k = 0; k < one.literals; k++) bytes.push((bytes.length * 73) & 255);
        length += one.literals;
        continue;
      }
      // Most offsets lie within the output.
      const offset = length === 0 || one.offset === 0 ? one.offset : 1 + (one.offset % length);
      const isNear = one.kind === 1 && offset < 2048 && one.matched >= 4 && one.matched < 12;
      if (isNear) bytes.push(1 | ((one.matched - 4) << 2) | ((offset >> 8) << 5), offset & 255);
      else if (one.kind === 3)
        bytes.push(3 | ((one.matched - 1) << 2), offset & 255, (offset >> 8) & 255, offset >> 16, 0);
      else bytes.push(2 | ((one.matched - 1) << 2), offset & 255, (offset >> 8) & 255);
      length += one.matched;
    }
    return { block: Uint8Array.from([...varint(length), ...bytes]), length };
  }

  it('is read as by the plain twin, intact and damaged, and nothing is written outside the target', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), damage, fc.boolean(), (pieces, changes, isWhole) => {
        const { block, length } = blockOf(pieces);
        const source = isWhole ? block : damaged(block, changes);
        const wanted = new Uint8Array(length);
        const read = plainSnappy.snappyDecompress(source, wanted, length);
        both((lay) => {
          const got = lay(new Uint8Array(length));
          expect(snappyDecompress(lay(source), got, length)).toBe(read);
          if (read >= 0) expect(Buffer.compare(got, wanted)).toBe(0);
        });
      }),
      { numRuns },
    );
  });
});

describe('RLE runs and bit-packed codes', () => {
  const run = fc.record({
    isPacked: fc.boolean(),
    length: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 200 })),
    code: fc.nat(),
  });

  it('are read as by the plain twin, in every width, intact and damaged', () => {
    const widths = fc.oneof(fc.integer({ min: 0, max: 32 }), fc.integer({ min: 0, max: 8 }));
    fc.assert(
      fc.property(
        fc.array(run, { maxLength: 12 }),
        widths,
        damage,
        fc.nat(2),
        fc.nat(20),
        (runs, width, changes, kind, off) => {
          const bytes: number[] = [7, 7, 7];
          let count = 0;
          for (const { isPacked, length, code } of runs) {
            bytes.push(...varint(length * 2 + Number(isPacked)));
            const size = isPacked ? length * width : Math.ceil(width / 8);
            for (let k = 0; k < size; k++) {
              const isLast = !isPacked && k === size - 1;
              bytes.push((((code + k) * 73) & 255) % (isLast ? 2 ** (width - 8 * k) : 256));
            }
            count += isPacked ? length * 8 : length;
          }
          const source = kind === 0 ? damaged(Uint8Array.from(bytes), changes) : Uint8Array.from(bytes);
          const asked = Math.max(0, count - off);
          for (const array of [Uint8Array, Uint16Array, Uint32Array]) {
            const wanted = new array(asked);
            const read = plainPacking.decodeHybrid(source, Math.min(3, source.length), asked, width, wanted);
            both((lay) => {
              const got = lay(new array(asked));
              expectEqual(decodeHybrid(lay(source), Math.min(3, source.length), asked, width, got), read);
              if (read >= 0) expectEqual(got, wanted);
            });
          }
        },
      ),
      { numRuns },
    );
  });

  it('of levels become bits of rows, wherever a run begins', () => {
    fc.assert(
      fc.property(fc.array(run, { minLength: 1, maxLength: 20 }), fc.nat(30), (runs, off) => {
        const bytes: number[] = [];
        const levels: number[] = [];
        for (const { isPacked, length, code } of runs) {
          bytes.push(...varint(length * 2 + Number(isPacked)));
          if (!isPacked) {
            bytes.push(code & 1);
            for (let k = 0; k < length; k++) levels.push(code & 1);
          }
          for (let k = 0; isPacked && k < length; k++) {
            const byte = ((code + k) * 73) & 255;
            bytes.push(byte);
            for (let bit = 0; bit < 8; bit++) levels.push((byte >> bit) & 1);
          }
        }
        const rows = Math.max(0, levels.length - off);
        const bits = new Uint8Array(bitmapBytes(rows));
        const wanted = levels.slice(0, rows);
        const present = wanted.reduce((sum, level) => sum + level, 0);
        expect(decodeLevels(Uint8Array.from(bytes), 0, bytes.length, rows, bits)).toBe(present);
        expectEqual(
          Array.from({ length: bits.length * 8 }, (_, row) => (bits[row >> 3]! >> (row & 7)) & 1),
          Array.from({ length: bits.length * 8 }, (_, row) => wanted[row] ?? 0),
        );
      }),
      { numRuns },
    );
  });
});

/** DELTA_BINARY_PACKED in blocks of any size, with the same width for all miniblocks of a block. */
function deltasOf(values: readonly bigint[], blockValues: number, miniblocks: number): number[] {
  const zigzag = (value: bigint): number[] => bigVarint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)));
  const bytes = [
    ...varint(blockValues),
    ...varint(miniblocks),
    ...varint(values.length),
    ...zigzag(values[0] ?? 0n),
  ];
  const inMiniblock = blockValues / miniblocks;
  for (let first = 1; first < values.length; first += blockValues) {
    const deltas = values
      .slice(first, first + blockValues)
      .map((value, k) => BigInt.asIntN(64, value - values[first + k - 1]!));
    const minimum = deltas.reduce((a, b) => (b < a ? b : a));
    const rests = deltas.map((delta) => BigInt.asUintN(64, delta - minimum));
    const width = rests.reduce((a, b) => a | b, 0n).toString(2).length;
    bytes.push(...zigzag(minimum), ...Array.from({ length: miniblocks }, () => width));
    for (let m = 0; m * inMiniblock < rests.length; m++) {
      let packed = 0n;
      for (let k = 0; k < inMiniblock; k++) packed |= (rests[m * inMiniblock + k] ?? 0n) << BigInt(k * width);
      for (let k = 0; k < (inMiniblock * width) / 8; k++, packed >>= 8n) bytes.push(Number(packed & 255n));
    }
  }
  return bytes;
}

function bigVarint(value: bigint): number[] {
  const bytes: number[] = [];
  for (; value >= 128n; value >>= 7n) bytes.push(Number(value & 127n) + 128);
  return [...bytes, Number(value)];
}

describe('deltas of other writers', () => {
  const blocks = fc.constantFrom([128, 1], [128, 4], [256, 8], [256, 2], [512, 4], [1024, 32]);
  const far = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const values = fc.oneof(
    fc.array(far, { maxLength: 300 }),
    fc.array(fc.bigInt({ min: 0n, max: 9n }), { maxLength: 700 }),
  );

  it('are read in blocks of every size, and as by the plain twin if damaged', () => {
    fc.assert(
      fc.property(values, blocks, damage, ([...list], [blockValues, miniblocks], changes) => {
        const page = Uint8Array.from(deltasOf(list, blockValues!, miniblocks!));
        const back = new BigInt64Array(list.length);
        expect(simdDelta.decodeDelta(page, 0, back, list.length)).toBe(page.length);
        expect([...back]).toEqual(list);
        const broken = damaged(page, changes);
        const wanted = new BigInt64Array(list.length);
        const read = plainDelta.decodeDelta(broken, 0, wanted, list.length);
        both((lay) => {
          const got = lay(new BigInt64Array(list.length));
          expect(simdDelta.decodeDelta(lay(broken), 0, got, list.length)).toBe(read);
          if (read >= 0) expect(got).toEqual(wanted);
        });
      }),
      { numRuns },
    );
  });

  it('of strings with common prefixes are joined, or rejected, as by the plain twin', () => {
    const word = fc
      .array(fc.constantFrom('a', 'b', 'ab', 'longer piece'), { maxLength: 12 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 60 }),
        damage,
        fc.boolean(),
        fc.nat(400),
        (words, changes, isWhole, bytesMax) => {
          const prefixes = words.map((text, i) => {
            const before = words[i - 1] ?? '';
            let shared = 0;
            while (shared < Math.min(before.length, text.length) && before[shared] === text[shared]) shared++;
            return shared;
          });
          const suffixes = words.map((text, i) => text.slice(prefixes[i]));
          const page = Uint8Array.from([
            ...deltasOf(prefixes.map(BigInt), 128, 4),
            ...deltasOf(
              suffixes.map(({ length }) => BigInt(length)),
              128,
              4,
            ),
            ...Buffer.from(suffixes.join('')),
          ]);
          const source = isWhole ? page : damaged(page, changes);
          const most = isWhole ? words.join('').length : bytesMax;
          const wantedOffsets = new Uint32Array(words.length + 1);
          const wanted = plainDelta.decodePrefixed(source, words.length, most, wantedOffsets);
          if (isWhole) expect(Buffer.from(wanted!).toString()).toBe(words.join(''));
          both((lay) => {
            const offsets = lay(new Uint32Array(words.length + 1));
            const got = simdDelta.decodePrefixed(lay(source), words.length, most, offsets);
            expect(got === null).toBe(wanted === null);
            if (got === null) return;
            expect(Buffer.compare(got, wanted!)).toBe(0);
            expect([...offsets]).toEqual([...wantedOffsets]);
          });
        },
      ),
      { numRuns },
    );
  });
});

describe('stored numbers', () => {
  const int = fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.bigInt({ min: -2000n, max: 2000n }),
    fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 31n, -1n, 0n),
  );
  const ints = fc.array(int, { maxLength: 70 });
  const ones = (rows: number): Uint8Array => new Uint8Array((rows + 7) >> 3).fill(255);
  const bitsOf = (bits: Uint8Array, rows: number): boolean[] =>
    Array.from({ length: rows }, (_, row) => ((bits[row >> 3]! >> (row & 7)) & 1) === 1);

  it('are widened from 32 bits, wrapped to 32 bits, divided and multiplied like in a naive loop', () => {
    const floor = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;
    fc.assert(
      fc.property(
        ints,
        fc.constantFrom(1, 2, 1000, 1_000_000, 86_400_000),
        fc.boolean(),
        (list, factor, isUnsigned) => {
          const as32 = (value: bigint): bigint =>
            isUnsigned ? BigInt.asUintN(32, value) : BigInt.asIntN(32, value);
          const stored = new Uint8Array(3 + list.length * 4);
          list.forEach((value, i) =>
            Buffer.from(stored.buffer).writeUInt32LE(Number(BigInt.asUintN(32, value)), 3 + 4 * i),
          );
          both((lay) => {
            const values = lay(new BigInt64Array(list.length));
            numbers.widenInt32(lay(stored), 3, list.length, values, isUnsigned);
            expect([...values]).toEqual(list.map(as32));
            const wrapped = lay(BigInt64Array.from(list));
            numbers.wrapInt32(wrapped, isUnsigned);
            expect([...wrapped]).toEqual(list.map(as32));
            const divided = lay(BigInt64Array.from(list));
            numbers.divideDown(divided, factor);
            expect([...divided]).toEqual(list.map((value) => floor(value, BigInt(factor))));
            const fits = list.map(
              (value) => BigInt.asIntN(64, value * BigInt(factor)) === value * BigInt(factor),
            );
            const multiplied = lay(BigInt64Array.from(list));
            const bits = lay(ones(list.length));
            const dropped = numbers.multiply(multiplied, factor, bits);
            // The least integer has no positive counterpart, and is left out too.
            const isKept = fits.map((does, i) => does && list[i] !== -(2n ** 63n));
            expect(dropped).toBe(isKept.filter((kept) => !kept).length);
            expect(bitsOf(bits, list.length)).toEqual(isKept);
            expect([...multiplied]).toEqual(
              list.map((value, i) => (isKept[i] ? value * BigInt(factor) : 0n)),
            );
            expect(numbers.noneNegative(lay(BigInt64Array.from(list)))).toBe(
              list.every((value) => value >= 0n),
            );
            const floats = numbers.divideToFloats(lay(BigInt64Array.from(list)), factor);
            expect([...floats]).toEqual(list.map((value) => Number(value) / factor));
          });
        },
      ),
      { numRuns },
    );
  });

  it('that are not finite are dropped, and floats are widened', () => {
    fc.assert(
      fc.property(fc.array(fc.float(), { maxLength: 70 }), (list) => {
        both((lay) => {
          const values = lay(new Float64Array(list.length));
          numbers.widenFloat32(lay(new Uint8Array(Float32Array.from(list).buffer)), 0, list.length, values);
          expect([...values]).toEqual(list);
          const bits = lay(ones(list.length));
          const finite = list.map(Number.isFinite);
          expect(numbers.dropInfinite(values, bits)).toBe(finite.filter((is) => !is).length);
          expect(bitsOf(bits, list.length)).toEqual(finite);
          expect([...values]).toEqual(list.map((value) => (Number.isFinite(value) ? value : 0)));
        });
      }),
      { numRuns },
    );
  });

  it('are assembled from byte streams', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.integer({ min: 1, max: 17 }),
        fc.nat(5),
        (bytes, width, begin) => {
          const at = Math.min(begin, bytes.length);
          const count = Math.floor(Math.max(0, bytes.length - at) / width);
          const wanted = Uint8Array.from(
            { length: count * width },
            (_, i) => bytes[at + (i % width) * count + Math.floor(i / width)]!,
          );
          both((lay) => {
            const got = lay(new Uint8Array(count * width));
            numbers.joinStreams(lay(bytes), at, count, width, got);
            expect(Buffer.compare(got, wanted)).toBe(0);
          });
        },
      ),
      { numRuns },
    );
  });
});
