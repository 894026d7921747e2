import { assert, DamageError } from '../../core/errors.js';
import { ordinalMax, partitionMax } from '../../core/limits.js';
import {
  fieldTypes,
  makeSchema,
  timeUnits,
  type AttachedColumn,
  type Field,
  type Schema,
  type TimeUnit,
} from '../../core/schema.js';
import {
  asObject,
  choiceField,
  countField,
  countOrNullField,
  countsField,
  flagField,
  listField,
  objectsField,
  parseJsonObject,
  textField,
  textOrNullField,
  timeField,
  timeOrNullField,
  type JsonObject,
  decodeCheckedText,
  encodeCheckedText,
  type TextFormat,
} from '../disk/checked-json.js';
import type {
  AttachedList,
  Checkpoint,
  Counters,
  HotEntry,
  LoadEntry,
  LoadedRun,
  Manifest,
  OrdinalRun,
  RejectedEntry,
  KeptPolicy,
  PendingPolicy,
  RetentionPolicy,
  RetentionRule,
  Retired,
  Run,
  SegmentEntry,
  SegmentFacts,
  FarCopy,
  FarLeftover,
} from './manifest.js';

/** Raised with each change of the JSON that an older program would misread. */
export const manifestVersion = 5;
const unitNames = Object.keys(timeUnits) as readonly TimeUnit[];
const manifestText: TextFormat = { magic: 'logstrata-manifest', version: manifestVersion };

/** Encodes a manifest as the bytes of its file: JSON in the checked-text format (`encodeCheckedText`). */
export function encodeManifest(manifest: Manifest): Uint8Array {
  return encodeCheckedText(manifestText, manifestJson(manifest));
}

/** Decodes the bytes of a manifest file. Throws `damaged` for invalid content, `unsupported` for another version. */
export function decodeManifest(bytes: Uint8Array): Manifest {
  return readManifest(parseJsonObject(decodeCheckedText(manifestText, bytes), 'the manifest'));
}

/** JSON with one line for each entry, so that people can read it and `diff` works. */
function manifestJson(manifest: Manifest): string {
  const lines = (items: readonly unknown[]): string =>
    items.length === 0 ? '[]' : `[\n${items.map((item) => JSON.stringify(item)).join(',\n')}\n]`;
  return (
    `{"number":${manifest.number},"agent":${JSON.stringify(manifest.agent)},` +
    `"highestPartition":${manifest.highestPartition},\n"counters":${JSON.stringify(manifest.counters)},\n` +
    `"ordinalsFrom":${manifest.ordinalsFrom},"retired":${JSON.stringify(manifest.retired)},\n` +
    (manifest.retention === undefined ? '' : `"retention":${JSON.stringify(manifest.retention)},\n`) +
    `"schemas":${lines(manifest.schemas)},\n` +
    `"segments":${lines(manifest.segments.map(flatSegment))},\n` +
    `"hot":${lines(manifest.hot.map(({ runs, ...hot }) => ({ ...hot, runs: flatRuns(runs) })))},\n` +
    (manifest.attached.length === 0 ? '' : `"attached":${lines(manifest.attached)},\n`) +
    (manifest.attachedFrom === undefined ? '' : `"attachedFrom":${manifest.attachedFrom},\n`) +
    (manifest.farLeftovers === undefined || manifest.farLeftovers.length === 0
      ? ''
      : `"farLeftovers":${lines(manifest.farLeftovers)},\n`) +
    `"rejected":${lines(manifest.rejected)},\n` +
    `"checkpoints":${lines(manifest.checkpoints)},\n` +
    `"loads":${lines(manifest.loads.map(flatLoad))},\n` +
    `"nextOrdinals":${JSON.stringify(manifest.nextOrdinals.flat())}}\n`
  );
}

function flatSegment(entry: SegmentEntry): object {
  return { ...entry, runs: flattenRuns(entry), removed: entry.removed?.flat() };
}

