import { arraysOf, type Column } from '../../columns/column.js';
import { openDecompressor } from '../../parquet/compression.js';
import type { FieldType } from '../../terms/schema.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { convertColumn, type Conversion } from '../../columns/convert-column.js';
import { openFiles } from '../disk/open-files.js';
import { cutOff, decodeStoredChunk, type StoredChunk } from '../sealed/segment-file.js';

/** A column chunk in a local file, and the conversion of its values to a field's type. */
export interface ChunkJob {
  /** Absolute path of the file. */
  readonly file: string;
  readonly chunk: StoredChunk;
  readonly conversion: Conversion;
  /** Type of the field that is read. */
  readonly type: FieldType;
}

/** Reads, checks and decodes a column chunk: the work of `chunkTask`. Throws `DamageError`, and what reading a file throws. */
export async function work({ file, chunk, conversion, type }: ChunkJob): Promise<Finished<Column>> {
  const decompress = await openDecompressor(chunk.codec);
  const bytes = new Uint8Array(chunk.bytes);
  const read = openFiles.read(file, chunk.offset, bytes);
  if (read < bytes.length) throw cutOff(chunk.path, chunk.offset + read, chunk.offset + chunk.bytes);
  const column = convertColumn(decodeStoredChunk(bytes, chunk, decompress), conversion, type);
  return { result: column, transfer: buffersOf(arraysOf(column)) };
}

/** Reads and decodes a column chunk on a thread, onto the heap. */
export const chunkTask: Task<ChunkJob, Column> = { module: builtModule(import.meta.url), work };
