import { type ForeignPlace, type LocalCopy, blocksOf } from './object-blocks.js';
import { DamageError, isLogstrataError, LogstrataError } from '../core/errors.js';
import { attemptsMax, objectBlockBytes, objectCacheBytesDefault, objectPagesMax } from '../core/limits.js';
import { BlockCache, BlockFetching, runBlocksMax } from './block-cache.js';
import {
  type ObjectClient,
  type ObjectStamp,
  type ObjectVersion,
  objectPath,
  objectPlace,
  ObjectParts,
  request,
  requestLimitsDefault,
  type RequestLimits,
} from './object-client.js';
import { openS3Client, type S3Settings } from './s3-client.js';

export interface ObjectSettings extends S3Settings {
  /** Absolute path of the folder for cached blocks. */
  readonly cacheFolder: string;
  readonly cacheBytes?: number | undefined;
  readonly limits?: Partial<RequestLimits> | undefined;
}

/** An object found by listing. */
export interface FoundObject extends ObjectStamp {
  readonly path: string;
}

/** Bytes [from, to) of an object. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Access to objects by their `s3://` paths. Reads go through a cache of blocks on the local disk. The client library is loaded with the
 * first request. Requests are retried a limited number of times. Errors name the path and say what can be done.
 */
export class ObjectStorage {
  readonly #limits: RequestLimits;
  readonly #cache: BlockCache;
  readonly #fetching: BlockFetching;
  #client: Promise<ObjectClient> | undefined;

  constructor(private readonly settings: ObjectSettings) {
    this.#limits = { ...requestLimitsDefault, ...settings.limits };
    this.#cache = new BlockCache(settings.cacheFolder, settings.cacheBytes ?? objectCacheBytesDefault);
    this.#fetching = new BlockFetching(this.#cache, (version, from, to) => this.read(version, from, to));
  }

  /** The objects whose paths begin with `prefix`, in pages. Throws `limit` for too many objects, `not_found` and `io`. */
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

  /** Size, time and ETag of the current version of an object. Throws `not_found` and `io`. */
  async stamp(path: string): Promise<ObjectStamp> {
    const client = await this.#open();
    return await request('look at', path, this.#limits, (signal) => client.stamp(objectPlace(path), signal));
  }

  /** Reads bytes of a version of an object, without caching them. Throws `damaged` if the object was replaced or removed, and `io`. */
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

  /** Writes an object atomically. With `onlyNew` it throws `conflict` if the object exists. Throws `io`. */
  async put(path: string, bytes: Uint8Array, onlyNew = false): Promise<void> {
    const client = await this.#open();
    await request('write', path, this.#limits, (signal) =>
      client.put(objectPlace(path), bytes, onlyNew, signal),
    );
  }

  /** Begins a multipart upload. Throws `io`. */
  async beginParts(path: string): Promise<ObjectParts> {
    return await ObjectParts.begin(await this.#open(), path, this.#limits);
  }

  /** Removes an object. No error if it does not exist. Throws `io`. */
  async remove(path: string): Promise<void> {
    const client = await this.#open();
    await request('remove', path, this.#limits, (signal) => client.remove(objectPlace(path), signal));
  }

  /**
   * Calls `use`, which reads cached blocks of an object. The blocks of `ranges` are fetched before. If `use` throws `absent` because it
   * needs another block, that block is fetched and `use` is called again. Throws the errors of `use` and of `read`.
   */
  async withBytes<T>(
    version: ObjectVersion,
    ranges: readonly ByteRange[],
    use: (place: ForeignPlace) => Promise<T>,
  ): Promise<T> {
    const copy = await this.#cache.placeOf(version.path, version.etag, version.bytes);
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
    this.#client ??= openS3Client(this.settings);
    return this.#client;
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    client?.close();
    this.#client = undefined;
  }
}

/** The blocks of an object that one reading needs. They are pinned in the cache until `release`. */
class NeededBlocks {
  readonly #pinned = new Set<number>();
  readonly #attempts = new Map<number, number>();
  #missing: number[] = [];
  #ahead = 1;

  constructor(
    private readonly copy: LocalCopy,
    private readonly cache: BlockCache,
  ) {}

  add(ranges: readonly ByteRange[]): void {
    const blocks = blocksOf(this.copy.bytes);
    for (const { from, to } of ranges) {
      const end = Math.min(blocks, Math.ceil(to / objectBlockBytes));
      for (let block = Math.floor(Math.max(0, from) / objectBlockBytes); block < end; block++)
        this.#add(block);
    }
  }

  #add(block: number): void {
    if (this.#pinned.has(block)) return;
    this.#pinned.add(block);
    if (!this.cache.pin(this.copy, block)) this.#missing.push(block);
  }

  /** Returns the blocks that have to be fetched, and forgets them. */
  take(): readonly number[] {
    const missing = this.#missing;
    this.#missing = [];
    return missing;
  }

  /**
   * Notes the block that a reading found missing, and asks for twice as many blocks ahead each time. Rethrows any other error. Throws `io`
   * if the same block is missing again and again.
   */
  miss(error: unknown, path: string): void {
    if (!isLogstrataError(error) || error.code !== 'absent' || error.path !== path) throw error;
    const block = Math.floor(error.offset! / objectBlockBytes);
    const attempts = (this.#attempts.get(block) ?? 0) + 1;
    this.#attempts.set(block, attempts);
    if (attempts > attemptsMax) {
      const message = `${path}: its fetched parts disappear at once from ${this.copy.folder}: check that disk, and whether another process removes files there`;
      throw new LogstrataError('io', message, { path, cause: error });
    }
    if (this.#pinned.has(block)) {
      this.cache.forget(this.copy, block);
      this.#missing.push(block);
      return;
    }
    const from = block * objectBlockBytes;
    this.add([{ from, to: from + this.#ahead * objectBlockBytes }]);
    this.#ahead = Math.min(runBlocksMax, 2 * this.#ahead);
  }

  release(): void {
    for (const block of this.#pinned) this.cache.unpin(this.copy, block);
  }
}

/** Converts "replaced" and "not found" to damage, because the archive has rows that need the old version of the object. */
function asDamage(error: unknown, path: string, offset: number): unknown {
  if (!isLogstrataError(error)) return error;
  if (error.code === 'conflict') {
    const message =
      `${path} has changed since it was last checked: its ETag differs. Restore the earlier object, ` +
      'or attach the changed one (archive: changed: replace)';
    return new DamageError(message, { path, offset, cause: error });
  }
  if (error.code !== 'not_found') return error;
  const message = `${path} does not exist any more: restore it, or give up its records (archive: missing: retire)`;
  return new DamageError(message, { path, offset, cause: error });
}