/** Runs as one flat list: partition, first ordinal, rows, and so on. First rows are left out, because a segment's runs are contiguous. */
export function flatRuns(runs: readonly OrdinalRun[]): number[] {
  return runs.flatMap(({ partition, firstOrdinal, rows }) => [partition, firstOrdinal, rows]);
}

function flatLoad({ runs, removed, ...load }: LoadEntry): object {
  const gone = removed === undefined ? {} : { removed: flatRuns(removed) };
  return { ...load, runs: runs.flatMap(flatLoadedRun), ...gone };
}

function flatLoadedRun({ partition, firstOrdinal, rows, timesSum }: LoadedRun): number[] {
  return [partition, firstOrdinal, rows, timesSum];
}

/** Like `flatRuns`, for a segment. Asserts that the runs cover all of its rows. */
function flattenRuns(entry: SegmentEntry): number[] {
  let row = 0;
  for (const run of entry.runs) {
    assert(run.firstRow === row, `the runs of ${entry.file} leave a gap at row ${row}`);
    row += run.rows;
  }
  assert(row === entry.rows, `the runs of ${entry.file} have ${row} rows of ${entry.rows}`);
  return flatRuns(entry.runs);
}

/** Reads the runs of rows that follow each other from the flat list in field `runs`. Throws `damaged`. */
export function readRuns(object: JsonObject): Run[] {
  let row = 0;
  return readOrdinalRuns(object, 'runs').map((run) => {
    const firstRow = row;
    row += run.rows;
    return { ...run, firstRow };
  });
}

/** Reads a flat list of runs. Throws `damaged`. */
export function readOrdinalRuns(object: JsonObject, key: string): OrdinalRun[] {
  const flat = countsField(object, key);
  if (flat.length % 3 !== 0) throw new DamageError(`"${key}" should have three numbers for each run`, {});
  const runs: OrdinalRun[] = [];
  for (let i = 0; i < flat.length; i += 3) {
    const run = { partition: flat[i]!, firstOrdinal: flat[i + 1]!, rows: flat[i + 2]! };
    requirePossible(run);
    runs.push(run);
  }
  return runs;
}

function requirePossible({ partition, firstOrdinal, rows }: OrdinalRun): void {
  if (partition > partitionMax || firstOrdinal < 1 || rows < 1 || firstOrdinal + rows - 1 > ordinalMax) {
    throw new DamageError(`"runs" has the impossible run ${partition}, ${firstOrdinal}, ${rows}`, {});
  }
}

function readLoad(item: JsonObject): LoadEntry {
  const flat = countsField(item, 'runs');
  if (flat.length % 4 !== 0) throw new DamageError(`"runs" of a load should have four numbers for each`, {});
  const runs: LoadedRun[] = [];
  for (let i = 0; i < flat.length; i += 4) {
    const [partition, firstOrdinal, rows] = [flat[i]!, flat[i + 1]!, flat[i + 2]!];
    runs.push({ partition, firstOrdinal, rows, timesSum: flat[i + 3]! });
    requirePossible(runs.at(-1)!);
  }
  const parts = objectsField(item, 'parts', (part) => ({
    from: part['from'] === null ? null : readCheckpoint(asObject(part['from'], 'from')),
    until: readCheckpoint(asObject(part['until'], 'until')),
    writtenMs: timeField(part, 'writtenMs'),
  }));
  const removed = item['removed'] === undefined ? {} : { removed: readOrdinalRuns(item, 'removed') };
  const load = { nowMs: timeField(item, 'nowMs'), parts, runs, ...removed };
  if (item['beyond'] === undefined) return load;
  const beyond = asObject(item['beyond'], 'beyond');
  const below = countField(beyond, 'below', partitionMax);
  return { ...load, beyond: { below, keepUntilMs: countField(beyond, 'keepUntilMs') } };
}

