import { FormatError } from '../parquet/format.js';
import { DamageError, LogstrataError } from '../terms/errors.js';
import type { ForeignRead } from './foreign-file.js';

/**
 * Runs `decode`. Turns a `FormatError` into a `DamageError` with the path, offset, row group and column, and adds the path
 * to any other error that has none.
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
      // A contradiction between parts of a column has no offset of its own: name the beginning of the chunk.
      const offset = Math.max(error.offset, chunk.offset);
      const message = `${place}, at byte ${offset}: ${error.message}`;
      throw new DamageError(message, { path, offset, rowGroup, column: column.name, cause: error });
    }
    if (!(error instanceof LogstrataError) || error.path !== undefined) throw error;
    throw new LogstrataError(error.code, `${place}: ${error.message}`, { path, cause: error });
  }
}
