import { describe, expect, it } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import type { BlockVerdict } from '../../engine/kernels/block-search.js';
import { kernelNeedle, type KernelNeedle } from '../../engine/kernels/needle.js';
import { searchPlainStrings } from '../../engine/kernels/plain-strings.js';
import { both } from './lay.js';
import * as plain from './plain/block-search.js';

const numRuns = caseCount(75, 5000);

/** Strings in Parquet's PLAIN encoding. */
function stored(strings: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    strings.flatMap((text) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(text.length);
      return [length, text];
    }),
  );
}

function verdicts(source: Uint8Array, count: number, needles: readonly KernelNeedle[]): Set<BlockVerdict> {
  const seen = new Set<BlockVerdict>();
  both((lay) => seen.add(searchPlainStrings(lay(Uint8Array.from(source)), count, needles)));
  return seen;
}

/** Strings whose lengths are bytes that texts contain too, empty strings, and strings longer than one search step. */
const string = fc.oneof(
  fc.string({ maxLength: 6 }).map((text) => new TextEncoder().encode(text)),
  fc.constantFrom(0, 1, 0x21, 0x61, 0x62, 0x6161, 70_000).map((length) => new Uint8Array(length).fill(0x61)),
  fc.array(fc.constantFrom(0, 0x61, 0x41, 0x62), { maxLength: 40 }).map((bytes) => Uint8Array.from(bytes)),
  fc.uint8Array({ maxLength: 200 }),
);
const columns = fc
  .tuple(fc.array(string, { maxLength: 10 }), fc.array(fc.nat(9), { maxLength: 60 }), fc.constantFrom(1, 30))
  .map(([parts, order, times]) => {
    const some = order.map((i) => parts[i] ?? new Uint8Array(0));
    return Array.from({ length: times }, () => some).flat();
  });

/** Bytes from any place of the page: of one string, of two with the length between them, of a length, or of no page. */
const needle = fc.record({
  at: fc.nat(),
  length: fc.constantFrom(1, 2, 3, 4, 5, 6, 12, 17, 40, 4096),
  isThere: fc.boolean(),
  caseless: fc.boolean(),
});

function needleOf(
  page: Uint8Array,
  { at, length, isThere, caseless }: typeof needle extends fc.Arbitrary<infer T> ? T : never,
): KernelNeedle {
  const from = page.length === 0 ? 0 : at % page.length;
  const bytes = Uint8Array.from(page.subarray(from, from + length));
  if (!isThere || bytes.length === 0) return kernelNeedle(Buffer.from('nowhere~'), caseless);
  const folded = bytes.map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte));
  return kernelNeedle(caseless ? folded : bytes, caseless);
}

describe('needles in PLAIN strings, each of which follows its length', () => {
  it('are found within a string, and neither in a length nor across the end of a string', () => {
    let crossing = 0;
    fc.assert(
      fc.property(columns, fc.array(needle, { minLength: 1, maxLength: 3 }), (strings, wanted) => {
        const page = stored(strings);
        const needles = wanted.map((one) => needleOf(page, one));
        const isThere = strings.some((text) => plain.searchText(text, needles) === 'may');
        if (!isThere && plain.searchText(page, needles) === 'may') crossing++;
        const seen = verdicts(page, strings.length, needles);
        // For a text that is periodic throughout, the kernel may leave the decision to the caller.
        if (!isThere && page.length > 65_536) seen.delete('may');
        expect([...seen].filter((verdict) => verdict !== (isThere ? 'may' : 'none'))).toEqual([]);
      }),
      { numRuns },
    );
    if (isWhole) expect(crossing).toBeGreaterThan(0);
  });

  it('are not confused with the bytes of lengths, however many of those match', () => {
    const strings = Array.from({ length: 20_000 }, (_, i) => Buffer.alloc(i % 50 === 0 ? 121 : 33, 's'));
    const page = stored(strings);
    for (const text of ['sy', 'y', '!', 's!', '\0\0\0s', '\0']) {
      const needles = [kernelNeedle(Buffer.from(text), false)];
      expect(plain.searchText(page, needles), text).toBe('may');
      expect(verdicts(page, strings.length, needles), text).toEqual(new Set(['none']));
    }
    const last = Buffer.from(`${'s'.repeat(90)}y!`);
    const found = stored([...strings, last]);
    for (const text of ['SY', 'y!'])
      expect(
        verdicts(found, strings.length + 1, [kernelNeedle(Buffer.from(text.toLowerCase()), true)]),
      ).toEqual(new Set(['may']));
  });

  it('are searched for in linear time in very many empty strings', () => {
    const page = new Uint8Array(4 * 1024 * 1024);
    const needles = [kernelNeedle(new Uint8Array(4096), false)];
    expect(searchPlainStrings(page, page.length / 4, needles)).toBe('none');
  });

  it('are not found in a page that does not consist of the stated number of strings', () => {
    const change = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(
        columns,
        fc.array(change, { maxLength: 4 }),
        fc.integer({ min: -2, max: 2 }),
        (strings, changes, more) => {
          const page = Uint8Array.from(stored(strings));
          if (page.length > 0) for (const [at, byte] of changes) page[at % page.length] = byte;
          const count = Math.max(0, strings.length + more);
          const parts = split(page, count);
          const needles = [kernelNeedle(Buffer.from('nowhere~'), false)];
          const expected = parts === null ? 'malformed' : plain.searchText(Buffer.concat(parts), needles);
          expect(verdicts(page, count, needles)).toEqual(new Set([expected]));
        },
      ),
      { numRuns },
    );
  });
});

/** The strings of a page; null if it does not consist of that many. */
function split(page: Uint8Array, count: number): Uint8Array[] | null {
  const view = new DataView(page.buffer, page.byteOffset, page.length);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (page.length - at < 4) return null;
    const length = view.getUint32(at, true);
    if (length > page.length - at - 4) return null;
    parts.push(page.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return at === page.length ? parts : null;
}