function readManifest(object: JsonObject): Manifest {
  return {
    number: countField(object, 'number'),
    agent: textField(object, 'agent'),
    schemas: readSchemas(object),
    segments: objectsField(object, 'segments', readSegment),
    hot: objectsField(object, 'hot', readHot),
    nextOrdinals: readNextOrdinals(object),
    highestPartition: countField(object, 'highestPartition', partitionMax),
    checkpoints: objectsField(object, 'checkpoints', readCheckpoint),
    loads: object['loads'] === undefined ? [] : objectsField(object, 'loads', readLoad),
    attached: object['attached'] === undefined ? [] : objectsField(object, 'attached', readAttachedList),
    ...(object['attachedFrom'] === undefined
      ? {}
      : { attachedFrom: countField(object, 'attachedFrom', partitionMax) }),
    ...(object['farLeftovers'] === undefined
      ? {}
      : { farLeftovers: objectsField(object, 'farLeftovers', readFarLeftover) }),
    rejected: objectsField(object, 'rejected', readRejected),
    counters: readCounters(asObject(object['counters'], 'counters')),
    ordinalsFrom: countField(object, 'ordinalsFrom', ordinalMax),
    retired: readRetired(object['retired']),
    ...(object['retention'] === undefined ? {} : { retention: readKept(object['retention']) }),
  };
}

function readKept(value: unknown): KeptPolicy {
  const item = asObject(value, 'retention');
  const pending = item['pending'];
  return {
    ...readPolicy(item),
    ...(pending === undefined ? {} : { pending: readPending(asObject(pending, 'pending')) }),
  };
}

function readPending(item: JsonObject): PendingPolicy {
  return {
    ...readPolicy(item),
    ...(item['leapt'] === undefined || !flagField(item, 'leapt') ? {} : { leapt: true }),
    sinceMs: timeField(item, 'sinceMs'),
    graceMs: countField(item, 'graceMs'),
  };
}

function readPolicy(item: JsonObject): RetentionPolicy {
  return {
    periodMs: countOrNullField(item, 'periodMs'),
    bytesMax: countOrNullField(item, 'bytesMax'),
    ...(item['rules'] === undefined ? {} : { rules: objectsField(item, 'rules', readRule) }),
  };
}

function readRule(item: JsonObject): RetentionRule {
  const where = objectsField(item, 'where', (filter) => ({
    field: textField(filter, 'field'),
    type: choiceField(filter, 'type', fieldTypes),
    op: textField(filter, 'op'),
    values: textsField(filter, 'values'),
  }));
  return { where, periodMs: countField(item, 'periodMs') };
}

function textsField(item: JsonObject, key: string): string[] {
  return listField(item, key).map((text) => textField({ [key]: text }, key));
}

/** Reads numbers of rows by partition from JSON. Throws `damaged`. */
export function readRemoved(item: JsonObject): Pick<SegmentEntry, 'removed'> {
  if (item['removed'] === undefined) return {};
  const flat = countsField(item, 'removed');
  const removed = flat.flatMap((partition, i) =>
    i % 2 === 0 ? [[partition, flat[i + 1] ?? 0] as const] : [],
  );
  return { removed };
}

function readRetired(value: unknown): Retired {
  const item = asObject(value, 'retired');
  return {
    records: countField(item, 'records'),
    bytes: countField(item, 'bytes'),
    segments: countField(item, 'segments'),
    below: countField(item, 'below', partitionMax),
  };
}

/** Reads the schemas with their versions from JSON. Throws `damaged`. */
export function readSchemas(object: JsonObject): Manifest['schemas'] {
  return objectsField(object, 'schemas', (item) => ({
    version: countField(item, 'version'),
    schema: readSchema(asObject(item['schema'], 'schema')),
  }));
}

/** Reads a schema from JSON. Throws `damaged`. */
export function readSchema(object: JsonObject): Schema {
  const fields = objectsField(object, 'fields', readField);
  try {
    return makeSchema(fields);
  } catch (error) {
    throw new DamageError(error instanceof Error ? error.message : 'impossible fields', { cause: error });
  }
}

