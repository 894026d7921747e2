import { readdir, realpath, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import {
  type FoundObject,
  isLogstrataError,
  type ObjectStorage,
  isObjectPath,
  LogstrataError,
  mapInOrder,
  type ForeignFormat,
} from '../../engine/index.js';
import {
  fixedBeginning,
  globCharacters,
  withoutLineEnds,
  folderKeys,
  folderOfGlob,
  shieldedFolder,
  unshielded,
} from '../definition/file-captures.js';
import { DeltaTable } from './delta-table.js';
import { IcebergTable } from './iceberg-table.js';
import { TableFolder, withoutSlash } from './table-folder.js';
import type { Table, TableFile, TableState } from './table.js';
import { TableLogs } from './table-logs.js';
import { hasColumns, type ArchiveInput } from '../definition/definition.js';
import { inodeOf, type OpenedFile } from '../sources/opened-file.js';
import { describeSystemError, systemCode } from '../sources/byte-source.js';
import { isWithin } from '../sources/paths.js';

/** The objects that match a glob, and why not all of them could be listed. */
export interface ListedObjects {
  readonly objects: readonly FoundObject[];
  readonly problem: string | undefined;
}

/**
 * Lists the objects whose paths match a glob, by the rules for files: path components that begin with a dot are skipped
 * unless the glob's do, and so are keys that end with a slash, which stand for folders. All objects whose keys begin with
 * the fixed part of the glob are listed and matched.
 *
 * @param objectsMax limit on listed objects; `undefined` is returned for more
 * @param tables is told of all of them
 */
export async function listObjects(
  glob: string,
  objects: ObjectStorage,
  objectsMax: number,
  tables?: TableLogs,
): Promise<ListedObjects | undefined> {
  // Loaded on demand, because loading it takes longer than most commands.
  const { default: picomatch } = await import('picomatch');
  const beginning = fixedBeginning(glob);
  const isMatch = picomatch(withoutLineEnds(glob.slice(beginning.length + 1)), {
    noextglob: true,
    posix: true,
  });
  const isNamed = (key: string): boolean => isMatch(withoutLineEnds(key));
  const listed = glob.slice(0, globCharacters.exec(glob)?.index);
  const found: FoundObject[] = [];
  let seen = 0;
  try {
    for await (const page of objects.list(listed)) {
      seen += page.length;
      if (seen > objectsMax) return undefined;
      for (const object of page) {
        tables?.note(object.path);
        if (object.path.startsWith(`${beginning}/`) && isNamed(object.path.slice(beginning.length + 1)))
          found.push(object);
      }
    }
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    return { objects: found, problem: error.message };
  }
  return { objects: found, problem: undefined };
}

/** Limit on the files of one archive: each takes some hundred bytes, and is looked at every few seconds. */
export const archiveFilesMax = 1_000_000;

/** Limit on the entries of the folders that are searched, whether or not they belong to the archive. */
const entriesMax = 10 * archiveFilesMax;

/** Number of files that are looked at concurrently: as many as Node's pool has threads. */
const lanes = 4;

/** Node puts it in names that are not UTF-8. No file can be opened by such a name. */
const replacementCharacter = '\ufffd';

/** A file that matches a glob of the archive. */
export interface FoundFile {
  /** An absolute path, with symbolic links not resolved; or an object path. */
  readonly path: string;
  readonly format: ForeignFormat | 'lines';
  readonly bytes: number;
  /** Modification time in whole milliseconds. */
  readonly mtimeMs: number;
  /** Of an object, the storage's identifier of this version. */
  readonly etag?: string;
  /** Of a file on disk, its device and inode number. */
  readonly inode?: string;
  /** Keys and values of the `key=value` folders that contain it. */
  readonly keys: ReadonlyMap<string, string | null>;
  /** Set for a file of a table, whose folders mean nothing. */
  readonly table?: Pick<TableFile, 'values' | 'isRewritten' | 'deletes'> & Pick<TableState, 'schema'>;
}

/** A problem of a file, or of a folder with everything in it. */
export interface PathProblem {
  readonly path: string;
  readonly message: string;
}

/** Result of a search. */
export interface FoundFiles {
  /** The newest first: by modification time, then by name in descending order. */
  readonly files: readonly FoundFile[];
  readonly problems: readonly PathProblem[];
  /** The state of the table whose files these are. */
  readonly table?: Pick<TableState, 'version'>;
}

/**
 * Searches the files of an archive. A file with several names is found once. Names that begin with a dot are skipped, unless
 * the glob begins so. Globs of Parquet and Arrow files also skip files and folders whose names begin with `_`, which other
 * programs use for unfinished and auxiliary files. Paths that can't be read are returned as problems. Throws `limit` for too
 * many files, `ArchiveRefusal`, and what is wrong with the log of a table.
 *
 * @param dataFolder our own data folder, whose files do not belong to the archive
 * @param objects object storage for `s3://` paths
 */
export async function findFiles(
  archive: ArchiveInput,
  dataFolder: string | undefined,
  objects?: ObjectStorage,
): Promise<FoundFiles> {
  if (archive.table !== undefined) return filesOfTable(archive, objects);
  const tables = new TableLogs(objects);
  const search = new FileSearch(archive, dataFolder, tables);
  for (const { glob, format } of archive.globs) {
    if (isObjectPath(glob)) await search.list(glob, format, objects);
    else await search.look(glob, format);
  }
  const found = search.finish();
  if (hasColumns(archive)) await tables.refuse(found.files, foldersOf(archive));
  return found;
}

/** By archive: each look reads on from what is known, because the whole log of 100,000 files takes some six seconds. */
const openTables = new WeakMap<ArchiveInput, Table>();

function tableOf(archive: ArchiveInput, objects: ObjectStorage | undefined): Table {
  const known = openTables.get(archive);
  if (known !== undefined) return known;
  const { format, at } = archive.table!;
  const folder = new TableFolder(rootOf(archive), objects);
  const table = new (format === 'delta' ? DeltaTable : IcebergTable)(folder, at, archiveFilesMax);
  openTables.set(archive, table);
  return table;
}

/** The folder of an archive's table. */
function rootOf({ folder, globs }: ArchiveInput): string {
  const { glob } = globs[0]!;
  return withoutSlash(isObjectPath(glob) ? glob : resolve(folder, glob));
}

/** From this number of unknown objects on, all objects of a table are listed: a request for each would take longer. */
const listedObjectsMin = 100;

async function filesOfTable(archive: ArchiveInput, objects: ObjectStorage | undefined): Promise<FoundFiles> {
  const { version, schema, files } = await tableOf(archive, objects).look();
  const live = [...files];
  const unknown = live.filter(({ path, stamp }) => stamp === undefined && isObjectPath(path));
  if (unknown.length >= listedObjectsMin) {
    const byPath = new Map(unknown.map((file) => [file.path, file]));
    for await (const page of objects!.list(`${rootOf(archive)}/`))
      for (const { path, ...stamp } of page) {
        const file = byPath.get(path);
        if (file !== undefined) file.stamp = stamp;
      }
  }
  const found: FoundFile[] = [];
  const problems: PathProblem[] = [];
  await mapInOrder(live, lanes, async (file) => {
    const { path, values, isRewritten, deletes } = file;
    const common = {
      path,
      format: 'parquet',
      keys: new Map(),
      table: { schema, values, isRewritten, deletes },
    } as const;
    try {
      if (isObjectPath(path)) found.push({ ...common, ...(file.stamp ??= await objects!.stamp(path)) });
      else {
        const status = await stat(path);
        const stamp = { bytes: status.size, mtimeMs: Math.floor(status.mtimeMs), inode: inodeOf(status) };
        found.push({ ...common, ...stamp });
      }
    } catch (error) {
      const { message } = isLogstrataError(error) ? error : describeSystemError(error, path);
      problems.push({ path, message: `${message}, but ${version} of the table has it` });
    }
  });
  return { files: newestFirst(found), problems, table: { version } };
}

function newestFirst(files: readonly FoundFile[]): FoundFile[] {
  return files.toSorted((a, b) => b.mtimeMs - a.mtimeMs || collator.compare(b.path, a.path));
}

/** Makes a `FoundFile` of a file that was named explicitly. Closes the file. */
export async function foundFile(
  path: string,
  format: FoundFile['format'],
  { size, mtimeMs, etag, bytes }: OpenedFile,
  archive: ArchiveInput,
): Promise<FoundFile> {
  await bytes.close();
  const folders = foldersOf(archive);
  const version = etag === undefined ? {} : { etag };
  return {
    path,
    format,
    bytes: size,
    mtimeMs: Math.floor(mtimeMs),
    ...version,
    keys: folderKeys(path, folders),
  };
}

class FileSearch {
  private readonly byInode = new Map<string, FoundFile>();
  private readonly problems = new Map<string, string>();
  private readonly folders: readonly string[];
  private readonly ownFolder: string | undefined;
  private entries = 0;

  constructor(
    private readonly archive: ArchiveInput,
    dataFolder: string | undefined,
    private readonly tables: TableLogs,
  ) {
    this.ownFolder = dataFolder === undefined ? undefined : resolve(dataFolder);
    this.folders = foldersOf(archive);
  }

  async look(pattern: string, format: FoundFile['format']): Promise<void> {
    // Loaded on demand, because loading it takes longer than most commands.
    const { glob } = await import('tinyglobby');
    const fixed = fixedBeginning(pattern);
    const beginning = resolve(this.archive.folder, fixed);
    const shieldedPaths = await glob(withoutLineEnds(pattern.slice(fixed.length).replace(/^\/+/, '')), {
      cwd: shieldedFolder(beginning),
      absolute: true,
      onlyFiles: true,
      expandDirectories: false,
      extglob: false,
      fs: { readdir: this.readFolder as typeof readdir, realpath: this.followLink as typeof realpath },
    });
    const paths = shieldedPaths.map(unshielded);
    const others = paths.filter((path) => {
      if (this.ownFolder !== undefined && isWithin(path, this.ownFolder)) return false;
      return format === 'lines' || !isAuxiliary(relative(beginning, path));
    });
    if (this.entries > entriesMax) throw tooMany(`${entriesMax} files and folders`, this.archive);
    await mapInOrder(others, lanes, (path) => this.add(path, format));
  }

  async list(glob: string, format: FoundFile['format'], objects: ObjectStorage | undefined): Promise<void> {
    const beginning = fixedBeginning(glob);
    if (objects === undefined)
      throw new LogstrataError('invalid', `${glob} can't be listed: no object storage is open`);
    const listed = await listObjects(glob, objects, entriesMax, this.tables);
    if (listed === undefined) throw tooMany(`${entriesMax} objects`, this.archive);
    if (listed.problem !== undefined) this.problems.set(beginning, listed.problem);
    for (const { path, bytes, mtimeMs, etag } of listed.objects) {
      if (format !== 'lines' && isAuxiliary(path.slice(beginning.length + 1))) continue;
      this.keep(path, { path, format, bytes, mtimeMs, etag, keys: folderKeys(path, this.folders) });
    }
  }

  finish(): FoundFiles {
    const files = newestFirst([...this.byInode.values()]);
    return { files, problems: [...this.problems].map(([path, message]) => ({ path, message })) };
  }

  private async add(path: string, format: FoundFile['format']): Promise<void> {
    let status: Stats;
    try {
      status = await stat(path);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') this.problems.set(path, describeSystemError(error, path).message);
      else if (path.includes(replacementCharacter)) this.problems.set(path, whyUnnamed(path));
      // Otherwise the file went away meanwhile.
      return;
    }
    if (!status.isFile()) {
      this.problems.set(path, `${path} is skipped: it is a named pipe or a device, not a file`);
      return;
    }
    const inode = inodeOf(status);
    const mtimeMs = Math.floor(status.mtimeMs);
    const other = this.byInode.get(inode);
    if (other !== undefined && !isPreferredPath(path, other.path)) return;
    const keys = folderKeys(path, this.folders);
    this.keep(inode, { path, format, bytes: status.size, mtimeMs, inode, keys });
  }

  private keep(inode: string, file: FoundFile): void {
    if (this.byInode.size >= archiveFilesMax && !this.byInode.has(inode))
      throw tooMany(`${archiveFilesMax} files`, this.archive);
    this.byInode.set(inode, file);
  }

  /** Reads a folder for the search. The search library silently skips folders that can't be read, so this records the problem. */
  private readonly readFolder = (
    shieldedPath: string,
    options: { withFileTypes: true },
    done: (error: Error | null, entries: unknown[]) => void,
  ): void => {
    const path = unshielded(shieldedPath);
    readdir(path, options, (error, entries) => {
      if (error !== null) this.problems.set(withoutSlash(path), whyUnread(error, withoutSlash(path)));
      for (const entry of entries ?? []) {
        if (!entry.isFile()) this.tables.note(`${withoutSlash(path)}/${entry.name}/`);
        entry.name = withoutLineEnds(entry.name);
      }
      this.entries += error === null ? entries.length : 0;
      done(error, error !== null || this.entries > entriesMax ? [] : entries);
    });
  };

  /** Resolves a symbolic link for the search, and records a broken one. */
  private readonly followLink = (
    shieldedPath: string,
    done: (error: Error | null, place: string) => void,
  ): void => {
    const path = unshielded(shieldedPath);
    realpath(path, (error, place) => {
      if (error !== null) this.problems.set(path, `${path} is a symbolic link to a file that does not exist`);
      else this.tables.noteLink(place);
      done(error, place);
    });
  };
}

function foldersOf({ globs, folder }: ArchiveInput): readonly string[] {
  return globs.map(({ glob }) => folderOfGlob(folder, glob));
}

/**
 * Whether a part of the path begins with `_`, as Spark, Hive and others name unfinished or auxiliary files. Partition folders
 * such as `_key=value` do not count.
 */
function isAuxiliary(path: string): boolean {
  return path.split('/').some((part) => part.startsWith('_') && !part.includes('='));
}

function whyUnread(error: Error, path: string): string {
  if (systemCode(error) === 'ENOENT')
    return path.includes(replacementCharacter) ? whyUnnamed(path) : `the folder ${path} is not there`;
  return describeSystemError(error, path).message;
}

function whyUnnamed(path: string): string {
  return `${path} can't be read: its name is not UTF-8; rename it`;
}

/** Whether `path` is preferred to `other`, for several names of one file: the shorter one, then the first in alphabetical order. */
function isPreferredPath(path: string, other: string): boolean {
  return path.length === other.length ? path < other : path.length < other.length;
}

/** Compares names with numbers by value: `log.2` before `log.10`. */
const collator = new Intl.Collator('en', { numeric: true });

function tooMany(what: string, { globs }: ArchiveInput): LogstrataError {
  const paths = globs.map(({ glob }) => glob).join(', ');
  return new LogstrataError(
    'limit',
    `archive.path (${paths}) matches more than ${what}, which is the maximum`,
  );
}
