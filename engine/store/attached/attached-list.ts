import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { DamageError, isLogstrataError } from '../../terms/errors.js';
import { metadataBytesMax, partitionMax } from '../../terms/limits.js';
import {
  asObject,
  choiceField,
  countField,
  countsField,
  listField,
  objectsField,
  parseJsonObject,
  textField,
  timeField,
  timeOrNullField,
  type JsonObject,
} from '../disk/checked-json.js';
import { decodeCheckedText, encodeCheckedText, type TextFormat } from '../disk/checked-text.js';
import type { Directory } from '../disk/directory.js';
import { isUnsupported, writtenByAnother } from '../disk/format-version.js';
import { readAttachedColumn, readField } from '../manifest/manifest-format.js';
import type { AttachedList, OrdinalRun } from '../manifest/manifest.js';
import type { FileIndex } from './file-index.js';
import { rowsOfFile, type AttachedFile } from './attached-file.js';

const listText: TextFormat = { magic: 'logstrata-attached', version: 1 };

/** Writes a list of attached files durably. It becomes effective once a manifest names it. */
export async function writeAttachedList(
  directory: Directory,
  agent: string,
  files: readonly AttachedFile[],
): Promise<AttachedList> {
  const lines = files.map((file) => JSON.stringify({ ...file, runs: file.runs.flatMap(flatRun) }));
  const bytes = encodeCheckedText(listText, `{"files":[\n${lines.join(',\n')}\n]}\n`);
  const folder = `${agent}/attached`;
  const file = `attached/${randomBytes(6).toString('hex')}.list`;
  await directory.makeDirectory(folder);
  const writable = await directory.create(`${agent}/${file}`);
  try {
    await writable.write(0, bytes);
    await writable.sync();
  } finally {
    await writable.close();
  }
  await directory.syncDirectory(folder);
  const rows = files.reduce((sum, attached) => sum + rowsOfFile(attached), 0);
  const indexes = files.flatMap(({ index }) => index?.file ?? []);
  return { file, bytes: bytes.length, checksum: crc32(bytes), files: files.length, rows, indexes };
}

/** Reads a list. Throws `damaged` if it is not what the manifest describes, `not_found` and `io`. */
export async function readAttachedList(
  directory: Directory,
  agent: string,
  list: AttachedList,
): Promise<AttachedFile[]> {
  const path = `${agent}/${list.file}`;
  const where = `${directory.location}/${path}`;
  try {
    const bytes = await readWhole(directory, path, list.bytes);
    if (bytes.length !== list.bytes || crc32(bytes) !== list.checksum)
      throw new DamageError('its content is not what the manifest lists', { offset: 0 });
    const object = parseJsonObject(decodeCheckedText(listText, bytes), 'the list');
    return objectsField(object, 'files', readFile);
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    if (isUnsupported(error)) throw writtenByAnother(`the list of attached files ${where}`, where, error);
    if (error.code !== 'damaged') throw error;
    const message = `the list of attached files ${where} is damaged: ${error.message}`;
    throw new DamageError(message, { path: where, offset: error.offset ?? 0, cause: error });
  }
}

async function readWhole(directory: Directory, path: string, bytes: number): Promise<Uint8Array> {
  const file = await directory.openRead(path);
  try {
    return await file.read(0, Math.min(bytes, metadataBytesMax) + 1);
  } finally {
    await file.close();
  }
}

function flatRun({ partition, firstOrdinal, rows }: OrdinalRun): number[] {
  return [partition, firstOrdinal, rows];
}

function readIndex(item: JsonObject): FileIndex {
  return {
    file: textField(item, 'file'),
    bytes: countField(item, 'bytes'),
    summaryOffset: countField(item, 'summaryOffset'),
    summaryBytes: countField(item, 'summaryBytes'),
    fields: objectsField(item, 'fields', readField),
    without: listField(item, 'without').map((name) => textField({ name }, 'name')),
  };
}

function readFile(item: JsonObject): AttachedFile {
  const flat = countsField(item, 'runs');
  const runs: OrdinalRun[] = [];
  for (let i = 0; i + 2 < flat.length; i += 3) {
    if (flat[i]! > partitionMax) throw new DamageError(`"runs" has the impossible hour ${flat[i]!}`, {});
    runs.push({ partition: flat[i]!, firstOrdinal: flat[i + 1]!, rows: flat[i + 2]! });
  }
  const constants = asObject(item['constants'], 'constants');
  return {
    id: textField(item, 'id'),
    path: textField(item, 'path'),
    format: choiceField(item, 'format', ['parquet', 'arrow']),
    bytes: countField(item, 'bytes'),
    mtimeMs: timeField(item, 'mtimeMs'),
    footerHash: textField(item, 'footerHash'),
    ...(item['etag'] === undefined ? {} : { etag: textField(item, 'etag') }),
    constants: Object.fromEntries(
      Object.entries(constants).map(([key, value]) => [
        key,
        value === null ? null : textField(constants, key),
      ]),
    ),
    rowGroupRows: countsField(item, 'rowGroupRows'),
    nowMs: timeField(item, 'nowMs'),
    placedBy: item['placedBy'] === null ? null : readAttachedColumn(asObject(item['placedBy'], 'placedBy')),
    placements: textField(item, 'placements'),
    timeMinMs: timeOrNullField(item, 'timeMinMs'),
    timeMaxMs: timeOrNullField(item, 'timeMaxMs'),
    runs,
    ...(item['index'] === undefined ? {} : { index: readIndex(asObject(item['index'], 'index')) }),
  };
}
