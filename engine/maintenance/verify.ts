import { DamageError, isLogstrataError, LogstrataError } from '../core/errors.js';
import { schemaOf, type AgentState } from '../store/reading/agent-state.js';
import type { Directory } from '../store/disk/directory.js';
import { scanHotSegment, type HotDamage } from '../store/hot/hot-segment-file.js';
import {
  impossibleNumber,
  listManifests,
  manifestName,
  readManifestFile,
  lostManifest,
  namedFiles,
  unnamedFiles,
} from '../store/manifest/manifest-file.js';
import {
  isFarOnly,
  liveRows,
  liveRuns,
  mergeRejected,
  type HotEntry,
  type Manifest,
  type RejectedEntry,
  type SegmentEntry,
} from '../store/manifest/manifest.js';
import { asDamage } from '../store/reading/recovery.js';
import { rejectedPieces } from '../store/manifest/rejected-file.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import { verifySegment, type SegmentDamage } from '../store/sealed/verify-segment.js';
import { Coverage, restorableOf, type Restorable } from '../store/manifest/coverage.js';
import { verifyAttached } from './attached-state.js';
import { clipRuns, lostInHot, lostRun, missingHot } from './lost-records.js';

interface Totals {
  files: number;
  bytes: number;
  records: number;
  readonly damages: Damage[];
}

/**
 * Reads every byte of the files that the agent's manifest names, verifies checksums, then decodes the data. Damage is reported with the
 * positions of the records that it costs. Changes nothing.
 */
