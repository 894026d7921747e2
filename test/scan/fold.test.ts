import { describe, expect, it } from 'vitest';
import {
  foldCodePoint,
  foldedBytesMax,
  foldRange,
  foldNeedle,
  foldText,
  hasCaseVariants,
  hasFoldingToAscii,
} from '../../engine/core/fold.js';
import { foldBeyondAscii } from '../../engine/kernels/grams.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Every code point that this Node knows except surrogates. An older Node knows fewer than the table. */
function assignedPoints(): number[] {
  const points: number[] = [];
  for (let point = 0; point <= 0x10ffff; point++) {
    if (point >= 0xd800 && point < 0xe000) continue;
    if (!/\p{Cn}/u.test(String.fromCodePoint(point))) points.push(point);
  }
  return points;
}

/** The bytes with all characters except ASCII folded in place; null where that would change a length. */
function foldedBeyondAscii(bytes: Uint8Array): Uint8Array | null {
  const target = new Uint8Array(bytes.length);
  return foldBeyondAscii(bytes, target) ? target : null;
}

describe('fold', () => {
  const points = assignedPoints();

  it('maps exactly the code points to one that /iu treats as equal', () => {
    const classes = new Map<number, number[]>();
    for (const point of points) {
      const folded = foldCodePoint(point);
      const members = classes.get(folded);
      if (members === undefined) classes.set(folded, [point]);
      else members.push(point);
    }
    const cased = points.filter((point) =>
      /[\p{CWCF}\p{CWL}\p{CWU}\p{CWT}]/u.test(String.fromCodePoint(point)),
    );
    const text = cased.map((point) => String.fromCodePoint(point)).join('');
    for (const point of cased) {
      const equal = text.match(new RegExp(`\\u{${point.toString(16)}}`, 'giu')) ?? [];
      const members = classes.get(foldCodePoint(point))!;
      expect(equal.map((match) => match.codePointAt(0))).toEqual(members);
      expect(hasCaseVariants(point)).toBe(members.length > 1);
    }
    const uncased = new Set(cased);
    for (const point of points)
      if (!uncased.has(point) && foldCodePoint(point) !== point) expect.fail(`${point}`);
  });

  it('is idempotent, gives the same for text and bytes, and stays within its limit', () => {
    for (const point of points) {
      const text = String.fromCodePoint(point);
      const bytes = encoder.encode(text);
      const output = new Uint8Array(foldedBytesMax(bytes.length));
      const folded = decoder.decode(output.subarray(0, foldRange(bytes, 0, bytes.length, output, 0)));
      if (folded !== foldText(text) || foldText(folded) !== folded) expect.fail(`U+${point.toString(16)}`);
    }
    const growing = encoder.encode('\u023a'.repeat(1000));
    const output = new Uint8Array(foldedBytesMax(growing.length));
    expect(foldRange(growing, 0, growing.length, output, 0)).toBe(3000);
  });

  it('folds characters in place as in a copy, unless that would change their length', () => {
    const lengthOf = (point: number): number => encoder.encode(String.fromCodePoint(point)).length;
    const changing = points.filter((point) => {
      const folded = foldCodePoint(point);
      return folded !== point && lengthOf(folded) !== lengthOf(point);
    });
    const isChanging = new Set(changing);
    // All code points that fold, and some of the many that don't.
    const alike = points
      .filter((point, i) => !isChanging.has(point) && (foldCodePoint(point) !== point || i % 32 === 0))
      .map((point) => String.fromCodePoint(point));
    // At each distance from the beginning of a word, and with more than a word of ASCII in between.
    for (const between of ['', 'a', 'Zz', '...', 'Many Letters']) {
      const bytes = encoder.encode(alike.join(between));
      const output = new Uint8Array(foldedBytesMax(bytes.length));
      const wanted = output.subarray(0, foldRange(bytes, 0, bytes.length, output, 0));
      const folded = foldedBeyondAscii(bytes)!;
      const isAsciiKept = bytes.every((byte, i) => byte >= 0x80 || folded[i] === byte);
      expect(isAsciiKept).toBe(true);
      const lower = folded.map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte));
      expect(Buffer.compare(lower, wanted)).toBe(0);
    }
    expect(changing).toContain(0x212a);
    // Each one separately, since the position makes no difference.
    for (const point of changing)
      expect(foldedBeyondAscii(encoder.encode(`some text ${String.fromCodePoint(point)}`))).toBeNull();
    for (const text of ['', 'A', 'ABCDE']) {
      const bytes = encoder.encode(text);
      expect(foldedBeyondAscii(bytes)).toEqual(bytes);
    }
    // The end of the text may be inside a character.
    for (const whole of ['\u0416', '\u1E9B', '\u{10400}']) {
      for (const between of ['', 'Fifteen letters', 'Sixteen letters.']) {
        const bytes = encoder.encode(`${between}${whole}`).subarray(0, -1);
        expect(foldedBeyondAscii(bytes)).toEqual(bytes);
      }
    }
  });

  it('folds to ASCII only the characters that it reports', () => {
    for (const point of points) {
      if (point >= 0x80 && foldCodePoint(point) < 0x80) expect([0x17f, 0x212a]).toContain(point);
    }
    expect(hasFoldingToAscii(encoder.encode('plain Ångström'))).toBe(false);
    expect(hasFoldingToAscii(encoder.encode('300 \u212a'))).toBe(true);
    expect(hasFoldingToAscii(encoder.encode('Wachſtube'))).toBe(true);
    expect(decoder.decode(foldNeedle('ſ\u212aÅẞİ'))).toBe('skåßİ');
  });

  it('copies invalid UTF-8 unchanged', () => {
    const broken = Uint8Array.of(0x41, 0xff, 0xc3, 0x42, 0xe2, 0x84);
    const output = new Uint8Array(foldedBytesMax(broken.length));
    expect(foldRange(broken, 0, broken.length, output, 0)).toBeGreaterThan(0);
    expect(output[1]).toBe(0xff);
  });
});
