import { DamageError } from '../../terms/errors.js';
import { makeSchema, type Schema } from '../../terms/schema.js';
import { countField, countsField, listField, objectsField, parseJsonObject } from '../disk/checked-json.js';
import type { JsonObject } from '../disk/checked-json.js';
import { otherFormat } from '../disk/format-version.js';
import { readField } from '../manifest/manifest-format.js';
import type { Run } from '../manifest/manifest.js';
import type { FilterPlaces } from './segment-filters.js';

/** The key-value metadata of a segment's footer. Only our own readers use it; other tools ignore it. */
export interface SegmentMetadata extends FilterPlaces {
  readonly schema: Schema;
  readonly schemaVersion: number;
  readonly runs: readonly Run[];
  /** crc32 of each column chunk, by row group and then by column of the file. */
  readonly checksums: readonly (readonly number[])[];
  /** Length of the segment's header. */
  readonly headerBytes: number;
  /** Length of the summary before the footer; 0 in a segment written before value filters were introduced. */
  readonly summaryBytes: number;
}

/** Raised with each change that an older reader would misread. */
export const segmentFormat = 2;

const keys = { format: 'logstrata.format', segment: 'logstrata.segment' } as const;

/** The key-value pairs of the footer. */
export function writeMetadata(metadata: SegmentMetadata): Map<string, string> {
  const { schema, schemaVersion, runs, checksums, gramFilters, valueFilters, sketches } = metadata;
  const { headerBytes, summaryBytes } = metadata;
  const segment = {
    schema: schema.fields,
    schemaVersion,
    runs: runs.map((run) => [run.partition, run.firstOrdinal, run.firstRow, run.rows]),
    checksums,
    gramFilters: gramFilters.map((place) => [
      place.rowGroup,
      place.field,
      place.offset,
      place.gramBytes,
      place.gramBits,
      place.trigramBits,
      place.gramEighths,
    ]),
    valueFilters: valueFilters.map(({ rowGroup, field, offset, blocks }) => [
      rowGroup,
      field,
      offset,
      blocks,
    ]),
    sketches: sketches.map(({ field, offset, stripes }) => [field, offset, stripes]),
    headerBytes,
    summaryBytes,
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
    runs: rowsOf(segment, 'runs', 4).map(([partition, firstOrdinal, firstRow, rows]) => {
      return { partition: partition!, firstOrdinal: firstOrdinal!, firstRow: firstRow!, rows: rows! };
    }),
    checksums: rowsOf(segment, 'checksums', null),
    // Older segments have no `gramEighths`: their bitmaps are not squeezed, so they have all eighths.
    gramFilters: rowsOf(segment, 'gramFilters', 6, 7).map((row) => {
      const [rowGroup, field, offset, gramBytes, gramBits, trigramBits, gramEighths = 8] = row;
      return {
        rowGroup: rowGroup!,
        field: field!,
        offset: offset!,
        gramBytes: gramBytes!,
        gramBits: gramBits!,
        gramEighths,
        trigramBits: trigramBits!,
      };
    }),
    // Older segments have no value filters.
    valueFilters: optionalRows(segment, 'valueFilters', 4).map(([rowGroup, field, offset, blocks]) => {
      return { rowGroup: rowGroup!, field: field!, offset: offset!, blocks: blocks! };
    }),
    sketches: optionalRows(segment, 'sketches', 3).map(([field, offset, stripes]) => {
      return { field: field!, offset: offset!, stripes: stripes! };
    }),
    headerBytes: countField(segment, 'headerBytes'),
    summaryBytes: segment['summaryBytes'] === undefined ? 0 : countField(segment, 'summaryBytes'),
  };
}

function optionalRows(object: JsonObject, key: string, length: number): number[][] {
  return object[key] === undefined ? [] : rowsOf(object, key, length);
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
