import { createHash } from 'node:crypto';
import { type LocalCopy, encodeBlock, blockBytes } from './object-blocks.js';
import { assert, isLogstrataError } from '../core/errors.js';
import {
  objectBlockBytes,
  objectGapBytesMax,
  objectRequestBytesMax,
  serverRequestsMax,
} from '../core/limits.js';
import type { Directory } from '../store/disk/directory.js';
import { openRealDirectory } from '../store/disk/real-directory.js';
import { closing, once, SharedWork } from '../core/waiting.js';
import { Semaphore } from '../workers/semaphore.js';
import type { ObjectVersion } from './object-client.js';

/** Share of the cache that is freed when it is full. Evicting single blocks would make it full again at once. */
const freedShare = 1 / 16;

/**
 * A cache of blocks of objects on the local disk, one file for each block, with a limit on its size. The least recently used blocks are
 * evicted; pinned blocks stay. The blocks are only copies: if a crash or another process removes some, they are requested again.
 */
export class BlockCache {
  /** Files, `<folder of the version>/<block>`, least recently used first. */
  readonly #blocks = new Set<string>();
  readonly #pins = new Map<string, number>();
  /** Opens the cache's folder. Blocks of an earlier process are found again, in no particular order of use. */
  readonly #open = once(() => this.#find());
  readonly #eviction = new SharedWork((directory: Directory) => this.#evict(directory));

  constructor(
    private readonly folder: string,
    private readonly bytesMax: number,
  ) {}

  /** Size of the cached blocks, counting each as a full block. May exceed the limit by blocks that are pinned. */
  get bytes(): number {
    return this.#blocks.size * objectBlockBytes;
  }

  /** The folder and name of the blocks of a version of an object. */
  async placeOf(path: string, etag: string, bytes: number): Promise<LocalCopy> {
    const directory = await this.#open();
    const hash = createHash('sha256').update(`${path}\n${etag}\n${bytes}`).digest('hex');
    const name = `${hash.slice(0, 2)}/${hash.slice(2, 34)}`;
    const folder = directory.absolutePath?.(name);
    assert(folder !== undefined, 'blocks lie where threads can read them');
    return { folder, name, bytes };
  }

  /** Pins a block and returns whether it is cached. A pinned block is not evicted until it is unpinned. */
  pin({ name }: LocalCopy, block: number): boolean {
    const file = `${name}/${block}`;
    this.#pins.set(file, (this.#pins.get(file) ?? 0) + 1);
    if (!this.#blocks.delete(file)) return false;
    this.#blocks.add(file);
    return true;
  }

  /** Undoes one `pin`. The block may be evicted once it has no pin left. */
  unpin({ name }: LocalCopy, block: number): void {
    const file = `${name}/${block}`;
    const pins = this.#pins.get(file)! - 1;
    if (pins === 0) this.#pins.delete(file);
    else this.#pins.set(file, pins);
  }

  /** Notes that a block is missing or damaged. */
  forget({ name }: LocalCopy, block: number): void {
    this.#blocks.delete(`${name}/${block}`);
  }

  /** Writes a block. Throws `disk_full` and `io`. */
  async write({ name }: LocalCopy, block: number, bytes: Uint8Array): Promise<void> {
    const directory = await this.#open();
    const file = `${name}/${block}`;
    // An existing file is damaged, or another process has just written the same block.
    await directory.remove(file);
    await writeNew(directory, file, name, encodeBlock(name, block, bytes));
    this.#blocks.add(file);
    if (this.bytes > this.bytesMax) await this.#eviction.run(directory);
  }

  async #evict(directory: Directory): Promise<void> {
    const left = this.bytesMax * (1 - freedShare);
    const folders = new Set<string>();
    for (const file of this.#blocks) {
      if (this.bytes <= left) break;
      if (this.#pins.has(file)) continue;
      this.#blocks.delete(file);
      folders.add(file.slice(0, file.lastIndexOf('/')));
      await directory.remove(file);
    }
    for (const folder of folders)
      if ((await directory.list(folder)).length === 0) await directory.removeDirectory(folder);
  }

  async #find(): Promise<Directory> {
    const directory = await openRealDirectory(this.folder, { create: true });
    for (const first of await directory.list(''))
      for (const second of await directory.list(first))
        for (const block of await directory.list(`${first}/${second}`))
          this.#blocks.add(`${first}/${second}/${block}`);
    return directory;
  }
}

async function writeNew(
  directory: Directory,
  file: string,
  folder: string,
  content: Uint8Array,
): Promise<void> {
  try {
    await closing(directory.create(file), async (writable) => {
      await writable.write(0, content);
    });
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    // Another process has written the same block.
    if (error.code === 'exists') return;
    if (error.code !== 'not_found') throw error;
    await directory.makeDirectory(folder);
    await writeNew(directory, file, folder, content);
  }
}

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
  readonly #requests = new Semaphore(serverRequestsMax);
  /** By the name of the version's folder. */
  readonly #gatherings = new Map<string, Gathering>();
  /** By folder and block. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(
    private readonly cache: BlockCache,
    private readonly read: ReadRange,
  ) {}

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
    const bytes = await this.read(version, at, Math.min(version.bytes, to * objectBlockBytes));
    for (let block = from; block < to; block++) {
      const own = block * objectBlockBytes - at;
      await this.cache.write(copy, block, bytes.subarray(own, own + blockBytes(version.bytes, block)));
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
