import { concatBatches } from '../batch.js';
import type { Column } from '../column.js';
import type { Schema } from '../schema.js';
import type { Directory } from './directory.js';
import type { WrittenSegment } from './sealed-segment-writer.js';
import { decodeCheckedChunk, readBytes, readSegmentFooter, withFile } from './segment-file.js';
import { batchBytes, type SortedPage, type SortedRun } from './spill.js';
import type { StreamedTimes } from './streamed-times.js';

/** A segment of a load that was finished only to be read again. */
export interface BuiltSegment {
  readonly written: WrittenSegment;
  readonly path: string;
}

/**
 * The rows of finished segments as a run that comes before all others: what a load takes when too many rows belong before
 * those that it has written. A row group is read when its turn comes.
 */
export function runOfSegments(
  directory: Directory,
  schema: Schema,
  segments: readonly BuiltSegment[],
  times: StreamedTimes,
): SortedRun {
  const places = segments.flatMap((segment) =>
    segment.written.rowGroupRows.map((rows, rowGroup) => ({ segment, rows, rowGroup })),
  );
  const readPage = async (index: number): Promise<SortedPage> => {
    const { segment, rowGroup, rows } = places[index]!;
    const columns = await readColumns(directory, schema, segment, rowGroup);
    // Rows are picked out of plain columns, which dictionaries become here.
    const batch = concatBatches(schema, [{ length: rows, columns }]);
    return { batch, timesMs: await times.read(index), bytes: batchBytes(batch) };
  };
  return {
    order: -1,
    rows: places.reduce((sum, { rows }) => sum + rows, 0),
    minMs: times.minMs,
    maxMs: times.maxMs,
    pages: places.length,
    readPage,
  };
}

function readColumns(
  directory: Directory,
  schema: Schema,
  { written, path }: BuiltSegment,
  rowGroup: number,
): Promise<Column[]> {
  return withFile(directory, path, async (file) => {
    const entry = { ...written, file: path, schemaVersion: 0, replaces: [] };
    const footer = await readSegmentFooter(file, entry, schema);
    const columns: Column[] = [];
    for (let column = 1; column <= schema.fields.length; column++) {
      const chunk = footer.footer.rowGroups[rowGroup]!.chunks[column]!;
      const bytes = await readBytes(file, chunk.offset, chunk.bytes);
      columns.push(decodeCheckedChunk(bytes, footer, { rowGroup, column }, path));
    }
    return columns;
  });
}
