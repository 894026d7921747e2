import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { codeBits, decodeHybrid, packCodes } from '../../engine/kernels/bit-packing.js';
import { packedRun } from '../kernels/packed-run.js';
import { isAscii } from '../../engine/kernels/grams.js';
import { decodeDelta, deltaBytesMax, encodeDelta } from '../../engine/kernels/delta.js';
import { lz4BytesMax, lz4Compress, lz4Decompress } from '../../engine/kernels/lz4.js';
import { decodeLevels, encodeLevels, levelBytesMax } from '../../engine/kernels/validity.js';
import { decodeChunk } from '../../engine/parquet/chunk-decoder.js';
import { encodeChunk } from '../../engine/parquet/chunk-encoder.js';
import { heapEncodeSpace } from '../../engine/parquet/column-space.js';
import { plainColumn } from '../../engine/columns/take.js';
import { openCompressor, openDecompressor, zstdContentBytes } from '../../engine/parquet/compression.js';
import { type ColumnContent, readFooter } from '../../engine/parquet/footer.js';
import { FormatError } from '../../engine/parquet/format.js';
import { batchFromRows } from '../model/rows.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { fileBytes, mixedRows, mixedSchema, sealBatches } from './segment-sample.js';

const numRuns = caseCount(150, 20_000);

/** Bytes with repetitions near and far. */
const compressible = fc
  .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat({ max: 300 })), { maxLength: 40 })
  .map((pieces) =>
    Uint8Array.from(
      pieces.flatMap(([piece, times]) => Array.from({ length: 1 + (times % 60) }, () => [...piece]).flat()),
    ),
  );

describe('LZ4', () => {
  test('decompresses to the original bytes, and writes nothing outside the target', () => {
    fc.assert(
      fc.property(fc.oneof(compressible, fc.uint8Array({ maxLength: 2000 })), (source) => {
        const target = new Uint8Array(lz4BytesMax(source.length));
        const length = lz4Compress(source, target);
        const guarded = new Uint8Array(source.length + 16).fill(0xa5);
        expect(lz4Decompress(target.subarray(0, length), guarded, source.length)).toBe(source.length);
        expect(Buffer.compare(guarded.subarray(0, source.length), source)).toBe(0);
        expect(guarded.subarray(source.length).every((byte) => byte === 0xa5)).toBe(true);
      }),
      { numRuns },
    );
  });

  test('finds matches up to the maximum distance and none beyond', () => {
    for (const distance of [1, 3, 65535, 65536, 70_000]) {
      const source = new Uint8Array(distance + 200);
      for (let i = 0; i < source.length; i++) source[i] = Math.imul(i % distance, 2654435761) >>> 13;
      const target = new Uint8Array(lz4BytesMax(source.length));
      const length = lz4Compress(source, target);
      const back = new Uint8Array(source.length);
      expect(lz4Decompress(target.subarray(0, length), back, back.length)).toBe(back.length);
      expect(Buffer.compare(back, source)).toBe(0);
    }
  });

  test('ends on damaged input, without access outside the buffers', () => {
    fc.assert(
      fc.property(
        compressible,
        fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 5 }),
        (source, edits) => {
          const target = new Uint8Array(lz4BytesMax(source.length));
          const bytes = target.slice(0, lz4Compress(source, target));
          for (const [at, byte] of edits) bytes[at % bytes.length] = byte;
          const guarded = new Uint8Array(source.length + 16).fill(0xa5);
          const length = lz4Decompress(bytes, guarded, source.length);
          expect(length).toBeLessThanOrEqual(source.length);
          expect(guarded.subarray(source.length).every((byte) => byte === 0xa5)).toBe(true);
        },
      ),
      { numRuns },
    );
    expect(lz4Decompress(new Uint8Array(0), new Uint8Array(0), 0)).toBe(-1);
  });
});

test('ZSTD frames state their content size', async () => {
  const compress = await openCompressor('zstd');
  const decompress = await openDecompressor('zstd');
  for (const length of [1, 255, 256, 65_791, 65_792, 1_000_000]) {
    const source = Uint8Array.from({ length }, (_, i) => (i * i) >> 7);
    const frame = compress(source, new Uint8Array(0)).slice();
    expect(zstdContentBytes(frame)).toBe(length);
    const target = new Uint8Array(length);
    expect(decompress(frame, target)).toBe(true);
    expect(Buffer.compare(target, source)).toBe(0);
    expect(decompress(frame, new Uint8Array(length + 1))).toBe(false);
    expect(decompress(frame.subarray(0, frame.length - 3), target)).toBe(false);
  }
});

