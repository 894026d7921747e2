import { LogstrataError } from '../../engine/index.js';
import { LineFramer } from '../lines/line-framing.js';
import { textStart } from '../lines/record-ends.js';
import { SourceReader } from '../sources/source-reader.js';
import type { SampleLine } from './candidate.js';

/** Bytes that are read at the beginning of a file, and also at its end unless it is compressed. */
export const sampleBytes = 256 * 1024;

/** Limit on the lines of all pieces together that are looked at one by one; enough to include rare lines. */
export const sampleLinesMax = 2000;

/** Limit on the bytes of a line that are looked at. */
const lineTextMax = 64 * 1024;

/** Complete lines of a log. */
export interface SamplePiece {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** When the file was last modified, in milliseconds; no line is newer. */
  readonly modifiedMs: number;
}

/** A sample of one or more logs of the same format. */
export interface LogSample {
  readonly pieces: readonly SamplePiece[];
  /** Whether the sample has all lines of the files. */
  readonly isWhole: boolean;
}

/**
 * Reads the beginnings of logs (plain, .gz or .zst), and the ends of those that are plain. Throws `SourceError` for a file
 * that can't be read, and `invalid` where there is no complete line.
 */
export async function readSample(paths: readonly string[]): Promise<LogSample> {
  const pieces: SamplePiece[] = [];
  let isWhole = true;
  for (const path of paths) {
    const reader = await SourceReader.open(path);
    try {
      isWhole = (await samplePieces(reader, pieces)) && isWhole;
    } finally {
      await reader.close();
    }
  }
  return { pieces, isWhole };
}

/** Adds the pieces of one file. Returns whether they are the whole file. */
async function samplePieces(reader: SourceReader, pieces: SamplePiece[]): Promise<boolean> {
  const { path, modifiedMs } = reader;
  const frame = await new LineFramer(reader.content, 0, false, undefined, sampleBytes).next();
  if (frame === null) return true;
  if (frame.kind === 'long') {
    const message = `${path} begins with a line of ${frame.lengthBytes} bytes: it is not a text log`;
    throw new LogstrataError('invalid', message, { path });
  }
  // The frame may be larger than a piece; the remainder is dropped.
  const head = wholeLines(frame.bytes.subarray(0, frame.end), sampleBytes);
  pieces.push({ path, modifiedMs, bytes: head.slice() });
  if (reader.compression !== 'none') {
    return frame.kind === 'tail' || (head.length === frame.end && (await reader.content.next()) === null);
  }
  if (head.length >= reader.fileBytes) return true;
  const end = await reader.fileEnd(Math.min(sampleBytes, reader.fileBytes - head.length));
  const follows = end.length === reader.fileBytes - head.length;
  const tail = follows ? end : end.subarray(end.indexOf(0x0a) + 1);
  if (tail.length > 0) pieces.push({ path, modifiedMs, bytes: tail });
  return follows;
}

/** The lines of a text that fit into `bytesMax` bytes; the whole text where it is a single line. */
function wholeLines(bytes: Uint8Array, bytesMax: number): Uint8Array {
  if (bytes.length <= bytesMax) return bytes;
  const feed = bytes.subarray(0, bytesMax).lastIndexOf(0x0a);
  return feed < 0 ? bytes : bytes.subarray(0, feed + 1);
}

/** The lines of the sample that are not blank; the same number from each piece. */
export function linesOf({ pieces }: LogSample): SampleLine[] {
  const decoder = new TextDecoder();
  const linesMax = Math.ceil(sampleLinesMax / Math.max(1, pieces.length));
  return pieces.flatMap(({ bytes }) => {
    const lines: SampleLine[] = [];
    for (let at = 0; at < bytes.length && lines.length < linesMax;) {
      const feed = bytes.indexOf(0x0a, at);
      const end = feed < 0 ? bytes.length : feed;
      const start = textStart(bytes, at, end);
      const text = decoder
        .decode(bytes.subarray(start, Math.min(end, start + lineTextMax)))
        .replace(/\r$/, '');
      if (text.trim() !== '') lines.push({ text, bytes: Buffer.from(text) });
      at = end + 1;
    }
    return lines;
  });
}
