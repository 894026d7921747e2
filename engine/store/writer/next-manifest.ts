import type { CommittedValues } from '../manifest/committed-values.js';
import {
  datedRejected,
  type HotEntry,
  type Manifest,
  mergeRejected,
  nothingRetired,
} from '../manifest/manifest.js';
import { leftoversOf } from '../manifest/far-changes.js';
import type { AgentState } from '../reading/agent-state.js';

/** The manifest that follows the newest one, with `changes`, the given hot files and the values. */
export function nextManifest(
  state: AgentState,
  changes: Partial<Manifest>,
  hot: readonly HotEntry[],
  values: CommittedValues,
  nowMs: number,
): Manifest {
  const { manifest, agent } = state;
  const rejected = mergeRejected(changes.rejected ?? manifest?.rejected ?? [], state.hotRejected());
  const segments = changes.segments ?? manifest?.segments ?? [];
  const farLeftovers = leftoversOf(manifest, segments, changes.farLeftovers, nowMs);
  return {
    agent,
    schemas: [],
    segments: [],
    attached: [],
    loads: [],
    ordinalsFrom: 1,
    retired: nothingRetired,
    ...manifest,
    ...changes,
    ...(farLeftovers.length === 0 ? { farLeftovers: undefined } : { farLeftovers }),
    rejected: datedRejected(rejected, values.highestPartition),
    hot,
    number: (manifest?.number ?? 0) + 1,
    nextOrdinals: values.nextOrdinals(),
    highestPartition: values.highestPartition,
    checkpoints: values.checkpoints(),
    counters: values.counters,
  };
}
