import { describe, expect, it } from 'vitest';
import { packedRun } from './packed-run.js';
import * as plainPacking from './plain/bit-packing.js';
import * as plainDelta from './plain/delta.js';
import * as plainDictionary from './plain/dictionary.js';
import * as plainGrams from './plain/grams.js';
import * as plainLz4 from './plain/lz4.js';
import * as plainStrings from './plain/plain-strings.js';
import * as plainBounds from './plain/string-bounds.js';
import { caseCount, fc } from '../cases.js';
import * as simdPacking from '../../engine/kernels/bit-packing.js';
import * as simdDelta from '../../engine/kernels/delta.js';
import * as simdDictionary from '../../engine/kernels/dictionary.js';
import * as simdGrams from '../../engine/kernels/grams.js';
import * as simdLz4 from '../../engine/kernels/lz4.js';
import * as simdStrings from '../../engine/kernels/plain-strings.js';
import * as simdBounds from '../../engine/kernels/string-bounds.js';
import { stringColumns, stringsOf } from './strings.js';
import { expectEqual } from '../expect-equal.js';

const numRuns = caseCount(150, 20_000);
/** Bytes around a target that no kernel may write to. */
const guard = 0xa5;

function guarded(sizeBytes: number): Uint8Array {
  return new Uint8Array(sizeBytes + 96).fill(guard);
}

function expectGuard(bytes: Uint8Array, from: number): void {
  expect(bytes.subarray(from).every((byte) => byte === guard)).toBe(true);
}

/** Bytes with repetitions near and far, in periods of every length. */
const compressible = fc
  .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat({ max: 300 })), { maxLength: 60 })
  .map((pieces) =>
    Uint8Array.from(
      pieces.flatMap(([piece, times]) => Array.from({ length: 1 + times }, () => [...piece]).flat()),
    ),
  );

/** A block of sequences (literals, match distance, matched bytes), followed by the twenty literals that end it. */
function blockOf(sequences: readonly (readonly [number, number, number])[]): Uint8Array {
  const bytes: number[] = [];
  const add = (literals: number, matched: number): void => {
    bytes.push((Math.min(15, literals) << 4) | Math.min(15, Math.max(0, matched - 4)));
    addLength(literals - 15);
    for (let k = 0; k < literals; k++) bytes.push((bytes.length * 73) & 255);
  };
  const addLength = (rest: number): void => {
    if (rest < 0) return;
    for (; rest >= 255; rest -= 255) bytes.push(255);
    bytes.push(rest);
  };
  let made = 0;
  for (const [literals, distance, matched] of sequences) {
    add(literals, matched);
    made += literals;
    // Nearly all distances lie within the output, so that the block is read to its end.
    const offset = made === 0 || distance === 0 ? distance : 1 + (distance % made);
    bytes.push(offset & 255, offset >> 8);
    addLength(matched - 19);
    made += matched;
  }
  add(20, 0);
  return Uint8Array.from(bytes);
}

