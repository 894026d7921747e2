import { checkpointKey, isLogstrataError, isObjectPath, type Checkpoint } from '../../engine/index.js';
import type { OpenFile } from '../sources/opened-file.js';
import { isStoredAsItLies } from '../sources/source-cursor.js';

/**
 * Tells equal files of an archive apart. Two that are there at once are two files; a file that is not at its path any more has
 * moved. Outside an archive, a file whose content is stored is known, whatever its path.
 */
export class EqualFiles {
  /** Paths at which files are now that were stored under another path, by the key of their checkpoint. */
  private readonly moved = new Map<string, string>();

  /** @param paths the files of the archive that are there, or undefined for files that somebody named */
  constructor(
    private paths: ReadonlySet<string> | undefined,
    private readonly openFile: OpenFile | undefined,
  ) {}

  /** Takes note of the files that are there now. */
  found(paths: ReadonlySet<string>): void {
    this.paths = paths;
  }

  /** Whether another path has a file of its own, so that an equal file is not the one from there. */
  isThere(path: string): boolean {
    return this.paths?.has(path) === true;
  }

  /** Whether one of the checkpoints, whose content the file has, is that of the file and not of another one that is there too. */
  async isStored(path: string, inode: string, equal: readonly Checkpoint[]): Promise<boolean> {
    if (this.paths === undefined) return equal.length > 0;
    if (equal.some((known) => known.path === path)) return true;
    for (const known of equal) {
      const key = checkpointKey(known);
      const holder = this.moved.get(key);
      if (holder !== undefined && holder !== path && this.isThere(holder)) continue;
      const isRenamed = known.inode === inode && !isObjectPath(path);
      if (!isRenamed && (await this.liesAt(known))) continue;
      this.moved.set(key, path);
      return true;
    }
    return false;
  }

  private async liesAt(known: Checkpoint): Promise<boolean> {
    if (!this.isThere(known.path)) return false;
    try {
      return await isStoredAsItLies(known.path, [known], this.openFile);
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      return false;
    }
  }
}
