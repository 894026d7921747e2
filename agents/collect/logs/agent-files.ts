import { basename, dirname, join } from 'node:path';
import { mapInOrder, type Checkpoint } from '../../../engine/index.js';
import { unrotatedName } from '../../definition/file-captures.js';
import { SourceError, systemCode } from '../../sources/byte-source.js';
import { isWithin, ownFilesReason, realPlace } from '../../sources/paths.js';
import { FollowedFile } from './followed-file.js';
import type { FolderEntry, LogFiles } from './log-files.js';
import type { LogNames } from './log-names.js';
import type { Sighting } from './log-state.js';

/** Limit on the files of one agent that are followed; the state of each takes some kilobytes. */
export const filesMax = 20_000;

/** File systems store times in steps of up to two seconds, and Linux takes them from a clock that is some milliseconds late. */
export const timeSlackMs = 2000;

/** Number of paths that are looked at concurrently: as many as Node's pool has threads. */
const lanes = 4;

/** Node puts it in names that are not UTF-8. No file can be opened by such a name. */
const replacementCharacter = '\ufffd';

/** A name that belongs to the agent but is not a log that can be followed. */
export interface Stray {
  readonly path: string;
  readonly reason: string;
}

/** Result of a survey of the folder. */
export interface Survey {
  readonly appeared: readonly FollowedFile[];
  readonly vanished: readonly FollowedFile[];
  /** Number of files that are not followed because there are too many. */
  readonly passedOver: number;
  /** Names that could not be looked at. What is known under them is unchanged. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /** Names that are skipped, because they are not regular files or lie in the archive's own folder. */
  readonly strays: readonly Stray[];
  /** Whether there are symbolic links. Watching the folder does not show changes of their targets. */
  readonly hasLinks: boolean;
  /** Whether this is the first survey of the folder. */
  readonly isFirst: boolean;
}

/** The files in an agent's folder that are its logs, and those that were. */
export class AgentFiles {
  /** The known files by inode, including those without a name. */
  readonly byInode = new Map<string, FollowedFile>();
  private readonly ownFolder: string | undefined;
  private isSurveyed = false;

  /** @param dataFolder data folder of the archive; files in it are not followed */
  constructor(
    private readonly files: LogFiles,
    readonly directory: string,
    private readonly names: LogNames,
    dataFolder: string | undefined,
  ) {
    this.ownFolder = dataFolder === undefined ? undefined : realPlace(dataFolder);
  }

  /** Surveys the whole folder. Throws Node's errors of reading it; a missing folder counts as empty. */
  async survey(nowMs: number): Promise<Survey> {
    const entries = await this.matching();
    const found = new Map<string, Sighting>();
    const failures: { path: string; error: Error }[] = [];
    const strays: Stray[] = [];
    await mapInOrder(entries, lanes, async (entry) => {
      const path = `${this.directory}/${entry.name}`;
      const each = await this.look(entry.name, entry.isLink).catch((error: Error) => {
        failures.push({ path, error });
        return null;
      });
      if (each === null) return;
      if ('reason' in each) {
        strays.push(each);
        return;
      }
      const before = found.get(each.status.inode);
      if (before === undefined || isPreferredSighting(each, before)) found.set(each.status.inode, each);
    });
    const appeared: FollowedFile[] = [];
    let passedOver = 0;
    for (const each of found.values()) {
      const known = this.byInode.get(each.status.inode);
      if (known !== undefined) known.observe({ kind: 'seen', ...each, nowMs });
      else if (this.byInode.size >= filesMax) passedOver++;
      else appeared.push(this.add(each, nowMs));
    }
    const vanished: FollowedFile[] = [];
    const unreadPaths = new Set(failures.map(({ path }) => path));
    for (const file of this.byInode.values()) {
      if (found.has(file.inode) || unreadPaths.has(file.path)) {
        file.observe({ kind: 'surveyed' });
        continue;
      }
      if (!file.isGone) vanished.push(file);
      file.observe({ kind: 'missed', nowMs });
    }
    const hasLinks = entries.some(({ isLink }) => isLink);
    const isFirst = !this.isSurveyed;
    this.isSurveyed = true;
    return { appeared, vanished, passedOver, failures, strays, hasLinks, isFirst };
  }

  /** Looks at one name. Returns false where only a survey of the folder can tell what happened. */
  async touch(entryName: string, nowMs: number): Promise<boolean> {
    if (this.names.read(entryName) === null) return true;
    const found = await this.look(entryName, false).catch(() => null);
    if (found === null || 'reason' in found) return false;
    const known = this.byInode.get(found.status.inode);
    if (known === undefined || known.path !== found.path || known.isGone) return false;
    known.observe({ kind: 'seen', ...found, target: known.state.target, nowMs });
    return true;
  }

