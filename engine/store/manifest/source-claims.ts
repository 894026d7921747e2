import { LogstrataError } from '../../terms/errors.js';
import { checkpointKey, type CommittedValues } from './committed-values.js';
import type { Checkpoint } from './manifest.js';

/**
 * Keeps two who read the same source from storing its lines twice: a load and a collector, or two loads. Each commit was
 * made from what its reader knew of the source; it fails with `conflict` where somebody else has gone on meanwhile.
 */
export class SourceClaims {
  private commits = 0;
  /** Which commit of a unit a checkpoint came with, for those of this writer's life. */
  private readonly keys = new Map<string, number>();
  /** Which commit was the last of a file, of a unit or not. */
  private readonly inodes = new Map<string, number>();
  /** Number of the manifest with which a unit stored a part of a file last, by its inode and by what it begins with. */
  private readonly loaded = new Map<string, number>();

  /** @param firstManifest number of the manifest at which the writer began: of what came before it knows nothing. */
  constructor(private readonly firstManifest: number) {}

  /** Commits so far: what a unit notes when it begins. */
  get count(): number {
    return this.commits;
  }

  /** Throws `conflict` when a source of a unit that began at `since` was stored by somebody else. */
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

  /** The same for rows that are appended, whose reader knew the sources as of the manifest `asOf`. */
  checkAppend(asOf: number | undefined, checkpoints: readonly Checkpoint[], values: CommittedValues): void {
    for (const checkpoint of checkpoints) {
      const { continues, path, inode } = checkpoint;
      const gone = continues !== undefined && values.checkpoint(continues) === undefined;
      // A file of which nothing is stored may have a copy that was loaded.
      const begunAs = continues === undefined ? beginningOf(checkpoint) : '';
      const loaded = Math.max(this.loaded.get(inode ?? '') ?? 0, this.loaded.get(begunAs) ?? 0);
      const known = Math.max(this.firstManifest, loaded);
      if (gone || (asOf !== undefined && asOf < known)) throw conflict(path);
    }
  }

  /** A unit was published with the manifest `manifest`. */
  published(checkpoints: readonly Checkpoint[], manifest: number): void {
    this.appended(checkpoints);
    for (const checkpoint of checkpoints) {
      this.keys.set(checkpointKey(checkpoint), this.commits);
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.loaded.set(inode, manifest);
      this.loaded.set(beginningOf(checkpoint), manifest);
    }
  }

  /** Rows were appended. */
  appended(checkpoints: readonly Checkpoint[]): void {
    if (checkpoints.length === 0) return;
    this.commits++;
    for (const checkpoint of checkpoints) {
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.inodes.set(inode, this.commits);
    }
  }
}

/** The file that was read, compressed or not. */
function inodeOf({ inode, packedInode }: Checkpoint): string | undefined {
  return inode ?? packedInode;
}

function beginningOf({ headHash, headBytes }: Checkpoint): string {
  return `${headHash}:${headBytes}`;
}

function conflict(path: string): LogstrataError {
  return new LogstrataError('conflict', `${path} was stored by another process meanwhile`, { path });
}
