import type { LocalCopy } from '../../foreign/foreign-file.js';
import { Semaphore } from '../../workers/semaphore.js';
import {
  objectBlockBytes,
  objectGapBytesMax,
  objectRequestBytesMax,
  serverRequestsMax,
} from '../../terms/far-limits.js';
import type { BlockCache } from './block-cache.js';
import { blockBytes } from './object-blocks.js';
import type { ObjectVersion } from './object-client.js';

/** Reads the bytes [from, to) of a version of an object. */
type ReadRange = (version: ObjectVersion, from: number, to: number) => Promise<Uint8Array>;

/** Blocks [from, to) that are fetched by one request. */
export interface BlockRun {
  readonly from: number;
  readonly to: number;
}

const gapBlocksMax = objectGapBytesMax / objectBlockBytes;
/** Blocks of one request. */
export const runBlocksMax = objectRequestBytesMax / objectBlockBytes;

/** Blocks of one object that were asked for in the same turn of the event loop. */
interface Gathering {
  readonly version: ObjectVersion;
  readonly copy: LocalCopy;
  readonly blocks: Set<number>;
  readonly done: Promise<void>;
}

/**
 * Fetches blocks of objects into the cache, in few requests. Blocks that are asked for in the same turn of the event loop, such as those of
 * the columns of a row group, are fetched together if they are near each other. A block that is being fetched is not requested again.
 */
export class BlockFetching {
  readonly #cache: BlockCache;
  readonly #read: ReadRange;
  readonly #requests = new Semaphore(serverRequestsMax);
  /** By the name of the version's folder. */
  readonly #gatherings = new Map<string, Gathering>();
  /** By folder and block. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(cache: BlockCache, read: ReadRange) {
    this.#cache = cache;
    this.#read = read;
  }

  /** Returns once all blocks are in the cache. Throws the errors of reading and of the cache. */
  async fetch(version: ObjectVersion, copy: LocalCopy, blocks: readonly number[]): Promise<void> {
    const waits = new Set<Promise<void>>();
    for (const block of blocks) {
      const name = `${copy.name}/${block}`;
      const known = this.#underWay.get(name);
      const done = known ?? this.#gather(version, copy, block);
      if (known === undefined) this.#underWay.set(name, done);
      waits.add(done);
    }
    // Wait for all, even after a failure: a retry must not take a block that is still being written for a missing one.
    const ends = await Promise.allSettled(waits);
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  #gather(version: ObjectVersion, copy: LocalCopy, block: number): Promise<void> {
    const known = this.#gatherings.get(copy.name);
    if (known !== undefined) {
      known.blocks.add(block);
      return known.done;
    }
    const blocks = new Set([block]);
    const done = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#gatherings.delete(copy.name);
      return this.#fetchAll(version, copy, blocks);
    });
    this.#gatherings.set(copy.name, { version, copy, blocks, done });
    return done;
  }

  async #fetchAll(version: ObjectVersion, copy: LocalCopy, blocks: ReadonlySet<number>): Promise<void> {
    try {
      const ends = await Promise.allSettled(
        runsOf([...blocks]).map((run) => this.#requests.run(() => this.#fetchRun(version, copy, run))),
      );
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    } finally {
      for (const block of blocks) this.#underWay.delete(`${copy.name}/${block}`);
    }
  }

  async #fetchRun(version: ObjectVersion, copy: LocalCopy, { from, to }: BlockRun): Promise<void> {
    const at = from * objectBlockBytes;
    const bytes = await this.#read(version, at, Math.min(version.bytes, to * objectBlockBytes));
    for (let block = from; block < to; block++) {
      const own = block * objectBlockBytes - at;
      await this.#cache.write(copy, block, bytes.subarray(own, own + blockBytes(version.bytes, block)));
    }
  }
}

/** The requests that fetch the given blocks. Blocks in a small gap between two wanted ones are fetched as well. */
export function runsOf(blocks: readonly number[]): BlockRun[] {
  const runs: { from: number; to: number }[] = [];
  for (const block of blocks.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    const isNear = last !== undefined && block - last.to <= gapBlocksMax && block < last.from + runBlocksMax;
    if (isNear) last.to = block + 1;
    else runs.push({ from: block, to: block + 1 });
  }
  return runs;
}
