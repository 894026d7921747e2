import { LogstrataError } from '../../terms/errors.js';
import type { Schema } from '../../terms/schema.js';
import type { FarRows, FarSource } from '../far/far-rows.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { OrdinalRun, SegmentEntry } from '../manifest/manifest.js';
import type { AskableFilters } from './filter-ask.js';
import type { OpenRowGroup, RowGroup } from './snapshot.js';

/** How to read the rows of a segment's copy in the far tier. Only the copy that the manifest names counts. */
export function rowsOfCopy(
  agent: string,
  copy: FarCopy,
  schemaVersion: number,
  stored: Schema,
  source: FarSource | undefined,
): FarRows {
  const group = `${copy.shard} ${schemaVersion}`;
  const rowBytes = copy.bytes / copy.rows;
  return { agent, copy, stored, rowBytes, group, source: () => source ?? notConfigured(agent), lacking };
}

function lacking(found: number, { partition, firstOrdinal, rows }: OrdinalRun): LogstrataError {
  return new LogstrataError(
    'unavailable',
    `the far tier has only ${found} of the ${rows} records from ordinal ${firstOrdinal} of hour ${partition} on`,
  );
}

function notConfigured(agent: string): never {
  throw new LogstrataError(
    'unavailable',
    `records of agent ${agent} are in a far tier, but none is configured: set storage.far in config.yaml`,
  );
}

/** What is known of rows that are in no local file. */
export type FarRowFacts = Pick<SegmentEntry, 'file' | 'rows' | 'timeMinMs' | 'timeMaxMs'>;

/** All rows of a far segment as one row group. Plans use it; it is never opened. */
export class FarRowGroup implements RowGroup {
  readonly index = 0;
  readonly hot = false;
  readonly filters: AskableFilters = { rowGroups: 1, ask: () => null };
  readonly file: string;
  readonly rows: number;
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;

  constructor(
    { file, rows, timeMinMs, timeMaxMs }: FarRowFacts,
    readonly far: FarRows,
  ) {
    this.file = file;
    this.rows = rows;
    this.timeMinMs = timeMinMs;
    this.timeMaxMs = timeMaxMs;
  }

  opened(): null {
    return null;
  }

  open(): Promise<OpenRowGroup> {
    return Promise.reject(new Error(`${this.file} is in the far tier and can't be opened`));
  }
}
