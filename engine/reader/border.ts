import { createHash } from 'node:crypto';
import {
  flatRuns,
  readFarCopy,
  readRuns,
  readSchema,
  readSchemas,
} from '../store/manifest/manifest-format.js';
import type { FarCopy } from '../store/manifest/far-copy.js';
import type { Manifest, OrdinalRun, Run } from '../store/manifest/manifest.js';
import {
  asObject,
  countField,
  objectsField,
  parseJsonObject,
  textField,
  timeOrNullField,
  type JsonObject,
} from '../store/disk/checked-json.js';
import { DamageError } from '../terms/errors.js';
import type { Schema } from '../terms/schema.js';

/** A unit in the far tier: the live rows of one attempt. */
export interface BorderUnit {
  readonly runs: readonly Run[];
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly schemaVersion: number;
  readonly copy: FarCopy;
}

/** What is in the far tier. It changes seldom, and is long. */
export interface BorderUnits {
  /** Changes with it. */
  readonly tag: string;
  readonly schemas: Manifest['schemas'];
  readonly units: readonly BorderUnit[];
}

/** One committed state of an agent, as far as somebody on another machine has to know it: where each of its records is. */
export interface Border {
  readonly agent: string;
  /** Number of the writer's manifest. */
  readonly manifest: number;
  /** The fields that are shown. */
  readonly schema: Schema;
  readonly far: BorderUnits;
  /** Positions of all other records, ascending: the writer is asked for them. */
  readonly near: readonly OrdinalRun[];
  /** Bytes that such a record takes, about. */
  readonly nearRowBytes: number;
}

/** A change that an older program would misread counts it up. */
const borderVersion = 1;

/** The fields by a name that changes with their names, types and order. */
export function schemaTag({ fields }: Schema): string {
  const text = fields.map(({ name, type }) => `${name} ${type}`).join(',');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** A border as JSON. Units are left out where the reader has those of `known` already. */
export function encodeBorder(border: Border, known: string | null): string {
  const { agent, manifest, schema, far, near, nearRowBytes } = border;
  const runs = near.map((run) => ({ ...run, firstRow: 0 }));
  return JSON.stringify({
    version: borderVersion,
    agent,
    manifest,
    schema,
    near: { runs: flatRuns(runs), rowBytes: nearRowBytes },
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
 * Reads a border; units that were left out are those of `known`. Throws `damaged` for what is none, with what is wrong.
 */
export function decodeBorder(text: string, known: BorderUnits | null): Border {
  const object = parseJsonObject(text, 'what the writer says');
  const version = countField(object, 'version');
  if (version !== borderVersion)
    throw new DamageError(
      `the writer speaks version ${version}, this reader ${borderVersion}: both have to be of one release`,
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
      throw new DamageError(`a unit has fields of version ${schemaVersion}, which is not there`, {});
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

/** Throws where runs overlap or are out of order. */
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
