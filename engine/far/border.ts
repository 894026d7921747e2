import { createHash } from 'node:crypto';
import {
  flatRuns,
  readFarCopy,
  readRuns,
  readSchema,
  readSchemas,
} from '../store/manifest/manifest-format.js';
import {
  type FarCopy,
  type Manifest,
  type OrdinalRun,
  type Run,
  isFarOnly,
  liveRows,
  liveRuns,
} from '../store/manifest/manifest.js';
import {
  asObject,
  countField,
  flagField,
  objectsField,
  parseJsonObject,
  textField,
  timeOrNullField,
  type JsonObject,
} from '../store/disk/checked-json.js';
import { DamageError } from '../core/errors.js';
import type { Schema } from '../core/schema.js';
import type { AgentStore } from '../archive/agent-store.js';
import type { SnapshotRun, SnapshotRuns } from '../store/reading/snapshot.js';

/** A unit in the far tier: the live rows of one attempt. */
export interface BorderUnit {
  readonly runs: readonly Run[];
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly schemaVersion: number;
  readonly copy: FarCopy;
}

/** All units in the far tier. The list is long and seldom changes, so it is only sent when its tag has changed. */
export interface BorderUnits {
  /** A hash of the units: a reader that has this tag already has these units. */
  readonly tag: string;
  readonly schemas: Manifest['schemas'];
  readonly units: readonly BorderUnit[];
}

/**
 * Where each record of one committed state of an agent is: in the far tier, or only near the writer. The writer sends it to
 * readers on other machines, which plan their queries with it.
 */
export interface Border {
  readonly agent: string;
  /** Number of the writer's manifest. */
  readonly manifest: number;
  /** The agent's current fields. Units may be stored with the fields of an earlier version. */
  readonly schema: Schema;
  readonly far: BorderUnits;
  /** Positions of the records without a copy in the far tier, ascending. A reader asks the writer for them. */
  readonly near: readonly OrdinalRun[];
  /** Estimated bytes of a near record; 0 when there is nothing to estimate it from. */
  readonly nearRowBytes: number;
  /** Whether some positions of `near` have rows that are not answered, so that they can't be counted by their number. */
  readonly nearHides: boolean;
}

/** Version of the JSON format. It is raised by each change that an older program would misread. */
const borderVersion = 2;

/** A hash of the fields' names, types and order. */
export function schemaTag({ fields }: Schema): string {
  const text = fields.map(({ name, type }) => `${name} ${type}`).join(',');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Encodes a border as JSON. `known` is the tag of the units that the reader has; units with this tag are left out. */
export function encodeBorder(border: Border, known: string | null): string {
  const { agent, manifest, schema, far, near, nearRowBytes, nearHides } = border;
  const runs = near.map((run) => ({ ...run, firstRow: 0 }));
  return JSON.stringify({
    version: borderVersion,
    agent,
    manifest,
    schema,
    near: { runs: flatRuns(runs), rowBytes: nearRowBytes, hides: nearHides },
    tag: far.tag,
    ...(far.tag === known
      ? {}
      : {
          schemas: far.schemas,
          units: far.units.map((unit) => ({ ...unit, runs: flatRuns(unit.runs) })),
        }),
  });
}

/**
 * Decodes a border. Units that were left out are taken from `known`. Throws `damaged`, with what is wrong, when `text` is not a border.
 */
export function decodeBorder(text: string, known: BorderUnits | null): Border {
  const object = parseJsonObject(text, 'what the writer says');
  const version = countField(object, 'version');
  if (version !== borderVersion)
    throw new DamageError(
      `the writer uses protocol version ${version}, this reader version ${borderVersion}: install the same release on both`,
      {},
    );
  const near = asObject(object['near'], 'near');
  return {
    agent: textField(object, 'agent'),
    manifest: countField(object, 'manifest'),
    schema: readSchema(asObject(object['schema'], 'schema')),
    far: readUnits(object, known),
    near: ascending(readRuns(near)),
    nearRowBytes: countField(near, 'rowBytes'),
    nearHides: flagField(near, 'hides'),
  };
}

function readUnits(object: JsonObject, known: BorderUnits | null): BorderUnits {
  const tag = textField(object, 'tag');
  if (tag === known?.tag) return known;
  const schemas = readSchemas(object);
  const versions = new Set(schemas.map(({ version }) => version));
  const units = objectsField(object, 'units', (item): BorderUnit => {
    const schemaVersion = countField(item, 'schemaVersion');
    if (!versions.has(schemaVersion))
      throw new DamageError(`a unit has fields of version ${schemaVersion}, which is unknown`, {});
    return {
      runs: ascending(readRuns(item)),
      timeMinMs: timeOrNullField(item, 'timeMinMs'),
      timeMaxMs: timeOrNullField(item, 'timeMaxMs'),
      schemaVersion,
      copy: readFarCopy(asObject(item['copy'], 'copy')),
    };
  });
  return { tag, schemas, units };
}

/** Returns the runs. Throws `damaged` when they overlap or are out of order. */
export function ascending<Positioned extends OrdinalRun>(runs: Positioned[]): Positioned[] {
  for (let i = 1; i < runs.length; i++) {
    const { partition, firstOrdinal, rows } = runs[i - 1]!;
    const next = runs[i]!;
    if (next.partition > partition) continue;
    if (next.partition < partition || next.firstOrdinal < firstOrdinal + rows)
      throw new DamageError(`runs overlap at ordinal ${next.firstOrdinal} of hour ${next.partition}`, {});
  }
  return runs;
}

/** Builds the border of an agent's newest state, for readers on other machines. Throws when that state can't be read. */
export async function borderOf(store: AgentStore): Promise<Border> {
  const { state, access } = store.context;
  await access.refresh();
  const snapshot = state.snapshot();
  try {
    const { agent, schema, manifest } = state;
    const near = nearOf(snapshot.runs, manifest);
    return {
      agent,
      manifest: manifest?.number ?? 0,
      schema,
      far: manifest === undefined ? nothingFar : unitsOf(manifest),
      near: joined(near),
      nearRowBytes: manifest === undefined ? 0 : rowBytesOf(manifest),
      nearHides: near.some(({ rowGroup }) => rowGroup.hides === true),
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

/** The runs of records that have no copy in the far tier. */
function nearOf(runs: SnapshotRuns, manifest: Manifest | undefined): SnapshotRun[] {
  const shipped = new Set(
    (manifest?.segments ?? []).flatMap(({ file, far }) => (far === undefined ? [] : [file])),
  );
  return [...runs].filter(({ rowGroup }) => !shipped.has(rowGroup.file));
}

/** The positions of runs, with adjacent ones joined. */
function joined(runs: readonly SnapshotRun[]): OrdinalRun[] {
  const positions: OrdinalRun[] = [];
  for (const { partition, firstOrdinal, rows } of runs) {
    const last = positions.at(-1);
    if (last?.partition === partition && last.firstOrdinal + last.rows === firstOrdinal)
      positions[positions.length - 1] = { ...last, rows: last.rows + rows };
    else positions.push({ partition, firstOrdinal, rows });
  }
  return positions;
}

function rowBytesOf({ segments }: Manifest): number {
  const here = segments.filter((entry) => !isFarOnly(entry));
  const rows = here.reduce((sum, entry) => sum + liveRows(entry), 0);
  const bytes = here.reduce((sum, entry) => sum + entry.bytes, 0);
  return rows === 0 ? 0 : Math.ceil(bytes / rows);
}
