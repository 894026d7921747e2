import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { BlockSearch, searchRoomBytes, type BlockVerdict } from '../../engine/kernels/block-search.js';
import { lz4BytesMax } from '../../engine/kernels/lz4.js';
import { kernelNeedle, type KernelNeedle } from '../../engine/kernels/needle.js';
import { inShared } from './lay.js';
import * as plain from './plain/block-search.js';
import { lz4Compress } from './plain/lz4.js';

const numRuns = caseCount(75, 5000);

function compressed(text: Uint8Array): Uint8Array {
  const target = new Uint8Array(lz4BytesMax(text.length));
  return target.slice(0, lz4Compress(text, target));
}

/** The verdicts on a block that arrives in pieces of these sizes, the last of which is repeated. */
function verdictOf(
  block: Uint8Array,
  length: number | null,
  needles: readonly KernelNeedle[],
  room: Uint8Array,
  pieces: readonly number[],
): BlockVerdict {
  const search = new BlockSearch(block, length, needles, room);
  let upTo = 0;
  for (let i = 0; ; i++) {
    upTo = Math.min(block.length, upTo + pieces[Math.min(i, pieces.length - 1)]!);
    const verdict = search.search(upTo);
    if (verdict !== 'none' || upTo === block.length) return verdict;
  }
}

function verdicts(
  block: Uint8Array,
  length: number | null,
  needles: readonly KernelNeedle[],
  pieces: readonly number[],
): Set<BlockVerdict> {
  const seen = new Set<BlockVerdict>();
  inShared((lay) => {
    const room = lay(new Uint8Array(searchRoomBytes(needles)));
    seen.add(verdictOf(lay(block), length, needles, room, pieces));
  });
  return seen;
}

/** Building blocks of many kinds of texts: repeated near and far, across many windows, and not repeated. */
const part = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ maxLength: 40 }).map((text) => new TextEncoder().encode(text)),
  fc.tuple(fc.nat(255), fc.constantFrom(1, 5, 300, 70_000)).map(([byte, n]) => new Uint8Array(n).fill(byte)),
  fc.tuple(fc.integer(), fc.constantFrom(10, 400, 66_000, 200_000)).map(([seed, n]) => noise(seed, n)),
);
const texts = fc
  .tuple(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(11), { maxLength: 30 }))
  .map(([parts, order]) => Buffer.concat(order.map((i) => parts[i] ?? new Uint8Array(0))));
const pieceSizes = fc.array(fc.constantFrom(1, 2, 7, 100, 273, 274, 275, 5000, 131_072), {
  minLength: 1,
  maxLength: 4,
});
const sized = pieceSizes.map((sizes) => [...sizes, 9000]);

function noise(seed: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed | 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}

/** A needle taken from the text, or one that is probably absent. */
function needleOf(text: Uint8Array, at: number, length: number, isThere: boolean): KernelNeedle {
  const from = text.length === 0 ? 0 : at % text.length;
  const bytes = text.slice(from, from + length);
  const needle = bytes.length === 0 || !isThere ? Buffer.from('nowhere~', 'latin1') : bytes;
  return kernelNeedle(Uint8Array.from(needle), false);
}

describe('needles in a page that arrives in pieces', () => {
  it('are found as the plain twin finds them, in a decompressed LZ4 block and in plain text', () => {
    const needle = fc.tuple(fc.nat(), fc.constantFrom(1, 2, 12, 16, 17, 100, 4096), fc.boolean());
    fc.assert(
      fc.property(texts, fc.array(needle, { minLength: 1, maxLength: 3 }), sized, (text, wanted, pieces) => {
        const needles = wanted.map(([at, length, isThere]) => needleOf(text, at, length, isThere));
        const expected = plain.searchText(text, needles);
        const block = compressed(text);
        expect(plain.searchLz4(block, text.length, needles)).toBe(expected);
        for (const seen of [
          verdicts(block, text.length, needles, pieces),
          verdicts(text, null, needles, pieces),
        ]) {
          // For a text that is periodic throughout, the kernel may leave the decision to the caller.
          if (expected === 'none') seen.delete('may');
          else expect(seen).toEqual(new Set(['may']));
          expect([...seen].filter((verdict) => verdict !== expected)).toEqual([]);
        }
      }),
      { numRuns },
    );
  });

  it('are found across the pieces that are searched, in either case', () => {
    const needles = [kernelNeedle(Buffer.from('request 0123456789abcdef'), true)];
    for (let before = 190_000; before < 192_000; before += 7) {
      const text = Buffer.concat([noise(before, before), Buffer.from('REQUEST 0123456789ABCDEF')]);
      expect(verdicts(compressed(text), text.length, needles, [100_000])).toEqual(new Set(['may']));
    }
  });

  it('are not found in a malformed block, and nothing is written outside the buffer', () => {
    const needles = [kernelNeedle(Buffer.from('nowhere~'), false)];
    const change = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(
        texts,
        fc.array(change, { maxLength: 6 }),
        fc.nat(3),
        sized,
        (text, changes, cut, pieces) => {
          const whole = compressed(text);
          const block = whole.slice(0, Math.max(0, whole.length - cut));
          for (const [at, byte] of changes) if (block.length > 0) block[at % block.length] = byte;
          const wanted = plain.searchLz4(block, text.length, needles);
          const seen = verdicts(block, text.length, needles, pieces);
          if (wanted === 'malformed') expect(seen.has('none')).toBe(false);
          else if (wanted === 'may') expect(seen).toEqual(new Set(['may']));
          else expect(seen.has('malformed')).toBe(false);
        },
      ),
      { numRuns },
    );
  });

  it('are not found in a block whose length differs from the stated one', () => {
    const needles = [kernelNeedle(Buffer.from('nowhere~'), false)];
    for (const text of [noise(5, 700_000), new Uint8Array(700_000), noise(9, 100)]) {
      const block = compressed(text);
      for (const off of [-1, 1, -99, 300_000])
        expect(verdicts(block, text.length + off, needles, [131_072])).toEqual(new Set(['malformed']));
    }
  });
});
