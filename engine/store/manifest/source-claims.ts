import { LogstrataError } from '../../terms/errors.js';
import { checkpointKey, type CommittedValues } from './committed-values.js';
import type { Checkpoint } from './manifest.js';

/**
 * Prevents two readers of the same source (a load and a collector, or two loads) from storing its lines twice. A commit says what its
 * reader knew of the source. It fails with `conflict` if another commit has stored more of the source since.
 */
export class SourceClaims {
  private commits = 0;
  /** For each checkpoint key, the number of the last unit's commit that brought it. Since this writer began. */
  private readonly keys = new Map<string, number>();
  /** For each inode, the number of the last commit, of a unit or an append, that read it. */
  private readonly inodes = new Map<string, number>();
  /** Number of the manifest with which a unit last stored a part of a file, by the file's inode and by its beginning. */
  private readonly loaded = new Map<string, number>();

  /** @param firstManifest number of the newest manifest when the writer began; commits before it are unknown here */
  constructor(private readonly firstManifest: number) {}

  /** Number of commits with checkpoints so far. A unit notes it when it begins. */
  get count(): number {
    return this.commits;
  }

  /** Throws `conflict` if another commit has stored a source of a unit since the unit began at count `since`. */
  checkUnit(since: number, checkpoints: readonly Checkpoint[], values: CommittedValues): void {
    for (const checkpoint of checkpoints) {
      const { continues, path } = checkpoint;
      const inode = inodeOf(checkpoint);
      const gone = continues !== undefined && values.checkpoint(continues) === undefined;
      const came = (this.keys.get(checkpointKey(checkpoint)) ?? 0) > since;
      const read = inode !== undefined && (this.inodes.get(inode) ?? 0) > since;
      if (gone || came || read) throw conflict(path);
    }
  }

  /** The same check for appended rows, whose reader took the checkpoints of its sources from manifest `asOf`. */
  checkAppend(asOf: number | undefined, checkpoints: readonly Checkpoint[], values: CommittedValues): void {
    for (const checkpoint of checkpoints) {
      const { continues, path, inode } = checkpoint;
      const gone = continues !== undefined && values.checkpoint(continues) === undefined;
      // A copy of the file may have been loaded.
      const begunAs = beginningOf(checkpoint);
      const loaded = Math.max(this.loaded.get(inode ?? '') ?? 0, this.loaded.get(begunAs) ?? 0);
      const known = Math.max(this.firstManifest, loaded);
      if (gone || (asOf !== undefined && asOf < known)) throw conflict(path);
    }
  }

  /** Notes the publication of a unit with manifest number `manifest`. */
  published(checkpoints: readonly Checkpoint[], manifest: number): void {
    this.appended(checkpoints);
    for (const checkpoint of checkpoints) {
      this.keys.set(checkpointKey(checkpoint), this.commits);
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.loaded.set(inode, manifest);
      this.loaded.set(beginningOf(checkpoint), manifest);
    }
  }

  /** Notes an append. */
  appended(checkpoints: readonly Checkpoint[]): void {
    if (checkpoints.length === 0) return;
    this.commits++;
    for (const checkpoint of checkpoints) {
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.inodes.set(inode, this.commits);
    }
  }
}

/** Inode of the file that was read, compressed or not. */
function inodeOf({ inode, packedInode }: Checkpoint): string | undefined {
  return inode ?? packedInode;
}

function beginningOf({ headHash, headBytes }: Checkpoint): string {
  return `${headHash}:${headBytes}`;
}

function conflict(path: string): LogstrataError {
  return new LogstrataError('conflict', `${path} was stored by another process in the meantime`, { path });
}
