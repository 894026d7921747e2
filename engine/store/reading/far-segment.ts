import type { Column } from '../../columns/column.js';
import { LogstrataError } from '../../terms/errors.js';
import type { Schema } from '../../terms/schema.js';
import type { FarCluster } from '../far/far-cluster.js';
import type { FarRows } from '../far/far-rows.js';
import { liveRuns, type SegmentEntry } from '../manifest/manifest.js';
import type { AskableFilters } from './filter-ask.js';
import type { OpenRowGroup, RowGroup, SnapshotRun } from './snapshot.js';

/** A segment whose rows are in the far tier alone: one range of positions for each of its runs, and nothing to open. */
export class FarSegment {
  readonly #group: FarRowGroup;

  constructor(agent: string, entry: SegmentEntry, stored: Schema, cluster: FarCluster | undefined) {
    const copy = entry.far!;
    const group = `${copy.shard} ${entry.schemaVersion}`;
    const far = { agent, copy, stored, group, cluster: () => cluster ?? notConfigured(agent) };
    this.#group = new FarRowGroup(entry, far);
  }

  rowGroups(): readonly RowGroup[] {
    return [this.#group];
  }

  /** Its live runs, as long as they are. */
  runs(entry: SegmentEntry): SnapshotRun[] {
    return liveRuns(entry).map((run) => ({ ...run, rowGroup: this.#group }));
  }

  close(): void {
    // Nothing is held.
  }
}

function notConfigured(agent: string): never {
  throw new LogstrataError(
    'unavailable',
    `records of agent ${agent} are in a far tier, and none is configured: config.yaml has to say where it is (storage.far)`,
  );
}

/** All rows of such a segment. It is planned with, and never opened. */
class FarRowGroup implements RowGroup {
  readonly index = 0;
  readonly hot = false;
  readonly filters: AskableFilters = { rowGroups: 1, ask: () => null };
  readonly file: string;
  readonly rows: number;
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;

  constructor(
    entry: SegmentEntry,
    readonly far: FarRows,
  ) {
    this.file = entry.file;
    this.rows = entry.rows;
    this.timeMinMs = entry.timeMinMs;
    this.timeMaxMs = entry.timeMaxMs;
  }

  isOpen(): boolean {
    return false;
  }

  open(): Promise<OpenRowGroup> {
    return Promise.reject(new Error(`${this.file} is in the far tier and can't be opened`));
  }

  columnsNow(): readonly Column[] | null {
    return null;
  }
}
