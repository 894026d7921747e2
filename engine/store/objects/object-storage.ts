import type { ForeignPlace, LocalCopy } from '../../foreign/foreign-file.js';
import { DamageError, isLogstrataError, LogstrataError } from '../../terms/errors.js';
import {
  objectBlockAttemptsMax,
  objectBlockBytes,
  objectBlocksAheadMax,
  objectCacheBytesDefault,
  objectPagesMax,
} from '../../terms/object-limits.js';
import { BlockCache } from './block-cache.js';
import { BlockFetching } from './block-fetching.js';
import { blocksOf } from './object-blocks.js';
import type { ObjectClient, ObjectStamp, ObjectVersion } from './object-client.js';
import { objectPath, objectPlace } from './object-path.js';
import { ObjectParts } from './object-parts.js';
import { request, requestLimitsDefault, type RequestLimits } from './requests.js';
import { openS3Client, type S3Settings } from './s3-client.js';

export interface ObjectSettings extends S3Settings {
  /** Where what is fetched is kept: an absolute path. */
  readonly cacheFolder: string;
  readonly cacheBytes?: number | undefined;
  readonly limits?: Partial<RequestLimits> | undefined;
}

/** An object of a listing. */
export interface FoundObject extends ObjectStamp {
  readonly path: string;
}

/** Bytes [from, to) of an object. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The objects that `s3://` paths name. What is read of them lies on this machine's disk first, in blocks. The client is loaded with the first
 * request. Requests are tried again a bounded number of times; errors have the path, and say what somebody can do.
 */
export class ObjectStorage {
  readonly #settings: ObjectSettings;
  readonly #limits: RequestLimits;
  readonly #cache: BlockCache;
  readonly #fetching: BlockFetching;
  #client: Promise<ObjectClient> | undefined;

  constructor(settings: ObjectSettings) {
    this.#settings = settings;
    this.#limits = { ...requestLimitsDefault, ...settings.limits };
    this.#cache = new BlockCache(settings.cacheFolder, settings.cacheBytes ?? objectCacheBytesDefault);
    this.#fetching = new BlockFetching(this.#cache, (version, from, to) => this.read(version, from, to));
  }

  /** The objects whose paths begin with `prefix`, in pages. Throws `limit` for too many, `not_found` and `io`. */
  async *list(prefix: string): AsyncGenerator<readonly FoundObject[]> {
    const { bucket, key } = objectPlace(prefix);
    const client = await this.#open();
    let next: string | undefined;
    for (let pages = 0; pages === 0 || next !== undefined; pages++) {
      if (pages === objectPagesMax)
        throw new LogstrataError('limit', `${prefix} has more than ${objectPagesMax * 1000} objects`, {
          path: prefix,
        });
      const page = await request('list', prefix, this.#limits, (signal) =>
        client.list(bucket, key, next, signal),
      );
      yield page.objects.map((object) => ({ ...object, path: objectPath({ bucket, key: object.key }) }));
      next = page.next;
    }
  }

