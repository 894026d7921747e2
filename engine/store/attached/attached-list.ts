import { closing } from '../../core/waiting.js';
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { DamageError } from '../../core/errors.js';
import { metadataBytesMax, attachedFilesOfListMax, attachedPlacementsBytesMax } from '../../core/limits.js';
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
  decodeCheckedText,
  encodeCheckedText,
  type TextFormat,
  readingChecked,
} from '../disk/checked-json.js';
import { writeWhole, type Directory } from '../disk/directory.js';
import { flatRuns, readAttachedColumn, readField, readOrdinalRuns } from '../manifest/manifest-format.js';
import type { AttachedList, OrdinalRun } from '../manifest/manifest.js';
import type { DeletedRows } from './deleted-rows.js';
import type { FileIndex } from './file-index.js';
import type { ForeignFormat } from '../../foreign/foreign-file.js';
import type { AttachedColumn } from '../../core/schema.js';
import { assertOrdinalsLeft } from '../../core/cursor.js';
import type { CommittedValues, Committer } from '../manifest/commit.js';

const listText: TextFormat = { magic: 'logstrata-attached', version: 1 };

/** Writes a list of attached files durably. It becomes effective once a manifest names it. */
async function writeAttachedList(
  directory: Directory,
  agent: string,
  files: readonly AttachedFile[],
): Promise<AttachedList> {
  const lines = files.map((file) => JSON.stringify({ ...file, runs: flatRuns(file.runs) }));
  const bytes = encodeCheckedText(listText, `{"files":[\n${lines.join(',\n')}\n]}\n`);
  const folder = `${agent}/attached`;
  const file = `attached/${randomBytes(6).toString('hex')}.list`;
  await directory.makeDirectory(folder);
  await writeWhole(directory, `${agent}/${file}`, bytes);
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
  return readingChecked('the list of attached files', where, '', async () => {
    const length = Math.min(list.bytes, metadataBytesMax) + 1;
    const bytes = await closing(directory.openRead(path), (file) => file.read(0, length));
    if (bytes.length !== list.bytes || crc32(bytes) !== list.checksum)
      throw new DamageError('its content is not what the manifest lists', { offset: 0 });
    const object = parseJsonObject(decodeCheckedText(listText, bytes), 'the list');
    return objectsField(object, 'files', readFile);
  });
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

function readTexts(item: JsonObject, key: string): Record<string, string> {
  const texts = asObject(item[key], key);
  return Object.fromEntries(Object.keys(texts).map((name) => [name, textField(texts, name)]));
}

function readTable(item: JsonObject): AttachedTable {
  const known = item['knownSince'] === undefined ? {} : { knownSince: countField(item, 'knownSince') };
  const deletes = item['deletes'] === undefined ? {} : { deletes: textField(item, 'deletes') };
  return { schema: textField(item, 'schema'), ...deletes, ...known };
}

function readDeleted(item: JsonObject): DeletedRows {
  return { rows: countField(item, 'rows'), at: textField(item, 'at') };
}

function readFile(item: JsonObject): AttachedFile {
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
    ...(item['renamed'] === undefined ? {} : { renamed: readTexts(item, 'renamed') }),
    ...(item['deleted'] === undefined ? {} : { deleted: readDeleted(asObject(item['deleted'], 'deleted')) }),
    ...(item['table'] === undefined ? {} : { table: readTable(asObject(item['table'], 'table')) }),
    rowGroupRows: countsField(item, 'rowGroupRows'),
    nowMs: timeField(item, 'nowMs'),
    placedBy: item['placedBy'] === null ? null : readAttachedColumn(asObject(item['placedBy'], 'placedBy')),
    placements: textField(item, 'placements'),
    timeMinMs: timeOrNullField(item, 'timeMinMs'),
    timeMaxMs: timeOrNullField(item, 'timeMaxMs'),
    runs: readOrdinalRuns(item, 'runs'),
    ...(item['index'] === undefined ? {} : { index: readIndex(asObject(item['index'], 'index')) }),
  };
}

