import { createHash } from 'node:crypto';
import { isFarOnly, liveRows, liveRuns, type Manifest, type OrdinalRun } from '../store/manifest/manifest.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { SnapshotRuns } from '../store/reading/snapshot.js';
import type { Border, BorderUnits } from './border.js';

/** Builds the border of an agent's newest state, for readers on other machines. Throws when that state can't be read. */
export function borderOf(state: AgentState): Border {
  const snapshot = state.snapshot();
  try {
    const { agent, schema, manifest } = state;
    return {
      agent,
      manifest: manifest?.number ?? 0,
      schema,
      far: manifest === undefined ? nothingFar : unitsOf(manifest),
      near: nearOf(snapshot.runs, manifest),
      nearRowBytes: manifest === undefined ? 0 : rowBytesOf(manifest),
    };
  } finally {
    snapshot.release();
  }
}

const nothingFar: BorderUnits = { tag: '', schemas: [], units: [] };
const known = new WeakMap<Manifest, BorderUnits>();

/** The units that the manifest has in the far tier. Built once for each manifest, because there may be very many units. */
function unitsOf(manifest: Manifest): BorderUnits {
  let far = known.get(manifest);
  if (far === undefined) {
    const shipped = manifest.segments.filter((entry) => entry.far !== undefined);
    const versions = new Set(shipped.map(({ schemaVersion }) => schemaVersion));
    const hash = createHash('sha256');
    for (const { file, liveFrom, far: copy } of shipped)
      hash.update(`${file} ${copy!.attempt} ${liveFrom ?? 0},`);
    far = {
      tag: hash.digest('hex').slice(0, 32),
      schemas: manifest.schemas.filter(({ version }) => versions.has(version)),
      units: shipped.map((entry) => ({
        runs: liveRuns(entry),
        timeMinMs: entry.timeMinMs,
        timeMaxMs: entry.timeMaxMs,
        schemaVersion: entry.schemaVersion,
        copy: entry.far!,
      })),
    };
    known.set(manifest, far);
  }
  return far;
}

/** Positions of the records that have no copy in the far tier, with adjacent runs joined. */
function nearOf(runs: SnapshotRuns, manifest: Manifest | undefined): OrdinalRun[] {
  const shipped = new Set(
    (manifest?.segments ?? []).flatMap(({ file, far }) => (far === undefined ? [] : [file])),
  );
  const near: OrdinalRun[] = [];
  for (const { rowGroup, partition, firstOrdinal, rows } of runs) {
    if (shipped.has(rowGroup.file)) continue;
    const last = near.at(-1);
    if (last?.partition === partition && last.firstOrdinal + last.rows === firstOrdinal)
      near[near.length - 1] = { ...last, rows: last.rows + rows };
    else near.push({ partition, firstOrdinal, rows });
  }
  return near;
}

function rowBytesOf({ segments }: Manifest): number {
  const here = segments.filter((entry) => !isFarOnly(entry));
  const rows = here.reduce((sum, entry) => sum + liveRows(entry), 0);
  const bytes = here.reduce((sum, entry) => sum + entry.bytes, 0);
  return rows === 0 ? 0 : Math.ceil(bytes / rows);
}