describe('delta encoding', () => {
  const step = fc.oneof(
    fc.bigInt({ min: -3n, max: 3n }),
    fc.bigInt({ min: -(2n ** 31n), max: 2n ** 31n }),
    fc.bigInt({ min: -(2n ** 33n), max: 2n ** 33n }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  );
  const values = fc
    .tuple(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.array(fc.tuple(step, fc.nat({ max: 200 })), { maxLength: 8 }),
    )
    .map(([first, steps]) => {
      const all = [first];
      for (const [by, times] of steps)
        for (let i = 0; i <= times; i++) all.push(BigInt.asIntN(64, all.at(-1)! + by));
      return BigInt64Array.from(all);
    });

  test('returns every value, including wrap-around', () => {
    fc.assert(
      fc.property(values, (list) => {
        const target = new Uint8Array(deltaBytesMax(list.length) + 3);
        const end = encodeDelta(list, list.length, target, 3);
        expect(end).toBeLessThanOrEqual(target.length);
        const back = new BigInt64Array(list.length);
        expect(decodeDelta(target.subarray(0, end), 3, back, list.length)).toBe(end);
        expect(back).toEqual(list);
      }),
      { numRuns },
    );
  });

  test('ends on damaged input, without access outside the buffers', () => {
    fc.assert(
      fc.property(values, fc.nat(), fc.nat({ max: 255 }), (list, at, byte) => {
        const target = new Uint8Array(deltaBytesMax(list.length));
        const bytes = target.slice(0, encodeDelta(list, list.length, target, 0));
        bytes[at % bytes.length] = byte;
        const end = decodeDelta(bytes, 0, new BigInt64Array(list.length), list.length);
        expect(end).toBeLessThanOrEqual(bytes.length);
      }),
      { numRuns },
    );
  });

  test('takes one or two bytes for each of ascending times', () => {
    const times = BigInt64Array.from(
      { length: 65536 },
      (_, i) => 1767225600000n + BigInt(i * 40 + ((i * 7919) % 37)),
    );
    const target = new Uint8Array(deltaBytesMax(times.length));
    expect(encodeDelta(times, times.length, target, 0)).toBeLessThan(65536 * 1.1);
  });
});

test('codes of every width are packed and unpacked', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 65536 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 300 }),
      (entries, picks) => {
        const codes = Uint16Array.from(picks, (pick) => pick % entries);
        const width = codeBits(entries);
        expect(2 ** width).toBeGreaterThanOrEqual(entries);
        const target = new Uint8Array(codes.length * 2 + 32);
        expect(packCodes(codes, codes.length, width, target, 0)).toBe(Math.ceil(codes.length / 8) * width);
        const back = new Uint16Array(codes.length);
        const run = packedRun(target, codes.length, width);
        expect(decodeHybrid(run, 0, codes.length, width, back)).toBe(codes.length === 0 ? 0 : run.length);
        expect(back).toEqual(codes);
      },
    ),
    { numRuns },
  );
});

test('levels give back the bitmap of nulls, and malformed levels are rejected', () => {
  const runs = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 400 })), {
    minLength: 1,
    maxLength: 20,
  });
  fc.assert(
    fc.property(
      fc.oneof(
        runs.map((list) => list.flatMap(([bit, rows]) => Array.from({ length: rows }, () => bit))),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 600 }),
      ),
      fc.nat(),
      (present, cut) => {
        const bits = new Uint8Array(Math.ceil(present.length / 8));
        present.forEach((bit, row) => (bits[row >> 3]! |= Number(bit) << (row & 7)));
        const target = new Uint8Array(levelBytesMax(present.length));
        const end = encodeLevels(bits, present.length, target);
        const back = new Uint8Array(bits.length);
        expect(decodeLevels(target, 0, end, present.length, back)).toBe(present.filter(Boolean).length);
        expect(back).toEqual(bits);
        expect(decodeLevels(target, 0, cut % end, present.length, new Uint8Array(bits.length))).toBe(-1);
      },
    ),
    { numRuns },
  );
});

test('a non-ASCII byte is found at every offset of a view with every alignment', () => {
  const bytes = new Uint8Array(40);
  for (let from = 0; from < 9; from++) {
    for (let to = from; to < 30; to++) {
      expect(isAscii(bytes.subarray(from, to))).toBe(true);
      for (let at = 0; at < bytes.length; at++) {
        bytes[at] = 0x80;
        expect(isAscii(bytes.subarray(from, to))).toBe(at < from || at >= to);
        bytes[at] = 0;
      }
    }
  }
});

describe('malformed bytes with a valid checksum', () => {
  const edits = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 });

  test('give an error or a column for a column chunk, never a hang or another failure', async () => {
    const batch = batchFromRows(mixedSchema, mixedRows(300));
    const compress = await openCompressor('lz4');
    const decompress = await openDecompressor('lz4');
    const chunks = mixedSchema.fields.map((field, i) => ({
      content: field.type as ColumnContent,
      bytes: encodeChunk(
        plainColumn(batch.columns[i]!),
        field.type === 'time' ? 'ascending' : 'any',
        true,
        compress,
        heapEncodeSpace(64 * 1024),
      ).bytes,
    }));
    fc.assert(
      fc.property(fc.nat({ max: chunks.length - 1 }), edits, (which, list) => {
        const { content, bytes: original } = chunks[which]!;
        const bytes = original.slice();
        // Headers are short and matter most, so half of the edits hit the first bytes.
        for (const [at, byte] of list)
          bytes[at % 2 === 0 ? at % bytes.length : at % Math.min(40, bytes.length)] = byte;
        try {
          expect(decodeChunk(bytes, content, 300, decompress).length).toBe(300);
        } catch (error) {
          expect(error).toBeInstanceOf(FormatError);
        }
      }),
      { numRuns: numRuns * 5 },
    );
  });

  test('give an error or a footer for a footer', async () => {
    const directory = new MemoryDirectory();
    const batch = batchFromRows(mixedSchema, mixedRows(50));
    const entry = await sealBatches(directory, 'a.parquet', mixedSchema, [batch, batch], 'lz4');
    const file = await fileBytes(directory, 'a.parquet');
    const footer = file.subarray(entry.footerOffset, entry.footerOffset + entry.footerBytes - 8);
    expect(readFooter(footer).rows).toBe(100);
    fc.assert(
      fc.property(edits, (list) => {
        const bytes = footer.slice();
        for (const [at, byte] of list) bytes[at % bytes.length] = byte;
        try {
          readFooter(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(FormatError);
        }
      }),
      { numRuns: numRuns * 5 },
    );
  });
});
