import { crc32 } from 'node:zlib';
import { DamageError } from '../../terms/errors.js';
import { otherFormat } from './format-version.js';

/** The magic word of a file of checked text, and the format version that this program reads and writes. */
export interface TextFormat {
  /** Lowercase letters and hyphens. */
  readonly magic: string;
  readonly version: number;
}

const headerPattern = /^([a-z-]{1,30}) (\d{1,9}) (\d{1,15}) ([0-9a-f]{8})\n/;
const headerBytesMax = 80;

function headerLine({ magic, version }: TextFormat, text: Uint8Array): string {
  const start = `${magic} ${version} ${text.length} `;
  return `${start}${crc32(text, crc32(start)).toString(16).padStart(8, '0')}\n`;
}

/**
 * Encodes text as the bytes of a file: a header line `<magic> <version> <bytes> <crc32>`, then the text. The crc32 (8 hexadecimal digits)
 * covers the header line up to itself and the text, so that any flipped bit is detected.
 */
export function encodeCheckedText(format: TextFormat, text: string): Uint8Array {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(headerLine(format, bytes)), bytes]);
}

/** Decodes the bytes of such a file. Throws `damaged` for invalid content, `unsupported` for another version. */
export function decodeCheckedText(format: TextFormat, bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = headerPattern.exec(buffer.toString('latin1', 0, headerBytesMax));
  if (header === null || header[1] !== format.magic)
    throw new DamageError(`it does not begin with "${format.magic}"`, { offset: 0 });
  const text = buffer.subarray(header[0].length);
  const version = Number(header[2]);
  if (header[0] !== headerLine({ ...format, version }, text))
    throw new DamageError(`its length or its checksum is wrong`, { offset: 0 });
  if (version !== format.version) throw otherFormat('format version', version, format.version);
  return text.toString('utf8');
}
