import { assert } from '../../terms/assert.js';
import { answerBytesMax, pageRowsMax } from '../../terms/limits.js';
import { jsonColumns } from './json-columns.js';
import { lineTable } from '../../kernels/json-rows.js';
import { JsonLines } from './json-lines.js';
import type { PieceSpace } from './piece-space.js';
import { planScan, rangeOfRun, type RowRange, type ScanPlan } from '../plan/plan.js';
import type { Query, ScanStats } from '../plan/query.js';
import type { RowGroup, Snapshot } from '../../store/reading/snapshot.js';
import { writtenFields, type PageTable, type WrittenFields } from './written-fields.js';

/** Consecutive rows of a row group, and the table of its columns. */
interface PagePart {
  readonly rowGroup: RowGroup;
  readonly range: RowRange;
  readonly page: PageTable;
}

const noLines = new Uint8Array(0);

/** Whether a query asks for at most `pageRowsMax` rows and has no predicates. */
export function isPageQuery({ limit, predicates }: Query): boolean {
  return predicates.length === 0 && Number.isInteger(limit) && limit > 0 && limit <= pageRowsMax;
}

/**
 * Writes the whole answer to a query for which `isPageQuery` holds, if all of its rows are in memory. Most requests for the end of a log,
 * or for the pages before it, are of this kind. Nothing is filtered, pinned or waited for, so none of the objects for that are made. Empty
 * where there are no rows. Null, with the statistics unchanged, where some rows are not in memory or don't fit in one piece.
 */
export function writePage(
  { runs, schema }: Pick<Snapshot, 'runs' | 'schema'>,
  query: Query,
  stats: ScanStats,
  space: PieceSpace,
): Uint8Array | null {
  const { limit } = query;
  assert(isPageQuery(query), 'a page has a few rows, whatever they are');
  const startMs = performance.now();
  const plan = planScan(runs, query);
  const written = writtenFields(schema, query);
  const parts = pageParts(plan, Math.min(limit, plan.rows), written);
  if (parts === null) return null;
  const selectedMs = performance.now();
  const piece = parts.length === 0 ? noLines : writeParts(parts, space);
  if (piece === null) return null;
  stats.runs = plan.end - plan.first;
  stats.rowGroups = plan.rowGroups;
  stats.rowGroupsScanned = countRowGroups(parts);
  stats.columnsCached = stats.rowGroupsScanned * written.fields.length;
  stats.rowsReturned = Math.min(limit, plan.rows);
  stats.selectMs = selectedMs - startMs;
  stats.writeMs = performance.now() - selectedMs;
  return piece;
}

/** The first or last `rows` rows of a plan, in the order of the answer; null where some are not in memory. */
function pageParts(plan: ScanPlan, rows: number, written: WrittenFields): PagePart[] | null {
  const parts: PagePart[] = [];
  const isForward = plan.direction === 'forward';
  const step = isForward ? 1 : -1;
  let left = rows;
  for (let i = isForward ? plan.first : plan.end - 1; left > 0; i += step) {
    const range = rangeOfRun(plan, i);
    if (range === null) continue;
    const { rowGroup } = plan.runs.at(i)!;
    const page = tableOf(rowGroup, written);
    if (page === null || rows >= page.rowsTooMany) return null;
    const taken = Math.min(left, range.rows);
    left -= taken;
    parts.push({ rowGroup, page, range: isForward ? firstOf(range, taken) : lastOf(range, taken) });
  }
  return isForward ? parts : parts.reverse();
}

function firstOf(range: RowRange, rows: number): RowRange {
  const { firstRow, partition, firstOrdinal } = range;
  return { firstRow, rows, partition, firstOrdinal };
}

function lastOf(range: RowRange, rows: number): RowRange {
  const skipped = range.rows - rows;
  const { firstRow, partition, firstOrdinal } = range;
  return { firstRow: firstRow + skipped, rows, partition, firstOrdinal: firstOrdinal + skipped };
}

function tableOf(rowGroup: RowGroup, written: WrittenFields): PageTable | null {
  const columns = rowGroup.columnsNow();
  if (columns === null) return null;
  const { tables } = written;
  let page = tables.get(columns);
  if (page === undefined) {
    const wanted = written.fields.map((field) => columns[field]!);
    page = { table: lineTable(written.keys, jsonColumns(wanted, written)), rowsTooMany: Infinity };
    tables.set(columns, page);
  }
  return page;
}

/** Writes the lines as one piece; null where they don't fit in one. */
function writeParts(parts: readonly PagePart[], space: PieceSpace): Uint8Array | null {
  const lines = new JsonLines(answerBytesMax, space);
  let rowsBefore = 0;
  for (const { page, range } of parts) {
    const { firstRow, rows, partition, firstOrdinal } = range;
    const placed = { rows: null, partition, ordinalOfRow0: firstOrdinal - firstRow };
    const end = firstRow + rows;
    const written = lines.write(page.table, placed, firstRow, end);
    if (written < end) {
      page.rowsTooMany = Math.min(page.rowsTooMany, rowsBefore + written - firstRow + 1);
      return null;
    }
    rowsBefore += rows;
  }
  return lines.take()?.bytes ?? null;
}

function countRowGroups(parts: readonly PagePart[]): number {
  return parts.length <= 1 ? parts.length : new Set(parts.map(({ rowGroup }) => rowGroup)).size;
}
