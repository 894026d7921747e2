import type { CommittedValues } from '../manifest/committed-values.js';
import type { Publication } from '../manifest/committer.js';
import { newestLoads } from '../manifest/loaded-rows.js';
import type { Manifest } from '../manifest/manifest.js';
import { loadsWithout } from '../manifest/removal.js';

/** The effect of a publication on the records that a manifest names. */
export interface PublishedRecords {
  readonly changes: Pick<Manifest, 'segments' | 'rejected' | 'loads'>;
  /** Files that the next manifest no longer names. */
  readonly leaving: readonly string[];
}

/** Computes what the next manifest says of records when it includes a unit. Adds the unit's counts and checkpoints to `values`. */
export function publishedRecords(
  manifest: Manifest | undefined,
  publication: Publication,
  values: CommittedValues,
): PublishedRecords {
  const { takes, load, removal } = publication;
  values.applySegments(publication.segments);
  values.applyCheckpoints(publication.checkpoints);
  values.applyCounters(publication.counters);
  const removed = new Set(publication.removes);
  const kept = (manifest?.segments ?? []).filter(({ file }) => !removed.has(file));
  const segments = [...kept, ...publication.segments];
  let loads = [...(manifest?.loads ?? []), ...(load === undefined ? [] : [load])];
  if (removal !== undefined) {
    const { left, gone } = loadsWithout(loads, removal.runs, segments);
    loads = [...left];
    values.forget(gone);
  }
  const highest = removal?.highestPartition ?? Infinity;
  values.lowerHighest(highest);
  const rejectedLeaving = new Set([
    ...(takes === undefined ? [] : [takes.file]),
    ...(removal?.rejected ?? []),
  ]);
  const rejected = (manifest?.rejected ?? [])
    .filter(({ file }) => !rejectedLeaving.has(file))
    .map((entry) => ((entry.partition ?? 0) <= highest ? entry : { ...entry, partition: highest }));
  return {
    changes: { segments, rejected: [...rejected, ...publication.rejected], loads: newestLoads(loads) },
    leaving: [...publication.removes, ...rejectedLeaving],
  };
}
