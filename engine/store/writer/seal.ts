import { compareRuns } from '../manifest/run-list.js';
import type { HotFile } from '../reading/agent-state.js';
import { MergedSegments, type SegmentTarget } from '../load/segment-builder.js';
import type { HotEntry, SegmentEntry } from '../manifest/manifest.js';

/**
 * The hot entries of the next manifest. The manifest's values include everything in these files, and only `open` may still grow. A file
 * that failed before its first append is left out.
 */
export function hotEntriesForManifest(files: readonly HotFile[], open: HotFile | undefined): HotEntry[] {
  return files
    .filter((hot) => hot === open || hot.endBytes > 0)
    .map((hot) => ({
      ...hot.entry,
      foldedBytes: hot.endBytes,
      runs: hot.rows.runs(),
      committedBytes: hot === open ? null : hot.endBytes,
    }));
}

/**
 * Writes the rows of hot files as sealed segments, sorted by position, at least one segment for each day and schema version, and moves them
 * into place. Row groups are encoded on the threads of the pool, so that queries can run meanwhile.
 */
export async function sealHotFiles(
  target: Omit<SegmentTarget, 'schema'>,
  files: readonly HotFile[],
): Promise<SegmentEntry[]> {
  const entries: SegmentEntry[] = [];
  for (const schemaVersion of new Set(files.map((hot) => hot.entry.schemaVersion))) {
    const same = files.filter((hot) => hot.entry.schemaVersion === schemaVersion);
    const { schema } = same[0]!;
    const replaces = same.map((hot) => hot.entry.file);
    const of = { schema, schemaVersion, replaces, firstNumber: entries.length };
    const segments = new MergedSegments({ ...target, ...of, rowsStay: true });
    const runs = same.flatMap((hot) => {
      const batch = hot.rows.batch();
      return hot.rows.runs().map((run) => ({ ...run, batch }));
    });
    try {
      for (const { batch, partition, firstOrdinal, firstRow, rows } of runs.sort(compareRuns))
        await segments.add({ batch, from: firstRow, to: firstRow + rows }, partition, firstOrdinal);
      entries.push(...(await segments.finish()));
    } finally {
      await segments.abort();
    }
  }
  return entries;
}
