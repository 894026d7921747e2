/** Limit on the bytes of a line that a message shows. */
const shownBytesMax = 200;

const controlCharacters = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** The beginning of a line as text that is safe for a terminal: control characters are escaped. */
export function shownLine(line: Uint8Array): string {
  const cut = line.length > shownBytesMax;
  // As a stream, so that a character that is cut in half is left out instead of shown as U+FFFD.
  const text = new TextDecoder().decode(line.subarray(0, shownBytesMax), { stream: cut });
  const escaped = text.replace(controlCharacters, (character) => {
    const code = character.codePointAt(0)!;
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
  return cut ? `${escaped}… (${line.length} bytes)` : escaped;
}

/** Quotes a line as one word for a shell; null where it is too long or has characters that a terminal does not pass on. */
export function shellWord(line: Uint8Array): string | null {
  if (line.length > shownBytesMax || line.length === 0) return null;
  const text = new TextDecoder().decode(line);
  if (text.search(controlCharacters) >= 0 || text.includes('\ufffd')) return null;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Describes what was expected at a position of the line bytes[start, end). Columns count characters from 1. */
export function expectedAt(
  bytes: Uint8Array,
  start: number,
  end: number,
  at: number,
  expected: string,
): string {
  let column = 1;
  // Count only the first byte of each character.
  for (let i = start; i < at; i++) if ((bytes[i]! & 0xc0) !== 0x80) column++;
  return `at column ${column}${at === end ? ', its end,' : ''} expected ${expected}`;
}

/** Position after the blanks, tabs and line ends at `start`, at most `end`. */
export function skipSpace(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d)) break;
    at++;
  }
  return at;
}
