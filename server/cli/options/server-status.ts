import type { CollectStatus } from '../../../agents/collect/logs/collect-counts.js';
import type { AttachStatus } from '../../../agents/archive/attach-status.js';
import type { ImportStatus } from '../../../agents/archive/import-status.js';

/** What a server answers to other processes that ask for its status. Each record is by agent. */
export interface ServerStatus {
  readonly collecting?: Readonly<Record<string, CollectStatus>>;
  readonly importing?: Readonly<Record<string, ImportStatus>>;
  readonly attaching?: Readonly<Record<string, AttachStatus>>;
  /** Why agents are not served (`ServedAgents`). */
  readonly leftOut?: Readonly<Record<string, string>>;
}
