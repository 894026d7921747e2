import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { storedFilterBytes, type KeptKind } from './kept-filters.js';
import { summaryAt, type SummaryPlace } from './summary-cache.js';

/** Filters of a segment that can be kept in memory together. */
export interface KeepableFilters {
  /** Index of the field in the segment's schema. */
  readonly field: number;
  readonly kind: KeptKind;
  /** Upper bound of their bytes on disk. */
  readonly bytes: number;
}

const kinds: readonly KeptKind[] = ['values', 'grams'];

/** Lists the filters of each segment. A segment that cannot be read has none. */
export function work(segments: readonly SummaryPlace[]): Finished<readonly (readonly KeepableFilters[])[]> {
  return { result: segments.map(keepableOf), transfer: [] };
}

function keepableOf(segment: SummaryPlace): KeepableFilters[] {
  const filters = summaryIn(segment);
  if (filters === null) return [];
  const all = [...filters.fields].flatMap((field) =>
    kinds.map((kind) => ({ field, kind, bytes: storedFilterBytes(kind, filters, field) })),
  );
  return all.filter(({ bytes }) => bytes > 0);
}

function summaryIn(segment: SummaryPlace): ReturnType<typeof summaryAt> {
  try {
    return summaryAt(segment, (path, offset, bytes) => {
      const target = new Uint8Array(bytes);
      return target.subarray(0, openFiles.read(path, offset, target));
    });
  } catch {
    // The file may have been removed. A query that needs it gets the error.
    return null;
  }
}

/** Lists the filters of segments on a thread. */
export const surveyTask: Task<readonly SummaryPlace[], readonly (readonly KeepableFilters[])[]> = {
  module: builtModule(import.meta.url),
  work,
};
