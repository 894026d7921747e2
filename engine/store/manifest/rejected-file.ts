import { closing } from '../../core/waiting.js';
import { crc32 } from 'node:zlib';
import { DamageError, LogstrataError } from '../../core/errors.js';
import { filePieceBytes, valueBytesMax } from '../../core/limits.js';
import { countField, parseJsonObject, textField, timeField } from '../disk/checked-json.js';
import type { RejectedLine } from './commit.js';
import type { Directory, WritableFile } from '../disk/directory.js';
import type { RejectedEntry } from './manifest.js';

/**
 * A file of rejected lines in JSON Lines. Each line has `reason`, `file`, `offset`, optionally `writtenMs`, and `line` (or `line_base64` if
 * the bytes are not UTF-8). The lines can be inspected, and loaded again once the pattern is corrected.
 */
export class RejectedFile {
  private pending: Uint8Array[] = [];
  private pendingBytes = 0;
  private writtenBytes = 0;
  private lineCount = 0;
  private checksum = 0;

  private constructor(private readonly file: WritableFile) {}

  /** Creates an empty file. */
  static async create(directory: Directory, path: string): Promise<RejectedFile> {
    return new RejectedFile(await directory.create(path));
  }

  get lines(): number {
    return this.lineCount;
  }

  /** The file's entry for a manifest. Valid once `sync` has returned. */
  entry(file: string): RejectedEntry {
    return { file, bytes: this.writtenBytes, lines: this.lineCount, checksum: this.checksum };
  }

  /** Adds a line that `encodeRejectedLine` has encoded. */
  async add(text: Uint8Array): Promise<void> {
    this.pending.push(text);
    this.pendingBytes += text.length;
    this.lineCount++;
    if (this.pendingBytes >= filePieceBytes) await this.flush();
  }

  /** Writes the buffered lines, without syncing. */
  async flush(): Promise<void> {
    if (this.pendingBytes === 0) return;
    const bytes = Buffer.concat(this.pending);
    await this.file.write(this.writtenBytes, bytes);
    this.checksum = crc32(bytes, this.checksum);
    this.writtenBytes += this.pendingBytes;
    this.pending = [];
    this.pendingBytes = 0;
  }

  /** Writes the buffered lines and makes them durable. */
  async sync(): Promise<void> {
    await this.flush();
    await this.file.sync();
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

const lineFeed = 10;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Encodes a rejected line as a line of the file. */
export function encodeRejectedLine({ reason, file, offset, line, writtenMs }: RejectedLine): Uint8Array {
  let content: { line: string } | { line_base64: string };
  try {
    content = { line: strictUtf8.decode(line) };
  } catch {
    content = { line_base64: Buffer.from(line.buffer, line.byteOffset, line.length).toString('base64') };
  }
  return Buffer.from(JSON.stringify({ reason, file, offset, writtenMs, ...content }) + '\n');
}

function decodeRejectedLine(text: string): RejectedLine {
  const object = parseJsonObject(text, 'the line');
  const line =
    object['line'] === undefined
      ? Buffer.from(textField(object, 'line_base64'), 'base64')
      : Buffer.from(textField(object, 'line'));
  return {
    reason: textField(object, 'reason'),
    file: textField(object, 'file'),
    offset: countField(object, 'offset'),
    line,
    ...(object['writtenMs'] === undefined ? {} : { writtenMs: timeField(object, 'writtenMs') }),
  };
}

/**
 * Reads the committed bytes of a file, in pieces of at most `filePieceBytes`. Throws `damaged` if the file is shorter, and after the last
 * piece if the checksum differs.
 */
export async function* rejectedPieces(
  directory: Directory,
  path: string,
  entry: RejectedEntry,
): AsyncGenerator<Uint8Array> {
  const file = await directory.openRead(path);
  try {
    let checksum = 0;
    for (let at = 0; at < entry.bytes;) {
      const piece = await file.read(at, Math.min(filePieceBytes, entry.bytes - at));
      if (piece.length === 0) {
        throw new DamageError(`${path} ends at byte ${at}, but ${entry.bytes} bytes were written`, {
          path,
          offset: at,
        });
      }
      checksum = crc32(piece, checksum);
      at += piece.length;
      yield piece;
    }
    if (checksum !== entry.checksum) {
      throw new DamageError(`${path} has changed since it was written: its checksum differs`, { path });
    }
  } finally {
    await file.close();
  }
}

/** Length, line count and crc32 of the whole lines of a file. For rebuilding, when the committed length is unknown. */
export async function wholeLines(
  directory: Directory,
  path: string,
): Promise<Pick<RejectedEntry, 'bytes' | 'lines' | 'checksum'>> {
  return closing(directory.openRead(path), async (file) => {
    let whole = { bytes: 0, lines: 0, checksum: 0 };
    let { lines, checksum } = whole;
    const sizeBytes = await file.size();
    for (let at = 0; at < sizeBytes;) {
      const piece = await file.read(at, Math.min(filePieceBytes, sizeBytes - at));
      for (const byte of piece) if (byte === lineFeed) lines++;
      const end = piece.lastIndexOf(lineFeed) + 1;
      const atEnd = crc32(piece.subarray(0, end), checksum);
      if (end > 0) whole = { bytes: at + end, lines, checksum: atEnd };
      checksum = crc32(piece.subarray(end), atEnd);
      at += piece.length;
    }
    return whole;
  });
}

/** Reads the lines of a file, in groups, in order. Throws `damaged`, with the offset of the line, for invalid content. */
export async function* readRejectedLines(
  directory: Directory,
  path: string,
  entry: RejectedEntry,
): AsyncGenerator<RejectedLine[]> {
  let rest = Buffer.alloc(0);
  let offset = 0;
  for await (const piece of rejectedPieces(directory, path, entry)) {
    const bytes = rest.length === 0 ? Buffer.from(piece) : Buffer.concat([rest, piece]);
    const lines: RejectedLine[] = [];
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
      lines.push(lineAt(bytes.toString('utf8', start, end), path, offset + start));
      start = end + 1;
    }
    offset += start;
    rest = bytes.subarray(start);
    if (rest.length > valueBytesMax) throw unendedLine(path, offset);
    yield lines;
  }
  if (rest.length > 0) throw unendedLine(path, offset);
}

function unendedLine(path: string, offset: number): DamageError {
  return new DamageError(`${path} has a line without an end at byte ${offset}`, { path, offset });
}

function lineAt(text: string, path: string, offset: number): RejectedLine {
  try {
    return decodeRejectedLine(text);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    throw new DamageError(`${path}: ${error.message}`, { path, offset, cause: error });
  }
}

/** Throws `conflict` if the file that a load takes over is not in `there`, or has changed. */
export function assertRejectedStill(there: readonly RejectedEntry[], takes: RejectedEntry | undefined): void {
  if (takes === undefined) return;
  const { file, bytes, checksum } = takes;
  const isSame = (known: RejectedEntry): boolean =>
    known.file === file && known.bytes === bytes && known.checksum === checksum;
  if (there.some(isSame)) return;
  throw new LogstrataError('conflict', `${file} was replaced or retired in the meantime`, { path: file });
}
