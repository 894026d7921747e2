import { FormatError } from '../parquet/format.js';
import { DamageError, LogstrataError } from '../terms/errors.js';
import type { ForeignRead } from './foreign-file.js';

/**
 * Has `decode` do a reading. A `FormatError` becomes a `DamageError` with the path, offset, row group and column, and any other error that
 * names no path gets one.
 */
export async function withErrorsNamed<T>(
  read: ForeignRead,
  decode: (read: ForeignRead) => Promise<T>,
): Promise<T> {
  try {
    return await decode(read);
  } catch (error) {
    const { path, column, rowGroup, chunk } = read;
    const place = `${path}: column "${column.name}" of row group ${rowGroup}`;
    if (error instanceof FormatError) {
      // What several parts of a column contradict each other in has no place of its own.
      const offset = Math.max(error.offset, chunk.offset);
      const message = `${place}, at byte ${offset}: ${error.message}`;
      throw new DamageError(message, { path, offset, rowGroup, column: column.name, cause: error });
    }
    if (!(error instanceof LogstrataError) || error.path !== undefined) throw error;
    throw new LogstrataError(error.code, `${place}: ${error.message}`, { path, cause: error });
  }
}
