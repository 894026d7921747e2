import fc from 'fast-check';

/** Strings as the kernels read them: row r is bytes[offsets[r], offsets[r + 1]), with foreign bytes on both sides. */
export interface Strings {
  readonly rows: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
}

/** Joins strings from the offset `before` on, in a buffer whose other bytes are foreign. */
export function stringsOf(parts: readonly Uint8Array[], before = 0, behind = 0): Strings {
  const offsets = new Uint32Array(parts.length + 1);
  offsets[0] = before;
  parts.forEach((part, row) => (offsets[row + 1] = offsets[row]! + part.length));
  const end = offsets[parts.length]!;
  const bytes = new Uint8Array(end + behind).fill(0x41);
  parts.forEach((part, row) => bytes.set(part, offsets[row]));
  return { rows: parts.length, bytes, offsets };
}

/** A value: bytes of few kinds, so that they repeat, or any bytes; the lengths include those around words and vectors. */
const value = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc
    .array(fc.constantFrom(0x41, 0x61, 0x62, 0x7a, 0x5a, 0xc3), { maxLength: 20 })
    .map((bytes) => Uint8Array.from(bytes)),
  fc
    .constantFrom(0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200)
    .map((n) => new Uint8Array(n).fill(0x61)),
);

/** Columns of strings, most of them long enough that the kernels are called. */
export const stringColumns = fc
  .tuple(
    fc.array(value, { minLength: 0, maxLength: 60 }),
    fc.integer({ min: 1, max: 30 }),
    fc.nat(70),
    fc.nat(70),
  )
  .map(([parts, times, before, behind]) =>
    stringsOf(Array.from({ length: times }, () => parts).flat(), before, behind),
  );
