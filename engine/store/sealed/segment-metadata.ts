import { DamageError } from '../../core/errors.js';
import { makeSchema, type Schema } from '../../core/schema.js';
import {
  countField,
  countsField,
  listField,
  objectsField,
  parseJsonObject,
  type JsonObject,
  otherFormat,
} from '../disk/checked-json.js';
import { readField, readRemoved } from '../manifest/manifest-format.js';
import type { Run, SegmentEntry } from '../manifest/manifest.js';
import type { FilterPlaces } from './segment-filters.js';

/** The key-value metadata of a segment's footer. Only our own readers use it; other tools ignore it. */
export interface SegmentMetadata extends FilterPlaces {
  readonly schema: Schema;
  readonly schemaVersion: number;
  readonly runs: readonly Run[];
  /** crc32 of each column chunk, by row group and then by column of the file. */
  readonly checksums: readonly (readonly number[])[];
  /** As in the manifest, of a segment with a column for removed rows. */
  readonly removed?: SegmentEntry['removed'];
  /** Length of the segment's header. */
  readonly headerBytes: number;
  /** Length of the summary before the footer; 0 in a segment written before value filters were introduced. */
  readonly summaryBytes: number;
}

/** Raised with each change that an older reader would misread. */
export const segmentFormat = 2;

const keys = { format: 'logstrata.format', segment: 'logstrata.segment' } as const;

/** The numbers of each entry of the lists, in the order in which they are stored. */
const columnsOf = {
  runs: ['partition', 'firstOrdinal', 'firstRow', 'rows'],
  gramFilters: ['rowGroup', 'field', 'offset', 'gramBytes', 'gramBits', 'trigramBits', 'gramEighths'],
  valueFilters: ['rowGroup', 'field', 'offset', 'blocks'],
  sketches: ['field', 'offset', 'stripes'],
} as const;
type List = keyof typeof columnsOf;

/** The key-value pairs of the footer. */
export function writeMetadata(metadata: SegmentMetadata): Map<string, string> {
  const { schema, schemaVersion, checksums, headerBytes, summaryBytes } = metadata;
  const rowsOf = (list: List): number[][] =>
    metadata[list].map((entry) => columnsOf[list].map((name) => entry[name as keyof typeof entry]));
  const segment = {
    schema: schema.fields,
    schemaVersion,
    runs: rowsOf('runs'),
    checksums,
    gramFilters: rowsOf('gramFilters'),
    valueFilters: rowsOf('valueFilters'),
    sketches: rowsOf('sketches'),
    headerBytes,
    summaryBytes,
    removed: metadata.removed?.flat(),
  };
  return new Map([
    [keys.format, String(segmentFormat)],
    [keys.segment, JSON.stringify(segment)],
  ]);
}

/** Decodes what `writeMetadata` wrote. Throws, without a place, `unsupported` for another format and `DamageError` for anything else. */
export function readMetadata(keyValues: ReadonlyMap<string, string>): SegmentMetadata {
  const format = keyValues.get(keys.format);
  if (format !== String(segmentFormat)) {
    if (/^[1-9]\d{0,8}$/.test(format ?? ''))
      throw otherFormat('segment format', Number(format), segmentFormat);
    throw new DamageError(`the segment's format is ${format ?? 'missing'}, expected ${segmentFormat}`, {});
  }
  const segment = parseJsonObject(keyValues.get(keys.segment) ?? '', `the metadata "${keys.segment}"`);
  return {
    schema: makeSchema(objectsField(segment, 'schema', readField)),
    schemaVersion: countField(segment, 'schemaVersion'),
    runs: entriesOf(segment, 'runs'),
    checksums: rowsOf(segment, 'checksums', null),
    // Older segments have no `gramEighths`: their bitmaps are not squeezed, so they have all eighths.
    gramFilters: entriesOf(segment, 'gramFilters', [8]),
    // Older segments have no value filters.
    valueFilters: segment['valueFilters'] === undefined ? [] : entriesOf(segment, 'valueFilters'),
    sketches: segment['sketches'] === undefined ? [] : entriesOf(segment, 'sketches'),
    headerBytes: countField(segment, 'headerBytes'),
    summaryBytes: segment['summaryBytes'] === undefined ? 0 : countField(segment, 'summaryBytes'),
    ...readRemoved(segment),
  };
}

/** The entries of a list. `defaults` are the values of the last numbers where an entry does not have them. */
function entriesOf<L extends List>(
  segment: JsonObject,
  list: L,
  defaults: readonly number[] = [],
): SegmentMetadata[L][number][] {
  const names: readonly string[] = columnsOf[list];
  return rowsOf(segment, list, names.length - defaults.length, names.length).map((row) => {
    const entry: Record<string, number> = {};
    for (const [i, name] of names.entries()) entry[name] = row[i] ?? defaults.at(i - names.length)!;
    return entry as unknown as SegmentMetadata[L][number];
  });
}

/** A list of lists of integers, each of `length` to `lengthMax` numbers; of any length if `length` is null. */
function rowsOf(object: JsonObject, key: string, length: number | null, lengthMax = length): number[][] {
  return listField(object, key).map((row) => {
    const numbers = countsField({ [key]: row }, key);
    if (length !== null && (numbers.length < length || numbers.length > lengthMax!)) {
      const expected = lengthMax === length ? length : `${length} to ${lengthMax}`;
      throw new DamageError(`"${key}" has a row of ${numbers.length} numbers, expected ${expected}`, {});
    }
    return numbers;
  });
}
