import { basename, dirname } from 'node:path';
import { mapInOrder } from '../../../engine/index.js';
import { SourceError, systemCode } from '../../sources/byte-source.js';
import { isWithin, ownFilesReason, realPlace } from '../../sources/paths.js';
import type { FolderEntry, LogFiles } from './log-files.js';
import type { LogNames } from './log-names.js';
import type { Sighting } from './log-state.js';

/** Number of paths that are looked at concurrently: as many as Node's pool has threads. */
const lanes = 4;

/** Node puts it in names that are not UTF-8. No file can be opened by such a name. */
const replacementCharacter = '\ufffd';

/** Errors of a path that leads nowhere: what was there went away meanwhile, or a link is broken. */
const nowhere: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

/** A name that belongs to the agent but is not a log that can be followed. */
export interface Stray {
  readonly path: string;
  readonly reason: string;
}

/** A name that could not be looked at. */
export interface LookFailure {
  readonly path: string;
  readonly error: Error;
}

/** A folder by its name. */
interface NamedFolder {
  readonly path: string;
  /** The path without symbolic links below the fixed folder. */
  readonly place: string;
  /** Whether a symbolic link leads to it, or to a folder that contains it. */
  readonly isLinked: boolean;
}

/** A folder with what it contained when it was last read. */
interface ReadFolder extends NamedFolder {
  readonly folders: readonly NamedFolder[];
  readonly files: readonly (Sighting | Stray | LookFailure)[];
  readonly hasLinks: boolean;
}

/** What a survey of all folders found. */
export interface TreeSurvey {
  readonly sightings: readonly Sighting[];
  /** Sightings of an earlier survey in folders that were not read again. */
  readonly kept: readonly Sighting[];
  readonly failures: readonly LookFailure[];
  readonly strays: readonly Stray[];
  readonly hasLinks: boolean;
  /** Number of folders beyond the limit, which were not read. */
  readonly foldersLeft: number;
}

/** The folder with an agent's logs, or all folders below it that the agent's path matches. */
export class FolderTree {
  private read: ReadonlyMap<string, ReadFolder> = new Map();
  private readonly ownFolder: string | undefined;
  private readonly prefix: string;

  /**
   * @param dataFolder data folder of the archive; files in it are not followed
   * @param foldersMax limit on the folders that are read
   */
  constructor(
    private readonly files: LogFiles,
    readonly directory: string,
    private readonly names: LogNames,
    dataFolder: string | undefined,
    private readonly foldersMax: number,
  ) {
    this.ownFolder = dataFolder === undefined ? undefined : realPlace(dataFolder);
    this.prefix = directory.endsWith('/') ? directory : `${directory}/`;
  }

  /** The fixed folder, and the others that the last survey found. */
  get folders(): ReadonlySet<string> {
    return new Set([this.directory, ...this.read.keys()]);
  }

  /** The path of a name, behind the folders that vary. */
  pathOf(name: string): string {
    return this.prefix + name;
  }

  /** The name of a file, behind the folders that vary; that of a file elsewhere begins with as many folders. */
  nameOf(path: string): string {
    return path.startsWith(this.prefix) ? path.slice(this.prefix.length) : this.names.pattern.lastNames(path);
  }

  /** Whether a path may be that of a folder with logs. */
  mayBeFolder(path: string): boolean {
    if (path === this.directory) return true;
    return this.names.isFolder(basename(path), this.nameOf(path).split('/').length - 1);
  }

  /** The path and those of the folders that contain it, up to the fixed one. */
  pathsTo(path: string): string[] {
    const paths = [path];
    for (let each = path; each !== this.directory && each.startsWith(this.prefix);)
      paths.push((each = dirname(each)));
    return paths;
  }

  /**
   * Reads the folders, level by level, and looks at the files in them. Throws Node's errors of reading the fixed folder; a
   * missing one counts as empty.
   *
   * @param changed paths that have changed since the last survey, if it is known that no others have: folders that contain
   *   none of them directly, and are not below one of them, are not read again
   */
  async survey(changed?: ReadonlySet<string>): Promise<TreeSurvey> {
    const parents = changed === undefined ? null : new Set([...changed].map((path) => dirname(path)));
    const isUnchanged = (path: string): boolean =>
      parents?.has(path) === false && !this.pathsTo(path).some((each) => changed!.has(each));
    const read = new Map<string, ReadFolder>();
    const keptFolders = new Set<ReadFolder>();
    const failures: LookFailure[] = [];
    const strays: Stray[] = [];
    let foldersLeft = 0;
    const first = await this.readFixed();
    let level: NamedFolder[] = first === null ? [] : [first];
    for (let depth = 0; level.length > 0; depth++) {
      await mapInOrder(level, lanes, async (folder) => {
        const before = this.read.get(folder.path);
        if (before !== undefined && before.place === folder.place && isUnchanged(folder.path)) {
          read.set(folder.path, before);
          keptFolders.add(before);
          return;
        }
        const found = await this.readFolder(folder, depth).catch((error: Error) => {
          if (depth === 0) throw error;
          return { path: folder.path, error };
        });
        if ('error' in found) failures.push(found);
        else if ('reason' in found) strays.push(found);
        else read.set(folder.path, found);
      });
      const below = level.flatMap(({ path }) => read.get(path)?.folders ?? []);
      level = withoutRepeated(below).slice(0, this.foldersMax);
      foldersLeft += below.length > this.foldersMax ? below.length - level.length : 0;
    }
    this.read = read;
    const sightings: Sighting[] = [];
    const kept: Sighting[] = [];
    for (const folder of read.values())
      for (const each of folder.files) {
        if ('error' in each) failures.push(each);
        else if ('reason' in each) strays.push(each);
        else (keptFolders.has(folder) ? kept : sightings).push(each);
      }
    const hasLinks = [...read.values()].some((folder) => folder.hasLinks);
    return { sightings, kept, failures, strays, hasLinks, foldersLeft };
  }

