import { basename, dirname, join } from 'node:path';
import type { Checkpoint } from '../../../engine/index.js';
import { unrotatedName } from '../../definition/file-captures.js';
import { FolderTree, type LookFailure, type Stray } from './folder-tree.js';
import { FollowedFile } from './followed-file.js';
import type { LogFiles } from './log-files.js';
import type { LogNames } from './log-names.js';
import type { Sighting } from './log-state.js';

/** Limit on the files of one agent that are followed, and on its folders; the state of each file takes some kilobytes. */
export const filesMax = 20_000;

/** File systems store times in steps of up to two seconds, and Linux takes them from a clock that is some milliseconds late. */
export const timeSlackMs = 2000;

/** Result of a survey of the folders. */
export interface Survey {
  readonly appeared: readonly FollowedFile[];
  readonly vanished: readonly FollowedFile[];
  /** Number of files and folders that are not followed because there are too many. */
  readonly passedOver: number;
  /** Names that could not be looked at. What is known under them is unchanged. */
  readonly failures: readonly LookFailure[];
  /** Names that are skipped, because they are not regular files or lie in the archive's own folder. */
  readonly strays: readonly Stray[];
  /** Whether there are symbolic links to files. Watching the folders does not show changes of their targets. */
  readonly hasLinks: boolean;
  /** Whether this is the first survey. */
  readonly isFirst: boolean;
}

/** The files in an agent's folders that are its logs, and those that were. */
export class AgentFiles {
  /** The known files by inode, including those without a name. */
  readonly byInode = new Map<string, FollowedFile>();
  readonly tree: FolderTree;
  private isSurveyed = false;

  /** @param dataFolder data folder of the archive; files in it are not followed */
  constructor(
    private readonly files: LogFiles,
    directory: string,
    private readonly names: LogNames,
    dataFolder: string | undefined,
  ) {
    this.tree = new FolderTree(files, directory, names, dataFolder, filesMax);
  }

  /** Surveys the folders, all or those with `changed` paths; throws as `FolderTree.survey`. */
  async survey(nowMs: number, changed?: ReadonlySet<string>): Promise<Survey> {
    const { sightings, kept, failures, strays, hasLinks, foldersLeft } = await this.tree.survey(changed);
    const found = new Map<string, Sighting>();
    const add = (each: Sighting): void => {
      const before = found.get(each.status.inode);
      if (before === undefined || isPreferredSighting(each, before)) found.set(each.status.inode, each);
    };
    sightings.forEach(add);
    // More may be known by now of files in folders that were not read again.
    for (const each of kept)
      add({ ...each, status: this.byInode.get(each.status.inode)?.state.status ?? each.status });
    const appeared: FollowedFile[] = [];
    let passedOver = foldersLeft;
    for (const each of found.values()) {
      const known = this.byInode.get(each.status.inode);
      if (known !== undefined) known.observe({ kind: 'seen', ...each, nowMs });
      else if (this.byInode.size >= filesMax) passedOver++;
      else appeared.push(this.add(each, nowMs));
    }
    const vanished: FollowedFile[] = [];
    const unreadPaths = new Set(failures.map(({ path }) => path));
    for (const file of this.byInode.values()) {
      const isUnread =
        unreadPaths.size > 0 && this.tree.pathsTo(file.path).some((path) => unreadPaths.has(path));
      if (found.has(file.inode) || isUnread) {
        file.observe({ kind: 'surveyed' });
        continue;
      }
      if (!file.isGone) vanished.push(file);
      file.observe({ kind: 'missed', nowMs });
    }
    const isFirst = !this.isSurveyed;
    this.isSurveyed = true;
    return { appeared, vanished, passedOver, failures, strays, hasLinks, isFirst };
  }

  /** Looks at one path. Returns false where only a survey can tell what happened. */
  async touch(path: string, nowMs: number): Promise<boolean> {
    if (this.tree.mayBeFolder(path)) return false;
    if (this.names.read(this.tree.nameOf(path)) === null) return true;
    const found = await this.tree.look(path, false).catch(() => null);
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
      const name = isRotated ? this.names.read(`${this.tree.nameOf(path)}${suffix}`) : null;
      const place = join(folder, entry.name);
      const status = name === null ? null : await this.files.status(place).catch(() => null);
      if (name === null || status?.isFile !== true) continue;
      const isIt = status.inode === inode;
      const sinceMs = status.modifiedMs + timeSlackMs;
      isFound ||= isIt || (suffix !== '' && sinceMs >= (lastTimeMs ?? 0));
      if (!isIt && (suffix === '' || sinceMs < firstStartMs)) continue;
      if (this.byInode.has(status.inode) || this.byInode.size >= filesMax) continue;
      const sighting = { path: this.tree.pathOf(name.name), name, status, target: place };
      this.add(sighting, nowMs).observe({ kind: 'missed', nowMs });
    }
    return isFound;
  }

  /** The name before rotation of the log at a path; undefined where the name is not one of the agent's. */
  baseOf(path: string): string | undefined {
    return this.names.read(this.tree.nameOf(path))?.base;
  }

  private add(found: Sighting, nowMs: number): FollowedFile {
    const { inode } = found.status;
    const isNamed = ({ path, isGone }: FollowedFile): boolean => path === found.path && !isGone;
    const replaced = this.isSurveyed ? [...this.byInode.values()].find(isNamed) : undefined;
    const file = new FollowedFile(inode, found, nowMs, !this.isSurveyed, replaced?.inode ?? null);
    this.byInode.set(inode, file);
    return file;
  }
}

/** Whether `a` comes before `b`, for several names of one file: the name that is written to is preferred. */
function isPreferredSighting(a: Sighting, b: Sighting): boolean {
  const rotated = ({ name }: Sighting): number => (name.name === name.base ? 0 : 1);
  return rotated(a) - rotated(b) < 0 || (rotated(a) === rotated(b) && a.path < b.path);
}
