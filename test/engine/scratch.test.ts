import { describe, expect, it } from 'vitest';
import { lz4BytesMax, lz4Compress, lz4Decompress } from '../../engine/kernels/lz4.js';
import { openScratch, openScratchWithin, withKeptScratch } from '../../engine/core/scratch.js';
import { foreignMemory, sharedMemory, workingOn } from '../../engine/core/shared-memory.js';

/** Compresses the bytes and decompresses them again. */
function thereAndBack(source: Uint8Array): Uint8Array {
  const packed = new Uint8Array(lz4BytesMax(source.length));
  const written = lz4Compress(source, packed);
  const back = new Uint8Array(source.length);
  expect(lz4Decompress(packed.subarray(0, written), back, back.length)).toBe(back.length);
  return back;
}

const text = Buffer.from('a line that repeats itself, and then another\n'.repeat(20_000));

describe('the scratch memory of kernels', () => {
  it('is a spare memory if the memory that another thread lent is too small', () => {
    const memory = sharedMemory();
    const address = memory.allocate(64 * 1024)!;
    const there = foreignMemory(memory.rangeAt(address, 64 * 1024));
    workingOn(there, { address, bytes: 64 * 1024 }, () => {
      expect(openScratchWithin(text.length)).toBeNull();
      expect(openScratch(text.length).memory).not.toBe(memory.memory);
      expect(Buffer.compare(thereAndBack(text), text)).toBe(0);
    });
    memory.free(address);
    expect(openScratch(text.length).memory).toBe(memory.memory);
  });

  it('is a spare memory while a buffer is held that leaves no room for a call', () => {
    withKeptScratch(1024, 1024, (kept) => {
      kept!.fill(7);
      const bytes = 64 * 1024 * 1024;
      expect(openScratchWithin(bytes)).toBeNull();
      expect(Buffer.compare(thereAndBack(text), text)).toBe(0);
      expect(openScratch(bytes).memory).not.toBe(sharedMemory().memory);
      expect(kept!.every((byte) => byte === 7)).toBe(true);
    });
  });

  it('refuses a call that needs more memory than any page does', () => {
    const large = new Uint8Array(150 * 1024 * 1024);
    expect(() => lz4Compress(large, new Uint8Array(lz4BytesMax(large.length)))).toThrow(
      expect.objectContaining({ code: 'limit' }),
    );
  });
});