/** A file to attach. Another program wrote it, and queries are answered from it in place. */
export interface FileToAttach {
  /** Absolute path. */
  readonly path: string;
  readonly format: ForeignFormat;
  /**
   * Column values given by the names of the file's folders (`key=value`), by column. They apply to all rows, null included, and take
   * precedence over columns of the same name.
   */
  readonly constants: Readonly<Record<string, string | null>>;
  /** Columns that have another name in the file: by name, that in the file. */
  readonly renamed?: Readonly<Record<string, string>> | undefined;
  /** Absent where all rows are answered. */
  readonly deleted?: DeletedRows | undefined;
  /** Set for a file of a table, whose log says which files count. */
  readonly table?: FileTable | undefined;
  /** For an object: the version that was listed. Only that version is read. */
  readonly object?: Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> | undefined;
}

/** The table that a file belongs to. */
export interface FileTable {
  /** Identifies the columns of the table by which `renamed` and `constants` were found. */
  readonly schema: string;
  /** Identifies what `deleted` was made of. */
  readonly deletes?: string | undefined;
  /** Set where the rows were in the table before: its files have been rewritten. */
  readonly isRewritten?: boolean | undefined;
}

/** The same of an attached file. */
export interface AttachedTable extends Pick<FileTable, 'schema' | 'deletes'> {
  /** The manifest from whose number on the rows are known, at other positions. They are no news to anybody who has seen that state. */
  readonly knownSince?: number;
}

/** The attributes that tell whether a file is still the one that was attached. */
export interface FileIdentity {
  readonly bytes: number;
  /** Modification time (ms). A file with another time but the same footer counts as the same. */
  readonly mtimeMs: number;
  /** `ForeignFile.footerHash`, which is the same for every copy of the file. */
  readonly footerHash: string;
  /** For an object: the ETag of the version. */
  readonly etag?: string | undefined;
}

