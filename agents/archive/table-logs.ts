import { readdir, realpath } from 'node:fs/promises';
import { isLogstrataError, isObjectPath, LogstrataError, type ObjectStorage } from '../../engine/index.js';
import { systemCode } from '../sources/byte-source.js';

/** The folders in which table formats say which files of a table count. */
const formats: ReadonlyMap<string, { readonly what: string; readonly format?: string }> = new Map([
  ['_delta_log', { what: 'a Delta table', format: 'delta' }],
  ['.hoodie', { what: 'a Hudi table' }],
  ['metadata', { what: 'an Iceberg table', format: 'iceberg' }],
]);

const logFolder = /\/(?:_delta_log|\.hoodie|metadata)(?=\/)/g;

/** Files that only Iceberg has in a folder `metadata`. */
const icebergFile = /(?:\.metadata\.json(?:\.gz)?|\.avro|^version-hint\.text)$/;

/** By object storage, the folders that it does not have. They are asked for once, because every request costs money. */
const absent = new WeakMap<ObjectStorage, Set<string>>();

/** The files of an archive belong to a table whose log can't be read. */
export class ArchiveRefusal extends LogstrataError {
  constructor(log: string) {
    const { what, format } = formats.get(log.slice(log.lastIndexOf('/') + 1))!;
    const root = rootOf(log);
    const advice =
      format === undefined
        ? "Logstrata can't read it: export the rows of the table to another folder, or name files outside it"
        : `so name the folder with its format: archive: { path: '${root}', format: ${format} }`;
    const message = `${log} is the log of ${what}: only it says which files in ${root} hold rows of the table. The archive is refused: ${advice}`;
    super('unsupported', message, { path: log });
  }
}

/**
 * Looks for the logs of tables around the files of an archive. Some files below such a log hold removed rows or are no rows at
 * all, and only the log says which, so rows would be counted that the table does not have.
 */
export class TableLogs {
  private readonly seen = new Set<string>();
  private readonly aroundLinks = new Set<string>();

  constructor(private readonly objects: ObjectStorage | undefined) {}

  /** Notes a path that a search has seen; that of a folder ends with a slash. */
  note(path: string): void {
    for (const { 0: name, index } of path.matchAll(logFolder))
      this.seen.add(path.slice(0, index + name.length));
  }

  /** Notes where a symbolic link leads to. */
  noteLink(place: string): void {
    for (const folder of [place, ...foldersAround(place)]) this.aroundLinks.add(folder);
  }

  /** Throws `ArchiveRefusal` if a table has one of the files, or if one of the `folders` that are searched is in a table. */
  async refuse(files: readonly { readonly path: string }[], folders: readonly string[]): Promise<void> {
    const around = new Set<string>();
    for (const { path } of this.seen.size === 0 ? [] : files)
      for (const folder of foldersAround(path)) {
        if (around.has(folder)) break;
        around.add(folder);
      }
    const logs = [...this.seen].filter((log) => around.has(rootOf(log)));
    const roots = new Set(this.aroundLinks);
    for (const folder of folders) {
      const place = isObjectPath(folder) ? folder : await realpath(folder).catch(() => folder);
      for (const each of [folder, place]) for (const root of [each, ...foldersAround(each)]) roots.add(root);
    }
    for (const root of roots) for (const name of formats.keys()) logs.push(`${root}/${name}`);
    for (const log of new Set(logs)) if (await this.isLog(log)) throw new ArchiveRefusal(log);
  }

  private async isLog(log: string): Promise<boolean> {
    const names = isObjectPath(log) ? await this.objectsIn(log) : await filesIn(log);
    return log.endsWith('/metadata') ? names.some((name) => icebergFile.test(name)) : names.length > 0;
  }

  private async objectsIn(folder: string): Promise<readonly string[]> {
    const objects = this.objects!;
    const known = absent.get(objects) ?? new Set();
    absent.set(objects, known);
    if (known.has(folder)) return [];
    try {
      for await (const page of objects.list(`${folder}/`)) {
        if (page.length === 0) known.add(folder);
        return page.map(({ path }) => path.slice(folder.length + 1));
      }
    } catch (error) {
      // Often only the objects of the archive may be listed, and nothing above them.
      if (!isLogstrataError(error)) throw error;
    }
    return [];
  }
}

/** The folder's files; one name of no file where there is such a folder, but it can't be read. */
async function filesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '') ? [] : [''];
  }
}

/** The folders that contain a path, the innermost first, without the root of the file system; of an object, up to its bucket. */
function foldersAround(path: string): string[] {
  const folders: string[] = [];
  const end = isObjectPath(path) ? 's3://'.length : 0;
  for (let at = path.lastIndexOf('/'); at > end; at = path.lastIndexOf('/', at - 1))
    folders.push(path.slice(0, at));
  return folders;
}

function rootOf(log: string): string {
  return log.slice(0, log.lastIndexOf('/'));
}