  /**
   * Finds the files of checkpoints that a symbolic link led to and that were rotated beside its target meanwhile, and later
   * generations there. They are read like files that were renamed out of the folder. Returns the checkpoints of which nothing
   * was found.
   */
  async recall(
    checkpoints: readonly Checkpoint[],
    firstStartMs: number,
    nowMs: number,
  ): Promise<Checkpoint[]> {
    const lost: Checkpoint[] = [];
    for (const { path, inode, state } of [...this.byInode.values()])
      if (state.target !== null)
        await this.addBeside(state.target, { path, inode, lastTimeMs: null }, firstStartMs, nowMs);
    for (const each of checkpoints) {
      if (each.target === undefined || each.contentHash !== null) continue;
      // Another file may have its inode number by now.
      const isThere = this.byInode.has(each.inode!);
      if (!(await this.addBeside(each.target, each, firstStartMs, nowMs)) && !isThere) lost.push(each);
    }
    return lost;
  }

  /**
   * Adds a log and its other generations since the agent was first followed, where they lie beside `target`. Returns whether
   * the log itself may be among them.
   */
  private async addBeside(
    target: string,
    { path, inode, lastTimeMs }: Pick<Checkpoint, 'path' | 'inode' | 'lastTimeMs'>,
    firstStartMs: number,
    nowMs: number,
  ): Promise<boolean> {
    const folder = dirname(target);
    let isFound = false;
    for (const entry of await this.files.list(folder).catch(() => [])) {
      const suffix = entry.name.slice(basename(target).length);
      const isRotated = entry.name.startsWith(basename(target)) && unrotatedName(`x${suffix}`) === 'x';
      const name = isRotated ? this.names.read(`${basename(path)}${suffix}`) : null;
      const place = join(folder, entry.name);
      const status = name === null ? null : await this.files.status(place).catch(() => null);
      if (name === null || status?.isFile !== true) continue;
      const isIt = status.inode === inode;
      const sinceMs = status.modifiedMs + timeSlackMs;
      isFound ||= isIt || (suffix !== '' && sinceMs >= (lastTimeMs ?? 0));
      if (!isIt && (suffix === '' || sinceMs < firstStartMs)) continue;
      if (this.byInode.has(status.inode) || this.byInode.size >= filesMax) continue;
      const sighting = { path: `${this.directory}/${name.name}`, name, status, target: place };
      this.add(sighting, nowMs).observe({ kind: 'missed', nowMs });
    }
    return isFound;
  }

  /** The name before rotation of the log at a path; undefined where the name is not one of the agent's. */
  baseOf(path: string): string | undefined {
    return this.names.read(basename(path))?.base;
  }

  private add(found: Sighting, nowMs: number): FollowedFile {
    const { inode } = found.status;
    const isNamed = ({ path, isGone }: FollowedFile): boolean => path === found.path && !isGone;
    const replaced = this.isSurveyed ? [...this.byInode.values()].find(isNamed) : undefined;
    const file = new FollowedFile(inode, found, nowMs, !this.isSurveyed, replaced?.inode ?? null);
    this.byInode.set(inode, file);
    return file;
  }

  private async matching(): Promise<FolderEntry[]> {
    try {
      // The folder may have become a link into the data folder after the agent's file was read.
      const { ownFolder, directory } = this;
      const reason =
        ownFolder === undefined ? null : this.whyOwn(directory, await this.files.realPath(directory));
      if (reason !== null) throw new SourceError('invalid', reason, { path: this.directory });
      const entries = await this.files.list(this.directory);
      return entries.filter(({ name }) => this.names.read(name) !== null);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Why a path is not followed: it leads into the archive's own folder. Null where it does not. */
  private whyOwn(path: string, realPath: string): string | null {
    const { ownFolder } = this;
    if (ownFolder === undefined || !isWithin(realPath, ownFolder)) return null;
    return `${path} is inside the data folder ${ownFolder}: ${ownFilesReason}`;
  }

  /** @param isLink whether the name is known to be a symbolic link */
  private async look(entryName: string, isLink: boolean): Promise<Sighting | Stray | null> {
    const name = this.names.read(entryName);
    if (name === null) return null;
    const path = `${this.directory}/${entryName}`;
    try {
      const status = await this.files.status(path);
      if (!status.isFile)
        return {
          path,
          reason: `${path} is skipped: it is a folder, a named pipe or a device, not a file`,
        };
      const target = isLink ? await this.files.realPath(path) : null;
      const reason = target === null ? null : this.whyOwn(path, target);
      return reason === null ? { path, name, status, target } : { path, reason };
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && entryName.includes(replacementCharacter))
        throw new Error('its name is not UTF-8; rename it', { cause: error });
      // The file went away meanwhile, or the link is broken.
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '')) return null;
      throw error;
    }
  }
}

/** Whether `a` comes before `b`, for several names of one file: the name that is written to is preferred. */
function isPreferredSighting(a: Sighting, b: Sighting): boolean {
  const rotated = ({ name }: Sighting): number => (name.name === name.base ? 0 : 1);
  return rotated(a) - rotated(b) < 0 || (rotated(a) === rotated(b) && a.path < b.path);
}