/** Reads a field from JSON. Throws `damaged`. Footers of segments hold fields in the same form. */
export function readField(item: JsonObject): Field {
  const { index, attached } = item;
  return {
    name: textField(item, 'name'),
    type: choiceField(item, 'type', fieldTypes),
    ...(index === undefined ? {} : { index: index === 'full' ? index : flagField(item, 'index') }),
    ...(attached === undefined ? {} : { attached: readAttachedColumn(asObject(attached, 'attached')) }),
  };
}

/** Reads from JSON which column of attached files a field takes its values from. Throws `damaged`. */
export function readAttachedColumn(item: JsonObject): AttachedColumn {
  return {
    column: textField(item, 'column'),
    ...(item['unit'] === undefined ? {} : { unit: choiceField(item, 'unit', unitNames) }),
    ...(item['format'] === undefined ? {} : { format: textField(item, 'format') }),
    ...(item['timezone'] === undefined ? {} : { timezone: textField(item, 'timezone') }),
  };
}

/** Reads from JSON what a segment's header and a manifest both say of a segment. Throws `damaged`. */
export function readSegmentFacts(item: JsonObject): SegmentFacts {
  const footerOffset = countField(item, 'footerOffset');
  return {
    bytes: countField(item, 'bytes'),
    rows: countField(item, 'rows'),
    rowGroupRows: countsField(item, 'rowGroupRows'),
    runs: readRuns(item),
    timeMinMs: timeOrNullField(item, 'timeMinMs'),
    timeMaxMs: timeOrNullField(item, 'timeMaxMs'),
    footerOffset,
    footerBytes: countField(item, 'footerBytes'),
    footerChecksum: countField(item, 'footerChecksum', 2 ** 32 - 1),
    schemaVersion: countField(item, 'schemaVersion'),
    codec: choiceField(item, 'codec', ['lz4', 'zstd']),
    gramFilterBytes: countField(item, 'gramFilterBytes'),
    valueFilterBytes: item['valueFilterBytes'] === undefined ? 0 : countField(item, 'valueFilterBytes'),
    summaryBytes: item['summaryBytes'] === undefined ? 0 : countField(item, 'summaryBytes', footerOffset),
    headerBytes: countField(item, 'headerBytes'),
  };
}

function readSegment(item: JsonObject): SegmentEntry {
  const entry: SegmentEntry = {
    file: textField(item, 'file'),
    ...readSegmentFacts(item),
    replaces: textsField(item, 'replaces'),
    ...readRemoved(item),
    ...(item['ruled'] === undefined ? {} : { ruled: textsField(item, 'ruled') }),
    ...(item['liveFrom'] === undefined ? {} : { liveFrom: countField(item, 'liveFrom', partitionMax) }),
    ...(item['keepUntilMs'] === undefined ? {} : { keepUntilMs: timeField(item, 'keepUntilMs') }),
    ...(item['stays'] === undefined || !flagField(item, 'stays') ? {} : { stays: true as const }),
    ...(item['far'] === undefined ? {} : { far: readFarCopy(asObject(item['far'], 'far')) }),
  };
  const last = entry.runs.at(-1);
  const groupRows = entry.rowGroupRows.reduce((sum, rows) => sum + rows, 0);
  if (groupRows !== entry.rows || (last?.firstRow ?? 0) + (last?.rows ?? 0) !== entry.rows) {
    throw new DamageError(`segment ${entry.file} has rows that its row groups or its runs do not have`, {});
  }
  return entry;
}

/** Reads a 64-bit number as 16 hexadecimal digits. */
function hexField(item: JsonObject, name: string): string {
  const text = textField(item, name);
  if (/^[0-9a-f]{16}$/.test(text)) return text;
  throw new DamageError(`"${name}" should be 16 hexadecimal digits, not ${JSON.stringify(text)}`, {});
}

/** Reads a far-tier copy from JSON. Throws `damaged`. */
export function readFarCopy(item: JsonObject): FarCopy {
  return {
    unit: hexField(item, 'unit'),
    attempt: hexField(item, 'attempt'),
    shard: countField(item, 'shard'),
    rows: countField(item, 'rows'),
    bytes: countField(item, 'bytes'),
    checksum: hexField(item, 'checksum'),
    shippedMs: timeField(item, 'shippedMs'),
    isOnly: flagField(item, 'isOnly'),
  };
}

