/** Up to this many bytes, a loop is faster than a call of `set` with a new view. */
const loopBytesMax = 96;

/**
 * Copies source[start, end) to target[at, …), which must have room. Returns the bitwise or of the bytes, which is below 0x80 if all of them
 * are ASCII. This saves callers a second pass.
 */
export function copyBytes(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  let seen = 0;
  if (end - start <= loopBytesMax) {
    for (let i = start; i < end; i++) {
      const byte = source[i]!;
      target[at++] = byte;
      seen |= byte;
    }
    return seen;
  }
  target.set(source.subarray(start, end), at);
  for (let i = start; i < end; i++) seen |= source[i]!;
  return seen;
}

/**
 * Length of the UTF-8 sequence at `i`, which begins with a byte from 0x80 on. If it is invalid, minus the number of bytes that the WHATWG
 * decoder replaces by one U+FFFD: the longest prefix of a valid sequence, at least one byte.
 */
function utf8SequenceLength(bytes: Uint8Array, i: number, end: number): number {
  const lead = bytes[i]!;
  if (lead < 0xc2 || lead > 0xf4) return -1;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF.
  let low = 0x80;
  let high = 0xbf;
  if (lead === 0xe0) low = 0xa0;
  else if (lead === 0xed) high = 0x9f;
  else if (lead === 0xf0) low = 0x90;
  else if (lead === 0xf4) high = 0x8f;
  for (let k = 1; k < length; k++) {
    if (i + k >= end) return -k;
    const byte = bytes[i + k]!;
    if (byte < low || byte > high) return -k;
    low = 0x80;
    high = 0xbf;
  }
  return length;
}

/** Text after `repairUtf8`. */
export interface RepairedText {
  /** Valid UTF-8. */
  readonly bytes: Uint8Array;
  /** Offset in `bytes` of each U+FFFD that replaces invalid input. */
  readonly replacedAt: readonly number[];
}

/** Replaces each invalid sequence in bytes[start, end) by U+FFFD, as defined in https://encoding.spec.whatwg.org/#utf-8-decoder. */
export function repairUtf8(bytes: Uint8Array, start: number, end: number): RepairedText {
  const out = new Uint8Array((end - start) * repairFactorMax);
  const replacedAt: number[] = [];
  const at = repairUtf8Into(bytes, start, end, out, 0, (place) => replacedAt.push(place));
  return { bytes: out.subarray(0, at), replacedAt };
}

/** An invalid byte becomes three bytes. */
export const repairFactorMax = 3;

/**
 * Like `repairUtf8`, but writes to `out` from `at` on, which must have room for `repairFactorMax` times as many bytes. Calls `replaced`
 * with the offset in `out` of each U+FFFD that replaces invalid input. Returns the end of the text.
 */
export function repairUtf8Into(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
  replaced: (place: number) => void,
): number {
  let i = start;
  while (i < end) {
    const length = bytes[i]! < 0x80 ? 1 : utf8SequenceLength(bytes, i, end);
    if (length > 0) {
      for (let k = 0; k < length; k++) out[at++] = bytes[i + k]!;
      i += length;
      continue;
    }
    replaced(at);
    out[at++] = 0xef;
    out[at++] = 0xbf;
    out[at++] = 0xbd;
    i -= length;
  }
  return at;
}
