import { type BatchBuilder, lineBytesMax } from '../../engine/index.js';
import type { Encoding } from '../definition/definition.js';
import { OuterDecoder, type RecordDecoder, type RejectLine } from './line-decoder.js';
import type { LongRecord, RecordEnds } from './line-framing.js';

const lineFeed = 0x0a;

/** The characters of windows-1252 in place of the control characters 0x80 to 0x9f of Latin-1 (https://encoding.spec.whatwg.org/#windows-1252). */
const windowsCharacters = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** The encoding that a byte order mark at the beginning of content tells; undefined without one. */
function markedEncoding([first, second]: Uint8Array): Encoding | 'utf-8' | undefined {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xef && second === 0xbb ? 'utf-8' : undefined;
}

/** The encoding of content by its first bytes, else the given one. Undefined for UTF-8. */
export function encodingOf(head: Uint8Array, given: Encoding | undefined): Encoding | undefined {
  const marked = markedEncoding(head);
  return marked === 'utf-8' ? undefined : (marked ?? given);
}

/** Bytes of a character, or of half of one. */
function unitBytes(encoding: Encoding): 1 | 2 {
  return encoding === 'utf-16le' || encoding === 'utf-16be' ? 2 : 1;
}

/** Text of content in an encoding as UTF-8. Halves of surrogate pairs become U+FFFD; `replaced` is their number. */
export function reencoded(
  content: Uint8Array,
  encoding: Encoding,
): { readonly bytes: Uint8Array; readonly replaced: number } {
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.length);
  if (unitBytes(encoding) === 1) {
    const text = buffer.toString('latin1');
    const characterOf = (control: string): string => windowsCharacters[control.charCodeAt(0) - 0x80]!;
    const all = encoding === 'latin1' ? text : text.replace(/[\u0080-\u009f]/g, characterOf);
    return { bytes: Buffer.from(all), replaced: 0 };
  }
  const text = (encoding === 'utf-16le' ? buffer : Buffer.from(buffer).swap16()).toString('utf16le');
  return { bytes: Buffer.from(text), replaced: text.match(/\p{Surrogate}/gu)?.length ?? 0 };
}

/** Number of UTF-16 units in bytes[start, end), which is UTF-8. */
function unitsIn(bytes: Uint8Array, start: number, end: number): number {
  let units = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if ((byte & 0xc0) !== 0x80) units += byte >= 0xf0 ? 2 : 1;
  }
  return units;
}

/** End of the whole characters in bytes[start, end): without half a unit, and without the first half of a pair. */
function wholeCharacters(bytes: Uint8Array, start: number, end: number, encoding: Encoding): number {
  if (unitBytes(encoding) === 1) return end;
  const whole = end - ((end - start) & 1);
  const high = whole > start ? bytes[encoding === 'utf-16le' ? whole - 1 : whole - 2]! : 0;
  return high >= 0xd8 && high < 0xdc ? whole - 2 : whole;
}

/** Searches the last byte of a line feed in UTF-16 over pieces, the first of which begins with a unit. */
class WideLineFeed {
  #isOdd = false;
  #before = -1;

  constructor(private readonly isLittle: boolean) {}

  find(piece: Uint8Array): number {
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at]!;
      const [low, high] = this.isLittle ? [this.#before, byte] : [byte, this.#before];
      if (this.#isOdd && low === lineFeed && high === 0) return at;
      this.#isOdd = !this.#isOdd;
      this.#before = byte;
    }
    return -1;
  }
}

/** Length of the first line of content, with its line feed. */
export function lineEndIn(content: Uint8Array, encoding: Encoding): number {
  const isWide = unitBytes(encoding) === 2;
  const last = isWide ? new WideLineFeed(encoding === 'utf-16le').find(content) : content.indexOf(lineFeed);
  return last < 0 ? content.length : last + 1;
}

/** Finds the ends of records in content that is not UTF-8. Positions are those of the content. */
export class ReencodedEnds implements RecordEnds {
  readonly timeoutMs: number | null;

  constructor(
    private readonly ends: RecordEnds,
    readonly encoding: Encoding,
  ) {
    this.timeoutMs = ends.timeoutMs;
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const { encoding } = this;
    const content = bytes.subarray(start, wholeCharacters(bytes, start, end, encoding));
    const text = reencoded(content, encoding).bytes;
    return start + unitBytes(encoding) * unitsIn(text, 0, this.ends.wholeTo(text, 0, text.length));
  }

  get isWide(): boolean {
    return unitBytes(this.encoding) === 2;
  }

  endsLine(bytes: Uint8Array, end: number): boolean {
    if (!this.isWide) return bytes[end - 1] === lineFeed;
    const last = bytes.subarray(Math.max(0, end - 2), end);
    return new WideLineFeed(this.encoding === 'utf-16le').find(last) === 1;
  }

  long(searchedBytes: number, beginning: Uint8Array): LongRecord {
    if (!this.isWide) return this.ends.long(searchedBytes, beginning);
    const search = new WideLineFeed(this.encoding === 'utf-16le');
    const from = Math.max(searchedBytes - (searchedBytes & 1), lineBytesMax);
    return { from, find: (piece) => search.find(piece) };
  }
}

/** Decodes content that is not UTF-8 by the decoder for UTF-8. What is rejected is kept as UTF-8. */
export class ReencodingDecoder extends OuterDecoder<RecordDecoder> {
  constructor(
    lines: RecordDecoder,
    private readonly encoding: Encoding,
  ) {
    super(lines);
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const { encoding } = this;
    const whole = wholeCharacters(bytes, start, end, encoding);
    const text = reencoded(bytes.subarray(start, whole), encoding);
    let known = { text: 0, content: start };
    const placeOf = (at: number): number => {
      if (at < known.text) known = { text: 0, content: start };
      known = {
        text: at,
        content: known.content + unitBytes(encoding) * unitsIn(text.bytes, known.text, at),
      };
      return known.content;
    };
    const rejectText: RejectLine = (reason, from, to, kept, before) =>
      reject(reason, placeOf(from), placeOf(to), kept ?? text.bytes.slice(from, to), before);
    const reached = this.lines.decode(text.bytes, 0, text.bytes.length, builder, rejectText);
    // Half a character at the end of the content is no text.
    if (reached === text.bytes.length) {
      this.lines.counters.replacedBytes += text.replaced;
      return end;
    }
    return placeOf(reached);
  }
}
