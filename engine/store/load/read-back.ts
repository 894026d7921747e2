import type { Column } from '../../columns/column.js';
import { sortedPageRowsMax } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import { heapSpace } from '../../parquet/column-space.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { readChunk } from '../reading/chunk-tasks.js';
import type { Directory } from '../disk/directory.js';
import type { WrittenSegment } from '../sealed/sealed-segment-writer.js';
import {
  decodeStoredChunk,
  readBytes,
  readSegmentFooter,
  storedChunk,
  withFile,
} from '../sealed/segment-file.js';
import { copyOfRows } from './sorted-page.js';
import type { SortedPage, SortedRun } from '../disk/spill.js';
import type { StreamedTimes } from './streamed-times.js';

/** A finished segment of a load that will be read back and rewritten. */
export interface BuiltSegment {
  readonly written: WrittenSegment;
  readonly path: string;
}

/** What reading segments back depends on. */
export interface ReadBackContext {
  readonly directory: Directory;
  readonly schema: Schema;
  readonly workers: WorkerPool;
}

/** A page: rows [from, to) of a row group. Row groups are numbered over all segments. */
interface PagePlace {
  readonly index: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Reads finished segments as a sorted run that comes before all others. A load does this when too many rows belong before those that it has
 * written. The pages must be read in order. A row group is decoded when its first page is read, and stays dictionary-encoded. Each page is
 * a copy, so that a merge that keeps some rows does not keep the whole row group.
 */
export function runOfSegments(
  context: ReadBackContext,
  segments: readonly BuiltSegment[],
  times: StreamedTimes,
): SortedRun {
  const groups = segments.flatMap((segment) =>
    segment.written.rowGroupRows.map((rows, rowGroup) => ({ segment, rows, rowGroup })),
  );
  const pages = groups.flatMap(({ rows }, index) => pagesOf(index, rows));
  let open: (Omit<SortedPage, 'bytes'> & { readonly index: number }) | null = null;
  const readPage = async (page: number): Promise<SortedPage> => {
    const { index, from, to } = pages[page]!;
    const { segment, rowGroup, rows } = groups[index]!;
    if (open?.index !== index) {
      const columns = await readColumns(context, segment, rowGroup);
      open = { index, batch: { length: rows, columns }, timesMs: await times.read(index) };
    }
    const copy = copyOfRows(context.schema, open, from, to);
    // Release the row group before the next one is read.
    if (to === rows) open = null;
    return copy;
  };
  return {
    order: -1,
    rows: groups.reduce((sum, { rows }) => sum + rows, 0),
    minMs: times.minMs,
    maxMs: times.maxMs,
    pages: pages.length,
    readPage,
  };
}

function pagesOf(index: number, rows: number): PagePlace[] {
  const pages: PagePlace[] = [];
  for (let from = 0; from < rows; from += sortedPageRowsMax) {
    pages.push({ index, from, to: Math.min(rows, from + sortedPageRowsMax) });
  }
  return pages;
}

/**
 * Reads the columns of a row group. Threads decode them if possible, because they have memory for decoding already; the kernels of this
 * thread would allocate it a second time and keep it.
 */
function readColumns(
  { directory, schema, workers }: ReadBackContext,
  { written, path }: BuiltSegment,
  rowGroup: number,
): Promise<Column[]> {
  return withFile(directory, path, async (file) => {
    const entry = { ...written, file: path, schemaVersion: 0, replaces: [] };
    const footer = await readSegmentFooter(file, entry, schema);
    const absolutePath = workers.threads === 0 ? undefined : directory.absolutePath?.(path);
    const read = async (field: number): Promise<Column> => {
      const chunk = storedChunk(footer, { rowGroup, column: field + 1 }, path);
      if (absolutePath === undefined) {
        const bytes = await readBytes(file, chunk.offset, chunk.bytes);
        return decodeStoredChunk(bytes, chunk, footer.decompress);
      }
      const { type } = schema.fields[field]!;
      return readChunk(workers, { file: absolutePath, chunk, conversion: 'none', type }, heapSpace);
    };
    if (absolutePath !== undefined) return Promise.all(schema.fields.map((_, field) => read(field)));
    const columns: Column[] = [];
    for (let field = 0; field < schema.fields.length; field++) columns.push(await read(field));
    return columns;
  });
}
