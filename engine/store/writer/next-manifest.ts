import type { CommittedValues } from '../manifest/committed-values.js';
import {
  datedRejected,
  type HotEntry,
  type Manifest,
  mergeRejected,
  nothingRetired,
} from '../manifest/manifest.js';
import type { AgentState } from '../reading/agent-state.js';

/** The manifest that follows the newest one, with `changes` and these hot files. */
export function nextManifest(
  state: AgentState,
  changes: Partial<Manifest>,
  hot: readonly HotEntry[],
  values: CommittedValues,
): Manifest {
  const { manifest, agent } = state;
  const rejected = mergeRejected(changes.rejected ?? manifest?.rejected ?? [], state.hotRejected());
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
    rejected: datedRejected(rejected, values.highestPartition),
    hot,
    number: (manifest?.number ?? 0) + 1,
    nextOrdinals: values.nextOrdinals(),
    highestPartition: values.highestPartition,
    checkpoints: values.checkpoints(),
    counters: values.counters,
  };
}