  /** What an object is now. Throws `not_found` and `io`. */
  async stamp(path: string): Promise<ObjectStamp> {
    const client = await this.#open();
    return await request('look at', path, this.#limits, (signal) => client.stamp(objectPlace(path), signal));
  }

  /** Bytes of a version of an object, which are not kept. Throws `damaged` where it is another one by now, or gone, and `io`. */
  async read({ path, etag }: ObjectVersion, from: number, to: number): Promise<Uint8Array> {
    const client = await this.#open();
    try {
      return await request('read', path, this.#limits, (signal) =>
        client.read(objectPlace(path), etag, from, to, signal),
      );
    } catch (error) {
      throw asDamage(error, path, from);
    }
  }

  /** Puts an object in its place in one step. With `onlyNew` it throws `conflict` where there is one. Throws `io`. */
  async put(path: string, bytes: Uint8Array, onlyNew = false): Promise<void> {
    const client = await this.#open();
    await request('write', path, this.#limits, (signal) =>
      client.put(objectPlace(path), bytes, onlyNew, signal),
    );
  }

  /** Begins an object that comes in parts. Throws `io`. */
  async beginParts(path: string): Promise<ObjectParts> {
    return await ObjectParts.begin(await this.#open(), path, this.#limits);
  }

  /** Removes an object. No error where there is none. Throws `io`. */
  async remove(path: string): Promise<void> {
    const client = await this.#open();
    await request('remove', path, this.#limits, (signal) => client.remove(objectPlace(path), signal));
  }

  /**
   * Has `use` read of an object what lies on this machine: `ranges` are there, and whatever else it turns out to need is fetched, and `use`
   * called again. Throws what `use` throws, and as `read` does.
   */
  async withBytes<T>(
    version: ObjectVersion,
    ranges: readonly ByteRange[],
    use: (place: ForeignPlace) => Promise<T>,
  ): Promise<T> {
    const copy = await this.#cache.copyOf(version.path, version.etag, version.bytes);
    const needed = new NeededBlocks(copy, this.#cache);
    try {
      needed.add(ranges);
      for (;;) {
        await this.#fetching.fetch(version, copy, needed.take());
        try {
          return await use({ path: version.path, copy });
        } catch (error) {
          needed.miss(error, version.path);
        }
      }
    } finally {
      needed.release();
    }
  }

  #open(): Promise<ObjectClient> {
    this.#client ??= openS3Client(this.#settings);
    return this.#client;
  }

  /** Ends connections. */
  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    client?.close();
    this.#client = undefined;
  }
}

/** The blocks of an object that one reading needs. They stay where they are until it is over. */
class NeededBlocks {
  readonly #copy: LocalCopy;
  readonly #cache: BlockCache;
  readonly #pinned = new Set<number>();
  readonly #attempts = new Map<number, number>();
  #missing: number[] = [];
  #ahead = 1;

  constructor(copy: LocalCopy, cache: BlockCache) {
    this.#copy = copy;
    this.#cache = cache;
  }

  add(ranges: readonly ByteRange[]): void {
    const blocks = blocksOf(this.#copy.bytes);
    for (const { from, to } of ranges) {
      const end = Math.min(blocks, Math.ceil(to / objectBlockBytes));
      for (let block = Math.floor(Math.max(0, from) / objectBlockBytes); block < end; block++)
        this.#add(block);
    }
  }

  #add(block: number): void {
    if (this.#pinned.has(block)) return;
    this.#pinned.add(block);
    if (!this.#cache.pin(this.#copy, block)) this.#missing.push(block);
  }

  /** Those that have to be fetched. */
  take(): readonly number[] {
    const missing = this.#missing;
    this.#missing = [];
    return missing;
  }

  /** Takes in that a reading has found a block missing; throws `error` where it is another one. */
  miss(error: unknown, path: string): void {
    if (!isLogstrataError(error) || error.code !== 'absent' || error.path !== path) throw error;
    const block = Math.floor(error.offset! / objectBlockBytes);
    const attempts = (this.#attempts.get(block) ?? 0) + 1;
    this.#attempts.set(block, attempts);
    if (attempts > objectBlockAttemptsMax) {
      const message = `${path}: what is fetched of it is lost again at once in ${this.#copy.folder}: look at that disk, and whether another process removes files there`;
      throw new LogstrataError('io', message, { path, cause: error });
    }
    if (this.#pinned.has(block)) {
      this.#cache.forget(this.#copy, block);
      this.#missing.push(block);
      return;
    }
    const from = block * objectBlockBytes;
    this.add([{ from, to: from + this.#ahead * objectBlockBytes }]);
    this.#ahead = Math.min(objectBlocksAheadMax, 2 * this.#ahead);
  }

  release(): void {
    for (const block of this.#pinned) this.#cache.unpin(this.#copy, block);
  }
}

/** Rows whose object is another one by now, or gone, are damage to those who need them. */
function asDamage(error: unknown, path: string, offset: number): unknown {
  if (!isLogstrataError(error)) return error;
  if (error.code === 'conflict') {
    const message =
      `${path} has changed since it was looked at: its ETag is another one. Put the object of before in its place, ` +
      'or have it attached anew (archive: changed: replace)';
    return new DamageError(message, { path, offset, cause: error });
  }
  if (error.code !== 'not_found') return error;
  const message = `${path} is not there any more: bring it back, or give up its records (archive: missing: retire)`;
  return new DamageError(message, { path, offset, cause: error });
}
