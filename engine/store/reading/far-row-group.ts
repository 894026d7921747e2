import { LogstrataError } from '../../core/errors.js';
import type { Schema } from '../../core/schema.js';
import type { FarRows, FarSource } from '../../far/far-cluster.js';
import type { FarCopy, OrdinalRun, SegmentEntry } from '../manifest/manifest.js';
import type { RowGroup } from './snapshot.js';

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

/** Far rows as one row group. Plans use it; it is never opened. */
export function farRowGroup(
  { file, rows, timeMinMs, timeMaxMs }: Pick<SegmentEntry, 'file' | 'rows' | 'timeMinMs' | 'timeMaxMs'>,
  far: FarRows,
): RowGroup {
  const facts = { file, rows, timeMinMs, timeMaxMs, far, index: 0, hot: false };
  return {
    ...facts,
    filters: { rowGroups: 1, ask: () => null },
    opened: () => null,
    open: () => Promise.reject(new Error(`${file} is in the far tier and can't be opened`)),
  };
}
