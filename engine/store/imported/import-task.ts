import {
  arraysOf,
  columnBytes,
  columnValue,
  isValid,
  type Column,
  type PlainColumn,
} from '../../columns/column.js';
import { copyColumn } from '../../columns/copy-column.js';
import { plainColumn } from '../../columns/take.js';
import type { ForeignRead, PageTable } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/reading/decode-foreign.js';
import { heap } from '../../memory/arena.js';
import { LogstrataError } from '../../terms/errors.js';
import { valueBytesMax } from '../../terms/limits.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { changeColumn, type ValueChange } from '../attached/column-source.js';

/** A column of a foreign file that is to be imported, and how its values are converted. */
export interface ImportJob {
  readonly read: ForeignRead;
  readonly change: ValueChange;
}

/** The wanted span, and others that were decoded with it. */
export interface ImportedSpans {
  readonly spans: readonly ImportedSpan[];
  readonly pages: PageTable | null;
  /** Number of byte sequences that were not UTF-8. */
  readonly replaced: number;
}

/** A column of a span, in memory of its own. */
export interface ImportedSpan {
  readonly span: number;
  readonly column: PlainColumn;
  readonly bytes: number;
  /** Number of values that the field's type cannot represent. They become null. */
  readonly unreadable: number;
  /** The first such value; empty if there is none. */
  readonly example: string;
}

/** A longer example is truncated. */
const exampleCharactersMax = 60;

/** Reads and decodes a column. Throws as `decodeForeign` does, and `limit` for a value that is too long to be stored. */
export async function work({ read, change }: ImportJob): Promise<Finished<ImportedSpans>> {
  const { spans, pages, replaced } = await decodeForeign(read);
  const imported = spans.map(({ span, column: stored }): ImportedSpan => {
    const changed = plainColumn(changeColumn(stored, change));
    assertStorable(changed, read);
    // Spans of one reading share memory, but each is moved to other threads by itself.
    const column = spans.length > 1 ? copyColumn(changed, heap) : changed;
    return { span, column, bytes: columnBytes(column), ...lostValues(stored, column, change) };
  });
  return {
    result: { spans: imported, pages, replaced },
    transfer: buffersOf(imported.flatMap(({ column }) => arraysOf(column))),
  };
}

function assertStorable(column: PlainColumn, { path, column: { name }, rowGroup }: ForeignRead): void {
  if (column.kind !== 'bytes') return;
  const { offsets, length } = column;
  for (let row = 0; row < length; row++) {
    const bytes = offsets[row + 1]! - offsets[row]!;
    if (bytes <= valueBytesMax) continue;
    const message = `${path}: column "${name}" of row group ${rowGroup} has a value of ${bytes} bytes, more than the maximum of ${valueBytesMax}: exclude the column (fields), or query the file in place (mode: in-place)`;
    throw new LogstrataError('limit', message, { path });
  }
}

/** Counts the values that were present before the conversion and are null after it. */
function lostValues(
  before: Column,
  after: PlainColumn,
  { unit, conversion }: ValueChange,
): Pick<ImportedSpan, 'unreadable' | 'example'> {
  if (unit === null && conversion === 'none') return { unreadable: 0, example: '' };
  let unreadable = 0;
  let example = '';
  for (let row = 0; row < after.length; row++) {
    if (!isValid(before.validity, row) || isValid(after.validity, row)) continue;
    if (unreadable++ === 0) example = String(columnValue(before, row)).slice(0, exampleCharactersMax);
  }
  return { unreadable, example };
}

/** Reads a column for an import on a thread. */
export const importTask: Task<ImportJob, ImportedSpans> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};
