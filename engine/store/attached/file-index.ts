import { closing } from '../../core/waiting.js';
import type { Bounds } from '../../parquet/statistics.js';
import { metadataBytesMax, statisticsBytesMax } from '../../core/limits.js';
import { readingOf, type Field } from '../../core/schema.js';
import {
  countField,
  listField,
  objectsField,
  parseJsonObject,
  textOrNullField,
  type JsonObject,
  decodeCheckedText,
  encodeCheckedText,
  type TextFormat,
  readingChecked,
} from '../disk/checked-json.js';
import type { Directory } from '../disk/directory.js';
import { DamageError } from '../../core/errors.js';

const factsText: TextFormat = { magic: 'logstrata-index', version: 1 };

/**
 * The index of an attached file, in the agent's folder. The file has the filters, their sketches and the summary in the same form as a
 * segment, followed by the facts.
 */
export interface FileIndex {
  /** Path relative to the agent's folder: `attached/<name>.index`. */
  readonly file: string;
  readonly bytes: number;
  /** Offset and length of the summary. The facts follow it, up to the end of the file. */
  readonly summaryOffset: number;
  readonly summaryBytes: number;
  /** The indexed fields, as they were read. */
  readonly fields: readonly Field[];
  /** Names of fields for which the file has no column. */
  readonly without: readonly string[];
}

/** What an index holds besides filters, for each of its fields. */
export interface IndexFacts {
  readonly fields: readonly FieldFacts[];
}

/** What an index holds of one field. */
export interface FieldFacts {
  /** By span of the file. */
  readonly zones: readonly ZoneFacts[];
  /** By row group: crc32 of the column chunk that was indexed; null if unknown. */
  readonly checksums: readonly (number | null)[];
}

/** The zone map of one span: number of nulls, and minimum and maximum (null if unknown). */
export interface ZoneFacts {
  readonly nullCount: number;
  readonly bounds: Bounds | null;
}

/** Encodes the facts as the end of an index file. */
export function encodeFacts({ fields }: IndexFacts): Uint8Array {
  const lines = fields.map(({ zones, checksums }) =>
    JSON.stringify({
      checksums,
      nulls: zones.map(({ nullCount }) => nullCount),
      mins: zones.map(({ bounds }) => (bounds === null ? null : hexOf(bounds.min))),
      maxs: zones.map(({ bounds }) => (bounds === null ? null : hexOf(bounds.max))),
    }),
  );
  return encodeCheckedText(factsText, `{"fields":[\n${lines.join(',\n')}\n]}\n`);
}

/**
 * Reads the facts of an index. `spans` and `rowGroups` are the numbers of the file's spans and row groups. Throws `damaged`, `not_found`
 * and `io`.
 */
export async function readFacts(
  directory: Directory,
  agent: string,
  index: FileIndex,
  spans: number,
  rowGroups: number,
): Promise<IndexFacts> {
  const path = `${agent}/${index.file}`;
  const where = `${directory.location}/${path}`;
  const advice = `; \`logstrata index ${agent} --again\` rebuilds it`;
  return readingChecked('the index', where, advice, async () => {
    const from = index.summaryOffset + index.summaryBytes;
    const length = Math.min(index.bytes - from, metadataBytesMax);
    const bytes = await closing(directory.openRead(path), (file) => file.read(from, length));
    const object = parseJsonObject(decodeCheckedText(factsText, bytes), 'the index');
    const fields = objectsField(object, 'fields', (item) => readField(item, spans, rowGroups));
    if (fields.length !== index.fields.length) throw new DamageError('it has other fields', {});
    return { fields };
  });
}

function readField(item: JsonObject, spans: number, rowGroups: number): FieldFacts {
  const nulls = listField(item, 'nulls').map((nulls) => countField({ nulls }, 'nulls'));
  const bound = (list: readonly unknown[], i: number): Uint8Array | null => {
    const text = textOrNullField({ bound: list[i] ?? null }, 'bound');
    return text === null ? null : new Uint8Array(Buffer.from(text.slice(0, 2 * statisticsBytesMax), 'hex'));
  };
  const mins = listField(item, 'mins');
  const maxs = listField(item, 'maxs');
  const checksums = listField(item, 'checksums').map((checksum) =>
    checksum === null ? null : countField({ checksum }, 'checksum', 0xffff_ffff),
  );
  if (nulls.length !== spans || checksums.length !== rowGroups)
    throw new DamageError('it belongs to another file', {});
  const zones = nulls.map((nullCount, i) => {
    const min = bound(mins, i);
    const max = bound(maxs, i);
    return { nullCount, bounds: min === null || max === null ? null : { min, max } };
  });
  return { zones, checksums };
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Whether an indexed field is read in the same way as the field is now. */
export function isSameReading(a: Field, b: Field): boolean {
  return a.type === b.type && a.index === b.index && readingOf(a) === readingOf(b);
}
