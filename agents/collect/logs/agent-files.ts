import { inLanes } from '../../sources/lanes.js';
import { isWithin, ownFilesReason, realPlace } from '../../sources/own-files.js';
import { SourceError, systemCode } from '../../sources/source-error.js';
import { FollowedFile } from './followed-file.js';
import type { FolderEntry, LogFiles } from './log-files.js';
import type { LogNames } from './log-names.js';
import type { Sighting } from './log-state.js';

/** Files of one agent that are followed: their state takes some kilobytes each. */
export const filesMax = 20_000;

/** Paths that are looked at at the same time: as many as Node has threads for it. */
const lanes = 4;

/** Node puts it where a name is no UTF-8. Nothing is to be found under the name that it makes so. */
const replacementCharacter = '\ufffd';

/** A name of the agent's under which no log stands. */
export interface Stray {
  readonly path: string;
  readonly reason: string;
}

/** What looking at the folder has shown. */
export interface Survey {
  readonly appeared: readonly FollowedFile[];
  readonly vanished: readonly FollowedFile[];
  /** Files that are not followed, because there are too many. */
  readonly passedOver: number;
  /** Names that can't be looked at. What is known under them stays as it was. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /** Names that are passed over, whatever stands under them. */
  readonly strays: readonly Stray[];
  /** There are symbolic links, behind which changes are not seen by watching the folder. */
  readonly hasLinks: boolean;
  /** The folder was never looked at before. */
  readonly isFirst: boolean;
}

/** The files of one agent's folder that are its logs, and those that were. */
export class AgentFiles {
  readonly byInode = new Map<string, FollowedFile>();
  private readonly ownFolder: string | undefined;
  private isSurveyed = false;

  /** @param dataFolder of the archive: nothing in it is followed */
  constructor(
    private readonly files: LogFiles,
    readonly directory: string,
    private readonly names: LogNames,
    dataFolder: string | undefined,
  ) {
    this.ownFolder = dataFolder === undefined ? undefined : realPlace(dataFolder);
  }

  /** Looks at the whole folder. Throws Node's errors of reading it; a folder that is not there is empty. */
  async survey(nowMs: number): Promise<Survey> {
    const entries = await this.matching();
    const found = new Map<string, Sighting>();
    const failures: { path: string; error: Error }[] = [];
    const strays: Stray[] = [];
    await inLanes(entries, lanes, async (entry) => {
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
      if (before === undefined || comesFirst(each, before)) found.set(each.status.inode, each);
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
    const unseen = new Set(failures.map(({ path }) => path));
    for (const file of this.byInode.values()) {
      if (found.has(file.inode) || unseen.has(file.path)) {
        file.observe({ kind: 'surveyed' });
        continue;
      }
      if (!file.gone) vanished.push(file);
      file.observe({ kind: 'missed', nowMs });
    }
    const hasLinks = entries.some(({ isLink }) => isLink);
    const isFirst = !this.isSurveyed;
    this.isSurveyed = true;
    return { appeared, vanished, passedOver, failures, strays, hasLinks, isFirst };
  }

  /** Looks at one name. Returns false when only the whole folder can tell what has happened. */
  async touch(entryName: string, nowMs: number): Promise<boolean> {
    if (this.names.read(entryName) === null) return true;
    const found = await this.look(entryName, false).catch(() => null);
    if (found === null || 'reason' in found) return false;
    const known = this.byInode.get(found.status.inode);
    if (known === undefined || known.path !== found.path || known.gone) return false;
    known.observe({ kind: 'seen', ...found, nowMs });
    return true;
  }

  private add(found: Sighting, nowMs: number): FollowedFile {
    const { inode } = found.status;
    const file = new FollowedFile(inode, found, nowMs, !this.isSurveyed);
    this.byInode.set(inode, file);
    return file;
  }

  private async matching(): Promise<FolderEntry[]> {
    try {
      // Behind a link that was made after the agent's file was read.
      const reason = await this.whyOwn(this.directory);
      if (reason !== null) throw new SourceError('invalid', reason, { path: this.directory });
      const entries = await this.files.list(this.directory);
      return entries.filter(({ name }) => this.names.read(name) !== null);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Why nothing that a path leads to is followed, since it lies in the archive's own folder; null where it does not. */
  private async whyOwn(path: string): Promise<string | null> {
    const { files, ownFolder } = this;
    if (ownFolder === undefined || !isWithin(await files.realPath(path), ownFolder)) return null;
    return `${path} leads into the data folder ${ownFolder}: ${ownFilesReason}`;
  }

  /** @param isLink whether the name is known to be that of a symbolic link */
  private async look(entryName: string, isLink: boolean): Promise<Sighting | Stray | null> {
    const name = this.names.read(entryName);
    if (name === null) return null;
    const path = `${this.directory}/${entryName}`;
    try {
      const status = await this.files.status(path);
      if (!status.isFile)
        return {
          path,
          reason: `${path} is passed over: it is a folder, a named pipe or a device, and no file`,
        };
      const reason = isLink ? await this.whyOwn(path) : null;
      return reason === null ? { path, name, status } : { path, reason };
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && entryName.includes(replacementCharacter))
        throw new Error('its name is not UTF-8; rename it', { cause: error });
      // It went while we looked, or it is a link to nothing.
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '')) return null;
      throw error;
    }
  }
}

/** Of several names of one file the one counts under which it is written. */
function comesFirst(a: Sighting, b: Sighting): boolean {
  const rotated = ({ name }: Sighting): number => (name.name === name.base ? 0 : 1);
  return rotated(a) - rotated(b) < 0 || (rotated(a) === rotated(b) && a.path < b.path);
}
