import { ProblemError } from '../http/problem.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

const percent = 0x25;
const plus = 0x2b;
const blank = 0x20;

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/**
 * Percent-decodes one piece of a request target. Both escaped and raw bytes are UTF-8. With `plusIsBlank`, which query strings need because
 * form encoders write blanks as `+`, an unescaped `+` is a blank.
 *
 * Throws a `ProblemError` (400) that names `what` for a bad escape or for bytes that are not UTF-8. Transports replace raw bytes that are
 * not UTF-8 by U+FFFD, so an unescaped U+FFFD is refused as well; an escaped one is an ordinary character.
 */
export function percentDecode(text: string, plusIsBlank: boolean, what: string, parameter?: string): string {
  if (isPlain(text)) return text;
  if (text.includes('\uFFFD')) throw new ProblemError(400, `${what} is not valid UTF-8`, { parameter });
  const bytes = encoder.encode(text);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === percent) {
      const high = i + 2 < bytes.length ? hexDigit(bytes[i + 1]!) : -1;
      const low = i + 2 < bytes.length ? hexDigit(bytes[i + 2]!) : -1;
      if (high < 0 || low < 0) throw badEscape(bytes, i, what, parameter);
      bytes[length++] = high * 16 + low;
      i += 2;
    } else {
      bytes[length++] = plusIsBlank && byte === plus ? blank : byte;
    }
  }
  try {
    return utf8.decode(bytes.subarray(0, length));
  } catch (cause) {
    throw new ProblemError(400, `${what} is not valid UTF-8 once its percent-escapes are decoded`, {
      parameter,
      cause,
    });
  }
}

/** Whether a text needs no decoding, as nearly every key and value. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === percent || code === plus || code > 0x7e) return false;
  }
  return true;
}

function badEscape(bytes: Uint8Array, at: number, what: string, parameter: string | undefined): ProblemError {
  const shown = new TextDecoder().decode(bytes.subarray(at, at + 3));
  return new ProblemError(
    400,
    `${what} has a bad percent-escape ${JSON.stringify(shown)}: expected "%" and two hexadecimal digits ("%25" is a percent sign)`,
    { parameter },
  );
}