/** Everything about a file to attach except the positions of its rows. */
export interface FilePlan extends Omit<FileToAttach, 'object'>, FileIdentity {
  /** Number of rows of each row group. The sum is at least 1. */
  readonly rowGroupRows: readonly number[];
  /** The clock (ms) by which rows without a readable time, and rows with times in the future, were placed. */
  readonly nowMs: number;
  /** The column by whose times the rows were placed; null if the agent had no field of type time. */
  readonly placedBy: AttachedColumn | null;
  /** Number of rows of each hour, ascending: `[partition, rows]`. */
  readonly hours: readonly (readonly [partition: number, rows: number])[];
  /** The hours of the rows of each span, as encoded by `encodePlacements`. They are indexes into `hours`. */
  readonly placements: string;
  /** Minimum and maximum of the field that placed the rows; null if no row has a time. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
}

/** An attached file. */
export interface AttachedFile extends Omit<FilePlan, 'hours' | 'table'> {
  readonly table?: AttachedTable | undefined;
  /** 12 hexadecimal digits, never reused. */
  readonly id: string;
  /** The positions of the rows, one run for each hour, ascending. Within an hour the rows are in file order. */
  readonly runs: readonly OrdinalRun[];
  /** Absent until the file has been indexed. */
  readonly index?: FileIndex | undefined;
}

/** Number of rows of a file that are answered. */
export function rowsOfFile({ rowGroupRows, deleted }: Pick<FilePlan, 'rowGroupRows' | 'deleted'>): number {
  return rowGroupRows.reduce((sum, rows) => sum + rows, 0) - (deleted?.rows ?? 0);
}

/** A list and the files in it. */
export interface OpenList {
  readonly list: AttachedList;
  readonly files: readonly AttachedFile[];
}

/** An attached file that was moved or touched, with its new path, size and time. Its footer is unchanged. */
export interface MovedFile extends Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> {
  readonly table?: AttachedTable | undefined;
  readonly id: string;
  readonly path: string;
}

/** An attached file that is read in another way, because its table has other columns now, or has deleted rows. */
export interface RemadeFile extends Pick<AttachedFile, 'id' | 'constants' | 'renamed' | 'deleted' | 'table'> {
  /** Whether columns are read in another way, so that the index does not fit. */
  readonly isReindexed: boolean;
}

/** The changes that one commit makes to attached files. */
export interface AttachedChanges {
  readonly adds: readonly FilePlan[];
  readonly moves: readonly MovedFile[];
  /** Ids of files. The positions of their rows are never assigned again. */
  readonly removes: readonly string[];
  /** Files that are read in another way. They keep their positions. */
  readonly remakes?: readonly RemadeFile[] | undefined;
  /** New indexes of attached files, in their final place. Indexes of files that are no longer attached are ignored. */
  readonly indexes?: readonly { readonly id: string; readonly index: FileIndex }[];
}

/** The result for the files that were to be attached. */
export interface AttachedResult {
  readonly added: readonly AttachedFile[];
  /** Paths of the files whose placements exceeded the limit on memory. */
  readonly refused: readonly string[];
}

/** A committer that can change attached files. */
export interface AttachingCommitter extends Committer {
  /** Makes the changes in one manifest. A file that is attached already, with the same path and footer, is left unchanged. */
  attach(changes: AttachedChanges): Promise<AttachedResult>;
}

/** The lists that the manifest names after the changes. */
export interface ChangedLists extends AttachedResult {
  readonly lists: readonly AttachedList[];
  /** New list files, and files that the manifest no longer names. */
  readonly written: readonly string[];
  readonly leaving: readonly string[];
}

/**
 * Writes the lists that the changes affect. The positions of new files are taken from `values`, which is updated.
 *
 * @param number number of the manifest that names `lists`
 */
export async function changeLists(
  directory: Directory,
  agent: string,
  { lists, number }: { readonly lists: readonly OpenList[]; readonly number: number },
  { adds, moves, removes, remakes = [], indexes = [] }: AttachedChanges,
  values: CommittedValues,
): Promise<ChangedLists> {
  const removed = new Set(removes);
  const moved = new Map(moves.map(({ id, ...place }) => [id, place]));
  const remade = new Map(
    remakes.map(({ id, isReindexed, ...rest }) => [
      id,
      { ...rest, id: newId(), ...(isReindexed ? { index: undefined } : {}) },
    ]),
  );
  const reindexed = new Set(remakes.flatMap(({ id, isReindexed }) => (isReindexed ? [id] : [])));
  const indexed = new Map(indexes.map(({ id, index }) => [id, { index }]));
  const known = new Set(lists.flatMap(({ files }) => files.map(nameOf)));
  const { fitting, refused } = fittingFiles(
    lists,
    adds.filter((plan) => !known.has(nameOf(plan))),
  );
  const added = fitting.map((plan) => withPositions(plan, values, number));
  const beside = new Map(
    filesBeside(lists, removed, added).map(({ id, runs }) => [
      id,
      { id: newId(), runs: newRuns(runs, values), knownSince: number },
    ]),
  );
  const isChanged = ({ id }: AttachedFile) =>
    [removed, moved, remade, indexed, beside].some((changes) => changes.has(id));
  const kept: AttachedList[] = [];
  const leaving: string[] = [];
  // The files of changed lists and of the last list if it has room, then the new files.
  const files: AttachedFile[] = [];
  for (const open of lists) {
    const hasRoom = added.length > 0 && open.files.length < attachedFilesOfListMax && open === lists.at(-1);
    if (!hasRoom && !open.files.some(isChanged)) {
      kept.push(open.list);
      continue;
    }
    leaving.push(open.list.file);
    for (const { id, index } of open.files)
      if (index !== undefined && [removed, indexed, reindexed].some((each) => each.has(id)))
        leaving.push(index.file);
    for (const file of open.files) {
      const { id } = file;
      if (removed.has(id)) continue;
      const own = { ...file, ...moved.get(id), ...indexed.get(id), ...remade.get(id) };
      const { knownSince, ...place } = beside.get(id) ?? {};
      const table = knownSince === undefined ? {} : { table: { schema: '', ...own.table, knownSince } };
      files.push({ ...own, ...place, ...table });
    }
  }
  files.push(...added);
  const written: AttachedList[] = [];
  for (let from = 0; from < files.length; from += attachedFilesOfListMax)
    written.push(await writeAttachedList(directory, agent, files.slice(from, from + attachedFilesOfListMax)));
  return { lists: [...kept, ...written], added, refused, written: written.map(({ file }) => file), leaving };
}

/**
 * The files of a table that get new positions because others have been rewritten: those with rows of the same hours, behind rows that are
 * removed. A page that ends with one of their rows would else not tell whether the rewritten rows have been seen. The hours of such a file are
 * then others' hours too.
 */
function filesBeside(
  lists: readonly OpenList[],
  removed: ReadonlySet<string>,
  added: readonly AttachedFile[],
): AttachedFile[] {
  const rewritten = new Set(added.filter(isOfTable).flatMap(({ runs }) => runs.map((run) => run.partition)));
  const firsts = new Map<number, number>();
  const note = ({ runs }: AttachedFile, isAll: boolean) => {
    for (const { partition, firstOrdinal } of runs)
      if (isAll || rewritten.has(partition))
        firsts.set(partition, Math.min(firsts.get(partition) ?? Infinity, firstOrdinal));
  };
  let others = lists.flatMap(({ files }) => files.filter(isOfTable));
  if (rewritten.size > 0) for (const file of others) if (removed.has(file.id)) note(file, false);
  others = firsts.size === 0 ? [] : others.filter(({ id }) => !removed.has(id));
  const beside: AttachedFile[] = [];
  for (let isMore = true; isMore;) {
    const found = others.filter(({ runs }) =>
      runs.some(({ partition, firstOrdinal }) => firstOrdinal > (firsts.get(partition) ?? Infinity)),
    );
    for (const file of found) note(file, true);
    const ids = new Set(found.map(({ id }) => id));
    others = others.filter(({ id }) => !ids.has(id));
    beside.push(...found);
    isMore = found.length > 0;
  }
  return beside;
}

function isOfTable({ table }: AttachedFile): boolean {
  return table !== undefined;
}

/**
 * The files that fit into the limit on placements. Rows that are in no order of time need a placement for each hour and span, which stays
 * in memory while the agent is open.
 */
function fittingFiles(
  lists: readonly OpenList[],
  plans: readonly FilePlan[],
): { fitting: FilePlan[]; refused: string[] } {
  const files = lists.flatMap((list) => list.files);
  const bytesOf = ({ placements, deleted }: Pick<FilePlan, 'placements' | 'deleted'>) =>
    placements.length + (deleted?.at.length ?? 0);
  let bytes = files.reduce((sum, file) => sum + bytesOf(file), 0);
  const fitting: FilePlan[] = [];
  const refused: string[] = [];
  for (const plan of plans) {
    const fits = bytes + bytesOf(plan) <= attachedPlacementsBytesMax;
    if (fits) bytes += bytesOf(plan);
    if (fits) fitting.push(plan);
    else refused.push(plan.path);
  }
  return { fitting, refused };
}

function nameOf({ path, footerHash }: Pick<FilePlan, 'path' | 'footerHash'>): string {
  return `${footerHash} ${path}`;
}

function newId(): string {
  return randomBytes(6).toString('hex');
}

/** New positions behind all others, for as many rows in each hour. */
function newRuns(
  hours: readonly { readonly partition: number; readonly rows: number }[],
  values: CommittedValues,
): OrdinalRun[] {
  const runs = hours.map(({ partition, rows }) => {
    const firstOrdinal = values.nextOrdinal(partition);
    assertOrdinalsLeft(partition, firstOrdinal, rows);
    return { partition, firstOrdinal, rows };
  });
  values.applyRuns(runs);
  return runs;
}

function withPositions(
  { hours, table, ...plan }: FilePlan,
  values: CommittedValues,
  number: number,
): AttachedFile {
  const counts = hours.map(([partition, rows]) => ({ partition, rows }));
  const { isRewritten = false, ...own } = table ?? {};
  const known = isRewritten ? { knownSince: number } : {};
  return {
    id: newId(),
    ...plan,
    ...(table === undefined ? {} : { table: { schema: table.schema, ...own, ...known } }),
    runs: newRuns(counts, values),
  };
}