function readFarLeftover(item: JsonObject): FarLeftover {
  return {
    unit: hexField(item, 'unit'),
    attempt: hexField(item, 'attempt'),
    shard: countField(item, 'shard'),
    sinceMs: timeField(item, 'sinceMs'),
    ...(item['file'] === undefined ? {} : { file: textField(item, 'file') }),
  };
}

function readHot(item: JsonObject): HotEntry {
  return {
    file: textField(item, 'file'),
    schemaVersion: countField(item, 'schemaVersion'),
    committedBytes: countOrNullField(item, 'committedBytes'),
    foldedBytes: countField(item, 'foldedBytes'),
    runs: readRuns(item),
    createdMs: timeField(item, 'createdMs'),
  };
}

function readNextOrdinals(object: JsonObject): [number, number][] {
  const flat = countsField(object, 'nextOrdinals');
  const pairs: [number, number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([flat[i]!, flat[i + 1]!]);
  if (flat.length % 2 !== 0) throw new DamageError('"nextOrdinals" should have two numbers a partition', {});
  return pairs;
}

/** Reads a checkpoint from JSON. Throws `damaged`. Hot batches hold checkpoints in the same form. */
export function readCheckpoint(item: JsonObject): Checkpoint {
  return {
    ...(item['continues'] === undefined ? {} : { continues: textField(item, 'continues') }),
    headHash: textField(item, 'headHash'),
    headBytes: countField(item, 'headBytes'),
    offset: countField(item, 'offset'),
    contentHash: textOrNullField(item, 'contentHash'),
    ...(item['tailHash'] === undefined ? {} : { tailHash: textField(item, 'tailHash') }),
    ...(item['samples'] === undefined ? {} : { samples: textField(item, 'samples') }),
    ...(item['inode'] === undefined ? {} : { inode: textField(item, 'inode') }),
    ...(item['bornMs'] === undefined ? {} : { bornMs: timeField(item, 'bornMs') }),
    ...(item['packedBytes'] === undefined ? {} : { packedBytes: countField(item, 'packedBytes') }),
    ...(item['copy'] === undefined ? {} : { copy: countField(item, 'copy') }),
    endsInLine: flagField(item, 'endsInLine'),
    path: textField(item, 'path'),
    ...(item['target'] === undefined ? {} : { target: textField(item, 'target') }),
    lastTimeMs: timeOrNullField(item, 'lastTimeMs'),
    records: countField(item, 'records'),
    rejected: countField(item, 'rejected'),
    ...(item['reading'] === undefined ? {} : { reading: textField(item, 'reading') }),
  };
}

function readAttachedList(item: JsonObject): AttachedList {
  return {
    file: textField(item, 'file'),
    bytes: countField(item, 'bytes'),
    checksum: countField(item, 'checksum', 0xffff_ffff),
    files: countField(item, 'files'),
    rows: countField(item, 'rows'),
    indexes: listField(item, 'indexes').map((file) => textField({ file }, 'file')),
  };
}

/** Reads the entry of a file of rejected lines from JSON. Throws `damaged`. */
export function readRejected(item: JsonObject): RejectedEntry {
  return {
    file: textField(item, 'file'),
    bytes: countField(item, 'bytes'),
    lines: countField(item, 'lines'),
    checksum: countField(item, 'checksum', 0xffff_ffff),
    ...(item['partition'] === undefined ? {} : { partition: countField(item, 'partition', partitionMax) }),
  };
}

/** Reads counters from JSON. Throws `damaged`. */
export function readCounters(item: JsonObject): Counters {
  return {
    records: countField(item, 'records'),
    rejected: countField(item, 'rejected'),
    unreadableValues: countField(item, 'unreadableValues'),
    replacedBytes: countField(item, 'replacedBytes'),
    inputBytes: countField(item, 'inputBytes'),
  };
}
