import type { CommittedValues } from '../manifest/committed-values.js';
import type { Publication } from '../manifest/committer.js';
import { newestLoads } from '../manifest/loaded-rows.js';
import type { Manifest } from '../manifest/manifest.js';
import { loadsWithout } from '../manifest/removal.js';

/** What a publication makes of the records that a manifest names. */
export interface PublishedRecords {
  readonly changes: Pick<Manifest, 'segments' | 'rejected' | 'loads'>;
  /** Files that are named no more. */
  readonly left: readonly string[];
}

/** What the next manifest says of records once a unit is part of it; `values` take in what it counts. */
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
  const leaving = new Set([...(takes === undefined ? [] : [takes.file]), ...(removal?.rejected ?? [])]);
  const rejected = (manifest?.rejected ?? []).filter(({ file }) => !leaving.has(file));
  return {
    changes: { segments, rejected: [...rejected, ...publication.rejected], loads: newestLoads(loads) },
    left: [...publication.removes, ...leaving],
  };
}
