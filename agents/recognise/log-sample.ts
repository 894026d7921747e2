import { closing, lineBytesMax, LogstrataError } from '../../engine/index.js';
import { encodingOf, lineEndIn, reencoded, ReencodedEnds } from '../decode/encodings.js';
import { singleLines, textStart, wideEncoding } from '../decode/line-framing.js';
import type { Encoding } from '../definition/definition.js';
import { SourceCursor } from '../sources/source-cursor.js';
import { type SampleLine, sampleLine } from './field-names.js';

/** Bytes that are read at the beginning of a file, and also at its end unless it is compressed. */
export const sampleBytes = 256 * 1024;

/** Limit on the lines of all pieces together that are looked at one by one; enough to include rare lines. */
export const sampleLinesMax = 2000;

/** Limit on the bytes of a line that are looked at, unless it is JSON, which is of no use if it is cut. */
const lineTextMax = 64 * 1024;

/** Complete lines of a log, as UTF-8. */
export interface SamplePiece {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** When the file was last modified, in milliseconds; no line is newer. */
  readonly modifiedMs: number;
  /** Whether what follows in the file was left out, which may be inside a record. */
  readonly isCut?: boolean;
}

/** A sample of one or more logs of the same format. */
export interface LogSample {
  readonly pieces: readonly SamplePiece[];
  /** Whether the sample has all lines of the files. */
  readonly isWhole: boolean;
  /** The encoding of the files; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
}

/** A part of a file, as it is. */
interface RawPiece extends SamplePiece {
  /** First bytes of the file. */
  readonly head: Uint8Array;
  /** Whether the piece begins inside a line. */
  readonly beginsInLine: boolean;
}

/**
 * Reads the beginnings of logs (plain, .gz or .zst), and the ends of those that are plain, and tells their encoding. Throws
 * `SourceError` for a file that can't be read, and `invalid` for one that begins with no line and no JSON.
 */
export async function readSample(paths: readonly string[]): Promise<LogSample> {
  const raw: RawPiece[] = [];
  let isWhole = true;
  for (const path of paths) {
    await closing(SourceCursor.open(path), async (cursor) => {
      isWhole = (await readPieces(cursor, raw)) && isWhole;
    });
  }
  const encoding = raw
    .map(({ head, bytes }) => encodingOf(head, unmarkedEncoding(bytes)))
    .find((each) => each !== undefined);
  const pieces = raw.map(({ head, beginsInLine, bytes, ...piece }): SamplePiece => {
    const own = encodingOf(head, encoding);
    const from = !beginsInLine ? 0 : own === undefined ? bytes.indexOf(lineFeed) + 1 : lineEndIn(bytes, own);
    const text = bytes.subarray(from);
    return { ...piece, bytes: own === undefined ? text : reencoded(text, own).bytes };
  });
  return { pieces: pieces.filter(({ bytes }) => bytes.length > 0), isWhole, encoding };
}

const lineFeed = 0x0a;

/** Adds the pieces of one file. Returns whether they are the whole file. */
async function readPieces(cursor: SourceCursor, pieces: RawPiece[]): Promise<boolean> {
  const { path, compression, head } = cursor;
  const { size, mtimeMs: modifiedMs } = cursor.file;
  const parts: Uint8Array[] = [];
  let length = 0;
  let hasLine = false;
  let piece = await cursor.next();
  for (; piece !== null && length < (hasLine ? sampleBytes : lineBytesMax); piece = await cursor.next()) {
    parts.push(piece.slice());
    length += piece.length;
    hasLine ||= piece.includes(lineFeed);
  }
  const content = Buffer.concat(parts);
  const encoding = encodingOf(head, unmarkedEncoding(content));
  const ends = encoding === undefined ? singleLines : new ReencodedEnds(singleLines, encoding);
  const isAll = piece === null && content.length <= sampleBytes;
  const linesEnd =
    ends.wholeTo(content, 0, Math.min(content.length, sampleBytes)) ||
    ends.wholeTo(content, 0, content.length);
  const isHole = textStart(content, 0, content.length) === content.length;
  // Without a line end, JSON may be one long line.
  if (linesEnd === 0 && piece !== null && !isHole && !/^\s*[[{]/.test(content.toString('latin1', 0, 64))) {
    const message = `${path} begins with a line of more than ${content.length} bytes: it is not a text log`;
    throw new LogstrataError('invalid', message, { path });
  }
  const end = isAll || linesEnd === 0 ? content.length : linesEnd;
  const isCut = piece !== null || end < content.length;
  pieces.push({ path, modifiedMs, head, bytes: content.subarray(0, end), isCut, beginsInLine: false });
  if (!isCut || compression !== 'none' || (linesEnd === 0 && !isHole)) return !isCut;
  // A character of UTF-16 has two bytes.
  const skipped = Math.max(end, size - sampleBytes + ((size - sampleBytes) & 1));
  const tail = await cursor.fileEnd(size - skipped);
  pieces.push({ path, modifiedMs, head, bytes: tail, beginsInLine: skipped > end });
  return skipped === end;
}

/** The encoding of bytes without a mark. Undefined for UTF-8, also where a few bytes of it are broken. */
function unmarkedEncoding(bytes: Uint8Array): Encoding | undefined {
  const wide = wideEncoding(bytes.subarray(0, 64));
  if (wide !== null) return wide === 'UTF-16LE' ? 'utf-16le' : 'utf-16be';
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  const broken = text.match(/\ufffd/g)?.length ?? 0;
  const characters = text.match(/[^\0-\x7f\ufffd]/g)?.length ?? 0;
  // It has every printable character of Latin-1 at the same place.
  return broken > characters ? 'windows-1252' : undefined;
}

/** The lines of the sample that are not blank; the same number from each piece. */
export function linesOf({ pieces }: LogSample): SampleLine[] {
  const decoder = new TextDecoder();
  const linesMax = Math.ceil(sampleLinesMax / Math.max(1, pieces.length));
  return pieces.flatMap(({ bytes }) => {
    const lines: SampleLine[] = [];
    for (let at = 0; at < bytes.length && lines.length < linesMax;) {
      const feed = bytes.indexOf(lineFeed, at);
      const end = feed < 0 ? bytes.length : feed;
      const start = textStart(bytes, at, end);
      const isJson = bytes[start] === 0x7b || bytes[start] === 0x5b;
      const text = decoder
        .decode(bytes.subarray(start, isJson ? end : Math.min(end, start + lineTextMax)))
        .replace(/\r$/, '');
      if (text.trim() !== '') lines.push(sampleLine(text));
      at = end + 1;
    }
    return lines;
  });
}