describe('LZ4', () => {
  const sources = fc.oneof(compressible, fc.uint8Array({ minLength: 200, maxLength: 3000 }));

  it('reads the output of the plain twin and vice versa, and writes nothing outside the target', () => {
    fc.assert(
      fc.property(sources, (source) => {
        for (const [writer, reader] of [
          [simdLz4, plainLz4],
          [plainLz4, simdLz4],
          [simdLz4, simdLz4],
        ] as const) {
          const bytesMax = simdLz4.lz4BytesMax(source.length);
          const target = guarded(bytesMax);
          const written = writer.lz4Compress(source, target);
          expect(written).toBeLessThanOrEqual(bytesMax);
          expectGuard(target, bytesMax);
          const back = guarded(source.length);
          expect(reader.lz4Decompress(target.subarray(0, written), back, source.length)).toBe(source.length);
          expect(Buffer.compare(back.subarray(0, source.length), source)).toBe(0);
          expectGuard(back, source.length);
        }
      }),
      { numRuns },
    );
  });

  it('decompresses periods of every length, with every remainder of the buffer', () => {
    for (let period = 1; period <= 70; period++) {
      for (let length = 256; length < 330; length += 3) {
        const source = Uint8Array.from({ length }, (_, i) => ((i % period) * 73) & 255);
        const target = new Uint8Array(simdLz4.lz4BytesMax(length));
        const written = plainLz4.lz4Compress(source, target);
        const back = new Uint8Array(length);
        expect(simdLz4.lz4Decompress(target.subarray(0, written), back, length)).toBe(length);
        expect(Buffer.compare(back, source)).toBe(0);
      }
    }
  });

  it('decompresses sequences of every length like the plain twin', () => {
    // Around the maximum of a nibble, of one more byte, and of two more bytes.
    const literals = fc.constantFrom(0, 1, 14, 15, 16, 17, 31, 33, 268, 269, 270, 271, 525, 600);
    const matched = fc.constantFrom(4, 5, 17, 18, 19, 20, 32, 33, 48, 272, 273, 274, 275, 530, 700);
    const distance = fc.oneof(
      { arbitrary: fc.constant(0), weight: 1 },
      { arbitrary: fc.integer({ min: 1, max: 40 }), weight: 50 },
      { arbitrary: fc.integer({ min: 41, max: 3000 }), weight: 50 },
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(literals, distance, matched), { maxLength: 40 }),
        fc.nat(3),
        (list, off) => {
          const block = blockOf(list);
          const length = 20 + list.reduce((sum, [count, , repeated]) => sum + count + repeated, 0) - off;
          const back = guarded(length);
          const wanted = new Uint8Array(length);
          const read = plainLz4.lz4Decompress(block, wanted, length);
          expect(simdLz4.lz4Decompress(block, back, length)).toBe(read);
          if (read > 0) expect(Buffer.compare(back.subarray(0, read), wanted)).toBe(0);
          expectGuard(back, length);
        },
      ),
      { numRuns: numRuns * 3 },
    );
  });

  it('finds matches up to the maximum distance and none beyond', () => {
    for (const distance of [65535, 65536, 70_000]) {
      const source = new Uint8Array(distance + 200);
      for (let i = 0; i < source.length; i++) source[i] = Math.imul(i % distance, 2654435761) >>> 13;
      const target = new Uint8Array(simdLz4.lz4BytesMax(source.length));
      const written = simdLz4.lz4Compress(source, target);
      const back = new Uint8Array(source.length);
      expect(plainLz4.lz4Decompress(target.subarray(0, written), back, back.length)).toBe(back.length);
      expect(Buffer.compare(back, source)).toBe(0);
    }
  });

  it('rejects damaged input like the plain twin', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(sources, damage, fc.nat(20), (source, changes, cut) => {
        const target = new Uint8Array(simdLz4.lz4BytesMax(source.length));
        const written = plainLz4.lz4Compress(source, target);
        const block = target.slice(0, Math.max(0, written - cut));
        for (const [at, byte] of changes) if (block.length > 0) block[at % block.length] = byte;
        const length = Math.max(256, source.length);
        const back = guarded(length);
        const wanted = new Uint8Array(length);
        const read = plainLz4.lz4Decompress(block, wanted, length);
        expect(simdLz4.lz4Decompress(block, back, length)).toBe(read);
        if (read > 0) expect(Buffer.compare(back.subarray(0, read), wanted.subarray(0, read))).toBe(0);
        expectGuard(back, length);
      }),
      { numRuns: numRuns * 3 },
    );
  });
});