  /** The fixed folder; null where it is missing. Throws `invalid` where it has become a link into the data folder. */
  private async readFixed(): Promise<NamedFolder | null> {
    const { directory, ownFolder } = this;
    if (ownFolder === undefined) return { path: directory, place: directory, isLinked: false };
    try {
      const place = await this.files.realPath(directory);
      const reason = this.whyOwn(directory, place);
      if (reason !== null) throw new SourceError('invalid', reason, { path: directory });
      return { path: directory, place, isLinked: false };
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null;
      throw error;
    }
  }

  private async readFolder(folder: NamedFolder, depth: number): Promise<ReadFolder | Stray> {
    const { path, place } = folder;
    const empty = { ...folder, folders: [], files: [], hasLinks: false };
    const reason = this.whyOwn(path, place);
    if (reason !== null) return { path, reason };
    let entries: FolderEntry[];
    try {
      entries = await this.files.list(path);
    } catch (error) {
      const isGone = depth === 0 ? systemCode(error) === 'ENOENT' : nowhere.has(systemCode(error));
      if (isGone) return empty;
      throw error;
    }
    const beginning = path.endsWith('/') ? path : `${path}/`;
    if (depth < this.names.pattern.folders.length) {
      const below = entries.filter(
        ({ name, isFolder, isLink }) => (isFolder || isLink) && this.names.isFolder(name, depth),
      );
      const named = await mapInOrder(below, 1, ({ name, isLink }) =>
        this.named(folder, beginning + name, isLink),
      );
      return { ...empty, folders: named.filter((each) => each !== null) };
    }
    const matching = entries.filter(({ name }) => this.names.read(this.nameOf(beginning + name)) !== null);
    const looked = await mapInOrder(matching, depth === 0 ? lanes : 1, ({ name, isLink }) =>
      this.look(beginning + name, isLink, folder).catch((error: Error) => ({
        path: beginning + name,
        error,
      })),
    );
    const files = looked.filter((each) => each !== null);
    return { ...empty, files, hasLinks: matching.some(({ isLink }) => isLink) };
  }

  /** Null for a link that leads nowhere, or round to a folder that it is in. */
  private async named(parent: NamedFolder, path: string, isLink: boolean): Promise<NamedFolder | null> {
    if (!isLink) return { path, place: `${parent.place}/${basename(path)}`, isLinked: parent.isLinked };
    const place = await this.files.realPath(path).catch(() => null);
    return place === null || isWithin(parent.place, place) ? null : { path, place, isLinked: true };
  }

  /** Why a path is not followed: it leads into the archive's own folder. Null where it does not. */
  private whyOwn(path: string, realPath: string): string | null {
    const { ownFolder } = this;
    if (ownFolder === undefined || !isWithin(realPath, ownFolder)) return null;
    return `${path} is inside the data folder ${ownFolder}: ${ownFilesReason}`;
  }

  /**
   * Looks at one file. Null where nothing is there, or its name is not one of the agent's.
   *
   * @param isLink whether the name is known to be a symbolic link
   */
  async look(path: string, isLink: boolean, folder?: NamedFolder): Promise<Sighting | Stray | null> {
    const name = this.names.read(this.nameOf(path));
    if (name === null) return null;
    try {
      const status = await this.files.status(path);
      if (!status.isFile)
        return {
          path,
          reason: `${path} is skipped: it is a folder, a named pipe or a device, not a file`,
        };
      const linked = folder?.isLinked === true ? `${folder.place}/${basename(path)}` : null;
      const target = isLink ? await this.files.realPath(path) : linked;
      const reason = target === null ? null : this.whyOwn(path, target);
      return reason === null ? { path, name, status, target } : { path, reason };
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && path.includes(replacementCharacter))
        throw new Error('its name is not UTF-8; rename it', { cause: error });
      if (nowhere.has(systemCode(error))) return null;
      throw error;
    }
  }
}

/** Leaves each folder out that another path leads to as well. A path without links is preferred, then the first in order. */
function withoutRepeated(folders: readonly NamedFolder[]): NamedFolder[] {
  if (folders.every(({ isLinked }) => !isLinked)) return [...folders];
  const byPlace = new Map<string, NamedFolder>();
  for (const each of folders) {
    const other = byPlace.get(each.place);
    const isBetter =
      other === undefined ||
      Number(each.isLinked) - Number(other.isLinked) < 0 ||
      (each.isLinked === other.isLinked && each.path < other.path);
    if (isBetter) byPlace.set(each.place, each);
  }
  return [...byPlace.values()];
}