export async function verifyAgent(
  directory: Directory,
  state: AgentState,
  objects: ObjectStorage | undefined,
  options: VerifyOptions,
): Promise<VerifyReport> {
  const totals: Totals = { files: 0, bytes: 0, records: 0, damages: [] };
  const { agent } = state;
  const manifest = await verifyManifests(directory, agent, totals);
  if (manifest === undefined) return { ...totals, unnamedFiles: [], restorable: [] };
  const allBytes = Math.max(1, sizeOf(manifest));
  const step = (): void => {
    if (options.signal?.aborted) throw new LogstrataError('cancelled', 'the verification was stopped');
    options.onProgress?.(Math.min(1, totals.bytes / allBytes));
  };
  for (const segment of manifest.segments) {
    // Segments that are only in the far tier have no local file.
    if (isFarOnly(segment)) continue;
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
  const attached = await verifyAttached(directory, agent, manifest.attached, objects);
  totals.files += attached.files;
  totals.bytes += attached.bytes;
  totals.records += attached.records;
  for (const damage of attached.damages)
    totals.damages.push({ ...damage, rowGroup: null, column: null, positions: [] });
  const named = namedFiles(manifest, mergeRejected(manifest.rejected, state.hotRejected()));
  return {
    ...totals,
    unnamedFiles: await unnamedFiles(directory, agent, named),
    restorable: restorableOf(manifest),
  };
}

function sizeOf(manifest: Manifest): number {
  const sealed = manifest.segments.reduce(
    (sum, segment) => sum + (isFarOnly(segment) ? 0 : segment.bytes),
    0,
  );
  const hot = manifest.hot.reduce((sum, file) => sum + (file.committedBytes ?? file.foldedBytes), 0);
  return manifest.rejected.reduce((sum, file) => sum + file.bytes, sealed + hot);
}

/** Opens an agent and verifies it. If the agent cannot be opened, reports the damages of its manifests, or that all manifests are missing. */
export async function verifyOpening(
  directory: Directory,
  agent: string,
  open: () => Promise<{ verify(options: VerifyOptions): Promise<VerifyReport> }>,
  options: VerifyOptions,
): Promise<VerifyReport> {
  try {
    return await (await open()).verify(options);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    const totals: Totals = { files: 0, bytes: 0, records: 0, damages: [] };
    await verifyManifests(directory, agent, totals);
    if (totals.damages.length === 0) totals.damages.push(damageOf(agent, error, null));
    return { ...totals, unnamedFiles: [], restorable: [] };
  }
}

/** Reads the manifests that are kept. Only damage to the newest one costs records. */
async function verifyManifests(
  directory: Directory,
  agent: string,
  totals: Totals,
): Promise<Manifest | undefined> {
  let newest: Manifest | undefined;
  const { numbers, impossible } = await listManifests(directory, agent);
  for (const number of numbers) {
    const file = manifestName(number);
    newest = undefined;
    try {
      totals.bytes += await directory.size(`${agent}/${file}`);
      totals.files++;
      newest = await readManifestFile(directory, agent, number);
    } catch (error) {
      // Removed by the writer, which publishes meanwhile and keeps the last two.
      if (isLogstrataError(error) && error.code === 'not_found') continue;
      totals.damages.push(damageOf(file, asDamage(error), number === numbers.at(-1) ? null : 0));
    }
  }
  const lost = newest === undefined ? undefined : await lostManifest(directory, newest);
  if (lost !== undefined) totals.damages.push(damageOf(agent, lost, null));
  for (const file of impossible)
    totals.damages.push(damageOf(file, impossibleNumber(directory, `${agent}/${file}`), null));
  return newest;
}

function damageOf(file: string, error: DamageError, records: number | null): Damage {
  return {
    file,
    offset: error.offset ?? null,
    rowGroup: error.rowGroup ?? null,
    column: error.column ?? null,
    reason: error.message,
    records,
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
  for (const damage of await verifySegment(directory, `${agent}/${segment.file}`, segment, schema)) {
    const { offset, rowGroup, column, reason } = damage;
    const positions = lostPositions(segment, damage);
    const records = positions.reduce((sum, range) => sum + range.records, 0);
    totals.damages.push({ file: segment.file, offset, rowGroup, column, reason, records, positions });
  }
}

/** The positions that cannot be answered: those of the row group, or of the whole file. */
function lostPositions(segment: SegmentEntry, { costs, rowGroup }: SegmentDamage): Damage['positions'] {
  if (costs === 'nothing') return [];
  let first = 0;
  let end = segment.rows;
  if (costs === 'rowGroup' && rowGroup !== null) {
    for (let i = 0; i < rowGroup; i++) first += segment.rowGroupRows[i]!;
    end = first + segment.rowGroupRows[rowGroup]!;
  }
  return clipRuns(liveRuns(segment), first, end).map((run) => {
    const { first, last } = lostRun(segment.file, '', run);
    return { first: first!, last: last!, records: run.rows };
  });
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
  // If the agent is damaged, this process could not read the file, so its current length is unknown.
  const read = state.damage === undefined ? Math.max(known, entry.foldedBytes) : null;
  const lengths = { foldedBytes: entry.foldedBytes, committedBytes: entry.committedBytes ?? read };
  try {
    const schema = schemaOf(manifest, entry.schemaVersion);
    const { batches, damages, endBytes } = await scanHotSegment(directory, path, schema, lengths);
    const whole = new Coverage();
    for (const { runs } of batches) for (const run of runs) whole.add(run);
    totals.bytes += endBytes;
    totals.records += batches.reduce((sum, { batch }) => sum + batch.length, 0);
    for (const damage of damages) totals.damages.push(hotDamage(entry, damage, whole));
  } catch (error) {
    const damage = missingHot(entry, asDamage(error).message);
    totals.damages.push(hotDamage(entry, damage, new Coverage()));
  }
}

function hotDamage(entry: HotEntry, damage: HotDamage, whole: Coverage): Damage {
  const lost = lostInHot(entry, damage, whole);
  const positions = lost.flatMap(({ first, last, records }) =>
    first === null || last === null || records === null ? [] : [{ first, last, records }],
  );
  const isKnown = positions.length === lost.length;
  const records = isKnown ? positions.reduce((sum, range) => sum + range.records, 0) : null;
  const { offset, reason } = damage;
  return { file: entry.file, offset, rowGroup: null, column: null, reason, records, positions };
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
    // Reading to the end verifies the length and checksum.
    for await (const piece of rejectedPieces(directory, path, entry)) totals.bytes += piece.length;
  } catch (error) {
    totals.damages.push(damageOf(entry.file, asDamage(error), 0));
  }
}

export interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** A damaged place, and the records that it costs. */
export interface Damage {
  readonly file: string;
  /** Byte offset of the damage, if known. */
  readonly offset: number | null;
  readonly rowGroup: number | null;
  readonly column: string | null;
  readonly reason: string;
  /** Number of records that cannot be answered; null if unknown. */
  readonly records: number | null;
  /** First and last position of these records, as cursors, as far as known. */
  readonly positions: readonly { readonly first: string; readonly last: string; readonly records: number }[];
}

export interface VerifyReport {
  readonly files: number;
  readonly bytes: number;
  readonly records: number;
  readonly damages: readonly Damage[];
  /** Files in the agent's folder that the manifest does not name. */
  readonly unnamedFiles: readonly string[];
  /** Records lost earlier that can be restored by loading their files again. */
  readonly restorable: readonly Restorable[];
}