describe('gram filters', () => {
  it('set the same bits as the plain twin', () => {
    const shapes = fc.tuple(fc.constantFrom(4, 5, 6), fc.constantFrom(10, 13, 20));
    fc.assert(
      fc.property(stringColumns, shapes, fc.nat(), (strings, shape, cut) => {
        const { rows, bytes, offsets } = strings;
        const [gramBytes, gramBits] = shape;
        const from = rows === 0 ? 0 : cut % rows;
        const wanted = {
          grams: new Int32Array(2 ** (gramBits - 5)),
          trigrams: new Int32Array(2 ** (simdGrams.trigramBits - 5)),
        };
        // Bits that are already set stay set.
        wanted.grams[0] = 5;
        wanted.trigrams[1] = -7;
        const got = { grams: wanted.grams.slice(), trigrams: wanted.trigrams.slice() };
        for (const [functions, { grams, trigrams }] of [
          [plainGrams, wanted],
          [simdGrams, got],
        ] as const) {
          functions.addGrams(bytes, offsets, from, rows, gramBytes, gramBits, grams, trigrams);
        }
        expect(Buffer.compare(new Uint8Array(got.grams.buffer), new Uint8Array(wanted.grams.buffer))).toBe(0);
        expect(
          Buffer.compare(new Uint8Array(got.trigrams.buffer), new Uint8Array(wanted.trigrams.buffer)),
        ).toBe(0);
      }),
      { numRuns },
    );
  });

  it('are halved to the same bitmap as by the plain twin', () => {
    const words = fc.oneof(fc.integer(), fc.constantFrom(0, -1, 1, 0x55555555, 0x0aaaaaaa));
    const bitmaps = fc.tuple(
      fc.array(words, { minLength: 1, maxLength: 40 }),
      fc.constantFrom(32, 1024, 4096),
    );
    fc.assert(
      fc.property(bitmaps, ([some, length]) => {
        const bitmap = Int32Array.from({ length }, (_, i) => Math.imul(some[i % some.length]!, (i >> 5) | 1));
        const wanted = new Int32Array(length / 2);
        const got = new Int32Array(length / 2);
        const ones = plainGrams.halveBitmap(bitmap, wanted);
        expect(simdGrams.halveBitmap(bitmap, got)).toBe(ones);
        expectEqual(got, wanted);
        const bits = [...wanted].flatMap((word) =>
          Array.from({ length: 32 }, (_, bit) => (word >>> bit) & 1),
        );
        expect(ones).toBe(bits.filter((bit) => bit === 1).length);
        const isSet = (at: number): number => (bitmap[at >> 5]! >>> (at & 31)) & 1;
        expectEqual(
          bits,
          bits.map((_, at) => isSet(2 * at) | isSet(2 * at + 1)),
        );
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });
});

describe('a squeezed bitmap', () => {
  it('has a bit set exactly if one of the bits that it stands for is set', () => {
    const words = fc.array(fc.oneof(fc.integer(), fc.constantFrom(0, -1, 1)), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(words, fc.constantFrom(8, 1024), fc.constantFrom(5, 6, 7), (some, length, eighths) => {
        const bitmap = Int32Array.from({ length }, (_, i) => Math.imul(some[i % some.length]!, (i >> 5) | 1));
        const wanted = new Int32Array((length * eighths) / 8);
        for (let bit = 0; bit < length * 32; bit++) {
          const at = Math.floor((bit * eighths) / 8);
          if ((bitmap[bit >> 5]! >>> (bit & 31)) & 1) wanted[at >> 5]! |= 1 << (at & 31);
        }
        expectEqual(simdGrams.squeezeBitmap(bitmap, eighths), wanted);
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });
});

describe('text', () => {
  it('is recognised as ASCII, whatever follows it', () => {
    const long = fc.uint8Array({ minLength: 4096, maxLength: 4200, max: 127 });
    const odd = fc.option(fc.tuple(fc.nat(), fc.integer({ min: 128, max: 255 })));
    fc.assert(
      fc.property(long, odd, fc.nat(20), (text, found, cut) => {
        if (found !== null) text[found[0] % text.length] = found[1];
        const bytes = text.subarray(cut, text.length - cut);
        expect(simdGrams.isAscii(bytes)).toBe(bytes.every((byte) => byte < 128));
      }),
      { numRuns },
    );
  });
});

describe('dictionaries', () => {
  it('number strings like the plain twin', () => {
    fc.assert(
      fc.property(
        stringColumns,
        fc.constantFrom(1, 5, 100, 65536),
        ({ rows, bytes, offsets }, entriesMax) => {
          const wanted = { codes: new Uint16Array(rows), firstRows: new Uint32Array(entriesMax) };
          const got = { codes: new Uint16Array(rows), firstRows: new Uint32Array(entriesMax) };
          const distinct = plainDictionary.numberBytes(
            bytes,
            offsets,
            rows,
            entriesMax,
            wanted.codes,
            wanted.firstRows,
          );
          expect(simdDictionary.numberBytes(bytes, offsets, rows, entriesMax, got.codes, got.firstRows)).toBe(
            distinct,
          );
          if (distinct < 0) return;
          expect(got.codes).toEqual(wanted.codes);
          expect(got.firstRows.subarray(0, distinct)).toEqual(wanted.firstRows.subarray(0, distinct));
        },
      ),
      { numRuns },
    );
  });

  it('number words like the plain twin', () => {
    const words = fc.oneof(
      fc.bigInt({ min: -9n, max: 9n }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    );
    fc.assert(
      fc.property(
        fc.array(words, { maxLength: 80 }),
        fc.nat(30),
        fc.constantFrom(3, 65536),
        (some, times, entriesMax) => {
          const values = BigInt64Array.from(Array.from({ length: times + 1 }, () => some).flat());
          const halves = new Int32Array(values.buffer);
          const rows = values.length;
          const wanted = { codes: new Uint16Array(rows), firstRows: new Uint32Array(entriesMax) };
          const got = { codes: new Uint16Array(rows), firstRows: new Uint32Array(entriesMax) };
          const distinct = plainDictionary.numberWords(
            halves,
            rows,
            entriesMax,
            wanted.codes,
            wanted.firstRows,
          );
          expect(simdDictionary.numberWords(halves, rows, entriesMax, got.codes, got.firstRows)).toBe(
            distinct,
          );
          if (distinct < 0) return;
          expect(got.codes).toEqual(wanted.codes);
          expect(got.firstRows.subarray(0, distinct)).toEqual(wanted.firstRows.subarray(0, distinct));
        },
      ),
      { numRuns },
    );
  });

  it('give up a column of ids as early as the plain twin, and number 65536 values', () => {
    const ids = stringsOf(Array.from({ length: 20_000 }, (_, i) => Buffer.from(`id${i}`)));
    const codes = new Uint16Array(65536);
    const firstRows = new Uint32Array(65536);
    expect(simdDictionary.numberBytes(ids.bytes, ids.offsets, ids.rows, 65536, codes, firstRows)).toBe(-1);
    const halves = new Int32Array(2 * 65536);
    for (let row = 1; row < 65536; row++) halves[2 * row] = row - 1;
    expect(simdDictionary.numberWords(halves, 65536, 65536, codes, firstRows)).toBe(65535);
    expect([codes[0], codes[1], codes[2], codes[65535], firstRows[1]]).toEqual([0, 0, 1, 65534, 2]);
  });
});

describe('bounds of strings', () => {
  it('are those of the plain twin, and of a sort', () => {
    fc.assert(
      fc.property(stringColumns, ({ rows, bytes, offsets }) => {
        fc.pre(rows > 0);
        const got = simdBounds.boundRows(bytes, offsets, rows);
        expect(got).toEqual(plainBounds.boundRows(bytes, offsets, rows));
        const row = (i: number): Uint8Array => bytes.subarray(offsets[i], offsets[i + 1]);
        const sorted = Array.from({ length: rows }, (_, i) => i).sort(
          (a, b) => Buffer.compare(row(a), row(b)) || a - b,
        );
        expect(got.minRow).toBe(sorted[0]);
        expect(Buffer.compare(row(got.maxRow), row(sorted.at(-1)!))).toBe(0);
      }),
      { numRuns },
    );
  });
});

describe('codes as bits', () => {
  it('are packed and unpacked like in the plain twin, in every width and length', () => {
    for (let width = 1; width <= 16; width++) {
      for (const count of [0, 1, 7, 8, 255, 256, 257, 263, 264, 271, 272, 300, 1000, 4097]) {
        const codes = Uint16Array.from({ length: count }, (_, i) => (i * 40503) & ((1 << width) - 1));
        const bytes = Math.ceil(count / 8) * width;
        const wanted = guarded(bytes);
        const got = guarded(bytes);
        expect(simdPacking.packCodes(codes, count, width, got, 3)).toBe(
          plainPacking.packCodes(codes, count, width, wanted, 3),
        );
        expect(Buffer.compare(got, wanted)).toBe(0);
        if (width <= 8) {
          const narrow = new Uint8Array(count + 9).fill(guard);
          simdPacking.packCodes(Uint8Array.from(codes), count, width, got.fill(guard), 3);
          expect(Buffer.compare(got, wanted)).toBe(0);
          const run = packedRun(got.subarray(3), count, width);
          simdPacking.decodeHybrid(run, 0, count, width, narrow.subarray(5, 5 + count));
          expect([...narrow.subarray(5, 5 + count)]).toEqual([...codes]);
          expect([...narrow.subarray(0, 5), ...narrow.subarray(5 + count)]).toEqual(
            Array<number>(9).fill(guard),
          );
        }
        const wide = new Uint16Array(count + 9).fill(guard);
        const run = packedRun(got.subarray(3), count, width);
        simdPacking.decodeHybrid(run, 0, count, width, wide.subarray(5, 5 + count));
        expect([...wide.subarray(5, 5 + count)]).toEqual([...codes]);
        expect([...wide.subarray(0, 5), ...wide.subarray(5 + count)]).toEqual(Array<number>(9).fill(guard));
      }
    }
  });
});

describe('deltas', () => {
  const far = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const steps = fc.array(
    fc.oneof(
      fc.bigInt({ min: 0n, max: 40n }),
      fc.bigInt({ min: -(2n ** 33n), max: 2n ** 33n }),
      fc.bigInt({ min: -(2n ** 58n), max: 2n ** 58n }),
      far,
    ),
    { maxLength: 400 },
  );
  const columns = fc
    .tuple(
      far,
      fc.oneof(steps, fc.array(fc.bigInt({ min: -3n, max: 200n }), { minLength: 100, maxLength: 400 })),
    )
    .map(([first, deltas]) => {
      let value = first;
      return BigInt64Array.from([
        first,
        ...deltas.map((delta) => (value = BigInt.asIntN(64, value + delta))),
      ]);
    });

  it('are written like by the plain twin byte for byte, and read back', () => {
    fc.assert(
      fc.property(columns, (values) => {
        const bytesMax = simdDelta.deltaBytesMax(values.length);
        const wanted = guarded(bytesMax);
        const got = guarded(bytesMax);
        const end = plainDelta.encodeDelta(values, values.length, wanted, 2);
        expect(simdDelta.encodeDelta(values, values.length, got, 2)).toBe(end);
        expect(Buffer.compare(got, wanted)).toBe(0);
        const back = new BigInt64Array(values.length);
        expect(simdDelta.decodeDelta(got, 2, back, values.length)).toBe(end);
        expect(back).toEqual(values);
      }),
      { numRuns },
    );
  });

  it('are rejected if damaged, as by the plain twin', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(columns, damage, fc.nat(40), (values, changes, cut) => {
        const target = new Uint8Array(simdDelta.deltaBytesMax(values.length));
        const end = plainDelta.encodeDelta(values, values.length, target, 0);
        const damaged = target.slice(0, Math.max(1, end - cut));
        for (const [at, byte] of changes) damaged[at % damaged.length] = byte;
        const wanted = new BigInt64Array(values.length);
        const got = new BigInt64Array(values.length);
        const read = plainDelta.decodeDelta(damaged, 0, wanted, values.length);
        expect(simdDelta.decodeDelta(damaged, 0, got, values.length)).toBe(read);
        if (read >= 0) expect(got).toEqual(wanted);
      }),
      { numRuns },
    );
  });
});

describe('PLAIN strings', () => {
  it('are written and read as by the plain twin', () => {
    fc.assert(
      fc.property(stringColumns, ({ rows, bytes, offsets }) => {
        const bytesMax = offsets[rows]! - offsets[0]! + 4 * rows;
        const wanted = guarded(bytesMax);
        const got = guarded(bytesMax);
        expect(simdStrings.encodePlainStrings(bytes, offsets, rows, got)).toBe(
          plainStrings.encodePlainStrings(bytes, offsets, rows, wanted),
        );
        expect(Buffer.compare(got, wanted)).toBe(0);
        const back = { bytes: new Uint8Array(bytesMax - 4 * rows), offsets: new Uint32Array(rows + 1) };
        const source = got.subarray(0, bytesMax);
        expect(simdStrings.decodePlainStrings(source, rows, back.bytes, back.offsets)).toBe(
          back.bytes.length,
        );
        expect(Buffer.compare(back.bytes, bytes.subarray(offsets[0], offsets[rows]))).toBe(0);
        expect(back.offsets).toEqual(offsets.map((offset) => offset - offsets[0]!));
      }),
      { numRuns },
    );
  });

  it('are rejected if damaged, as by the plain twin', () => {
    fc.assert(
      fc.property(
        stringColumns,
        fc.nat(),
        fc.nat(255),
        fc.integer({ min: -5, max: 5 }),
        (strings, at, byte, off) => {
          const { rows, bytes, offsets } = strings;
          const encoded = new Uint8Array(offsets[rows]! - offsets[0]! + 4 * rows);
          plainStrings.encodePlainStrings(bytes, offsets, rows, encoded);
          if (encoded.length > 0) encoded[at % encoded.length] = byte;
          const count = Math.max(0, rows + off);
          const room = Math.max(0, encoded.length - 4 * count);
          const wanted = { bytes: new Uint8Array(room), offsets: new Uint32Array(count + 1) };
          const got = { bytes: new Uint8Array(room), offsets: new Uint32Array(count + 1) };
          const read = plainStrings.decodePlainStrings(encoded, count, wanted.bytes, wanted.offsets);
          expect(simdStrings.decodePlainStrings(encoded, count, got.bytes, got.offsets)).toBe(read);
          if (read >= 0) expect(got).toEqual(wanted);
        },
      ),
      { numRuns },
    );
  });
});
