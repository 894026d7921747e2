import type { Damage, VerifyOptions, VerifyReport } from '../archive.js';
import { formatCursor } from '../cursor.js';
import { DamageError, LogstrataError, isLogstrataError } from '../errors.js';
import { schemaOf, type AgentState } from '../storage/agent-state.js';
import type { Directory } from '../storage/directory.js';
import { readHotSegment } from '../storage/hot-segment-file.js';
import { manifestName, manifestNumbers, readManifestFile } from '../storage/manifest-file.js';
import {
  liveRows,
  liveRuns,
  mergeRejected,
  type HotEntry,
  type Manifest,
  type RejectedEntry,
  type Run,
  type SegmentEntry,
} from '../storage/manifest.js';
import { rejectedPieces } from '../storage/rejected-file.js';
import { namedFiles, unnamedFiles } from '../storage/removals.js';
import { verifySegment, type SegmentDamage } from '../storage/verify-segment.js';

interface Totals {
  files: number;
  bytes: number;
  records: number;
  readonly damages: Damage[];
}

/**
 * Reads every byte that the agent's manifest names and compares it with its checksums; then decodes it. Damage is reported,
 * with the positions whose records it costs, and changes nothing.
 */
export async function verifyAgent(
  directory: Directory,
  state: AgentState,
  options: VerifyOptions,
): Promise<VerifyReport> {
  const totals: Totals = { files: 0, bytes: 0, records: 0, damages: [] };
  const { agent } = state;
  const manifest = await verifyManifests(directory, agent, totals);
  if (manifest === undefined) return { ...totals, unnamedFiles: [] };
  const allBytes = Math.max(1, sizeOf(manifest));
  const step = (): void => {
    if (options.signal?.aborted) throw new LogstrataError('cancelled', 'the verification was stopped');
    options.onProgress?.(Math.min(1, totals.bytes / allBytes));
  };
  for (const segment of manifest.segments) {
    await verifySealed(directory, agent, manifest, segment, totals);
    step();
  }
  for (const hot of manifest.hot) {
    await verifyHot(directory, state, manifest, hot, totals);
    step();
  }
  for (const rejected of mergeRejected(manifest.rejected, state.hotRejected())) {
    await verifyRejected(directory, agent, rejected, totals);
    step();
  }
  const named = namedFiles(manifest, mergeRejected(manifest.rejected, state.hotRejected()));
  return { ...totals, unnamedFiles: await unnamedFiles(directory, agent, named) };
}

function sizeOf(manifest: Manifest): number {
  const sealed = manifest.segments.reduce((sum, segment) => sum + segment.bytes, 0);
  const hot = manifest.hot.reduce((sum, file) => sum + (file.committedBytes ?? file.foldedBytes), 0);
  return manifest.rejected.reduce((sum, file) => sum + file.bytes, sealed + hot);
}

/** Reads the manifests that are kept. The newest is what counts; an older one that is damaged costs no record. */
async function verifyManifests(
  directory: Directory,
  agent: string,
  totals: Totals,
): Promise<Manifest | undefined> {
  let newest: Manifest | undefined;
  for (const number of await manifestNumbers(directory, agent)) {
    const file = manifestName(number);
    newest = undefined;
    try {
      totals.bytes += await directory.size(`${agent}/${file}`);
      totals.files++;
      newest = await readManifestFile(directory, agent, number);
    } catch (error) {
      // The writer goes on publishing, and keeps the last two.
      if (isLogstrataError(error) && error.code === 'not_found') continue;
      totals.damages.push(damageOf(file, asDamage(error)));
    }
  }
  return newest;
}

function damageOf(file: string, error: DamageError): Damage {
  return {
    file,
    offset: error.offset ?? null,
    rowGroup: error.rowGroup ?? null,
    column: error.column ?? null,
    reason: error.message,
    positions: [],
  };
}

async function verifySealed(
  directory: Directory,
  agent: string,
  manifest: Manifest,
  segment: SegmentEntry,
  totals: Totals,
): Promise<void> {
  totals.files++;
  totals.bytes += segment.bytes;
  totals.records += liveRows(segment);
  const schema = schemaOf(manifest, segment.schemaVersion);
  for await (const damage of verifySegment(directory, `${agent}/${segment.file}`, segment, schema)) {
    const { offset, rowGroup, column, reason } = damage;
    totals.damages.push({
      file: segment.file,
      offset,
      rowGroup,
      column,
      reason,
      positions: lostPositions(segment, damage),
    });
  }
}

/** The positions whose records can't be answered: those of the row group, or of the whole file. */
function lostPositions(segment: SegmentEntry, { costs, rowGroup }: SegmentDamage): Damage['positions'] {
  if (costs === 'nothing') return [];
  let first = 0;
  let end = segment.rows;
  if (costs === 'rowGroup' && rowGroup !== null) {
    for (let i = 0; i < rowGroup; i++) first += segment.rowGroupRows[i]!;
    end = first + segment.rowGroupRows[rowGroup]!;
  }
  return liveRuns(segment).flatMap((run) => clipRun(run, first, end));
}

function clipRun(run: Run, first: number, end: number): Damage['positions'] {
  const from = Math.max(run.firstRow, first);
  const to = Math.min(run.firstRow + run.rows, end);
  if (from >= to) return [];
  const ordinal = run.firstOrdinal + from - run.firstRow;
  return [
    {
      first: formatCursor({ partition: run.partition, ordinal }),
      last: formatCursor({ partition: run.partition, ordinal: ordinal + to - from - 1 }),
      records: to - from,
    },
  ];
}

async function verifyHot(
  directory: Directory,
  state: AgentState,
  manifest: Manifest,
  entry: HotEntry,
  totals: Totals,
): Promise<void> {
  totals.files++;
  const path = `${state.agent}/${entry.file}`;
  const known = state.hot.find((hot) => hot.entry.file === entry.file)?.endBytes ?? 0;
  const committed = entry.committedBytes ?? Math.max(known, entry.foldedBytes);
  try {
    const read = await readHotSegment(directory, path, schemaOf(manifest, entry.schemaVersion), committed);
    totals.bytes += read.endBytes;
    totals.records += read.batches.reduce((sum, batch) => sum + batch.batch.length, 0);
  } catch (error) {
    totals.damages.push(damageOf(entry.file, asDamage(error)));
  }
}

async function verifyRejected(
  directory: Directory,
  agent: string,
  entry: RejectedEntry,
  totals: Totals,
): Promise<void> {
  totals.files++;
  const path = `${agent}/${entry.file}`;
  try {
    // Reading it to the end checks all of it.
    for await (const piece of rejectedPieces(directory, path, entry)) totals.bytes += piece.length;
  } catch (error) {
    totals.damages.push(damageOf(entry.file, asDamage(error)));
  }
}

/** A file that is gone is damage too; anything else that fails is not about the data. */
function asDamage(error: unknown): DamageError {
  if (error instanceof DamageError) return error;
  if (isLogstrataError(error) && error.code === 'not_found') {
    return new DamageError(error.message, error.path === undefined ? {} : { path: error.path });
  }
  throw error;
}
