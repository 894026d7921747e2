import { assert, LogstrataError } from '../core/errors.js';
import { objectPartBytes } from '../core/limits.js';
import type { Directory, DiskSpace, ReadableFile, WritableFile } from '../store/disk/directory.js';
import type { ObjectParts } from './object-client.js';
import type { FoundObject, ObjectStorage } from './object-storage.js';

/**
 * A file port over the objects below a prefix, for backups. Files are written once, from start to end. The objects are listed once, when
 * the directory is opened; nobody else may write below the prefix.
 */
export class ObjectDirectory implements Directory {
  readonly replacesWhole = true;

  private constructor(
    /** `s3://bucket/prefix`, without a slash at the end. */
    readonly location: string,
    private readonly storage: ObjectStorage,
    private readonly sizes: Map<string, number>,
  ) {}

  /** @param location `s3://bucket/prefix`. Throws like `ObjectStorage.list`. */
  static async open(location: string, storage: ObjectStorage): Promise<ObjectDirectory> {
    const prefix = location.replace(/\/$/, '');
    const sizes = new Map<string, number>();
    for await (const page of storage.list(`${prefix}/`))
      for (const { path, bytes } of page) sizes.set(path.slice(prefix.length + 1), bytes);
    return new ObjectDirectory(prefix, storage, sizes);
  }

  list(path: string): Promise<string[]> {
    const start = path === '' ? '' : `${path}/`;
    const names = new Set<string>();
    for (const file of this.sizes.keys())
      if (file.startsWith(start)) names.add(file.slice(start.length).split('/', 1)[0]!);
    return Promise.resolve([...names].sort());
  }

  isFolder(path: string): Promise<boolean> {
    return Promise.resolve([...this.sizes.keys()].some((file) => file.startsWith(`${path}/`)));
  }

  /** Does nothing: object storage has no folders. */
  makeDirectory(): Promise<void> {
    return Promise.resolve();
  }

  /** Does nothing: an object is durable once it is written. */
  syncDirectory(): Promise<void> {
    return Promise.resolve();
  }

  diskSpace(): Promise<DiskSpace | null> {
    return Promise.resolve(null);
  }

  size(path: string): Promise<number> {
    const bytes = this.sizes.get(path);
    return bytes === undefined ? Promise.reject(this.#notFound(path)) : Promise.resolve(bytes);
  }

  async openRead(path: string): Promise<ReadableFile> {
    if (!this.sizes.has(path)) throw this.#notFound(path);
    const where = this.#pathOf(path);
    const stamp = await this.storage.stamp(where);
    return new ReadObject({ ...stamp, path: where }, this.storage);
  }

  create(path: string): Promise<WritableFile> {
    const whole = (bytes: number): void => void this.sizes.set(path, bytes);
    return Promise.resolve(new WrittenObject(this.#pathOf(path), this.storage, whole));
  }

  async remove(path: string): Promise<void> {
    if (!this.sizes.has(path)) return;
    await this.storage.remove(this.#pathOf(path));
    this.sizes.delete(path);
  }

  async removeDirectory(path: string): Promise<void> {
    for (const file of [...this.sizes.keys()]) if (file.startsWith(`${path}/`)) await this.remove(file);
  }

  openWrite(path: string): Promise<WritableFile> {
    return Promise.reject(this.#cannot('written to', path));
  }

  link(path: string): Promise<void> {
    return Promise.reject(this.#cannot('given a second name', path));
  }

  rename(path: string): Promise<void> {
    return Promise.reject(this.#cannot('renamed', path));
  }

  #pathOf(path: string): string {
    return `${this.location}/${path}`;
  }

  #notFound(path: string): LogstrataError {
    const where = this.#pathOf(path);
    return new LogstrataError('not_found', `${where} is not there`, { path: where });
  }

  #cannot(what: string, path: string): LogstrataError {
    const where = this.#pathOf(path);
    return new LogstrataError('unsupported', `${where} is an object and can't be ${what}`, {
      path: where,
    });
  }
}

class ReadObject implements ReadableFile {
  readonly path: string;

  constructor(
    private readonly version: FoundObject,
    private readonly storage: ObjectStorage,
  ) {
    this.path = version.path;
  }

  size(): Promise<number> {
    return Promise.resolve(this.version.bytes);
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    const end = Math.min(position + length, this.version.bytes);
    return position >= end ? new Uint8Array(0) : this.storage.read(this.version, position, end);
  }

  async readInto(position: number, target: Uint8Array): Promise<number> {
    const bytes = await this.read(position, target.length);
    target.set(bytes);
    return bytes.length;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Writes an object sequentially, as a multipart upload if it is long. The object exists once `sync` has returned. */
class WrittenObject implements WritableFile {
  #pieces: Uint8Array[] = [];
  #waiting = 0;
  #bytes = 0;
  #parts: ObjectParts | undefined;
  #isWhole = false;

  constructor(
    readonly path: string,
    private readonly storage: ObjectStorage,
    private readonly onWhole: (bytes: number) => void,
  ) {}

  async write(position: number, bytes: Uint8Array): Promise<void> {
    assert(
      position === this.#bytes && !this.#isWhole,
      'an object is written from its beginning to its end, once',
    );
    this.#bytes += bytes.length;
    // Copied, because the caller may reuse its memory.
    this.#pieces.push(bytes.slice());
    this.#waiting += bytes.length;
    if (this.#waiting >= objectPartBytes) await this.#putPart();
  }

  async #putPart(): Promise<void> {
    this.#parts ??= await this.storage.beginParts(this.path);
    await this.#parts.put(this.#take());
  }

  #take(): Uint8Array {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#waiting = 0;
    return bytes;
  }

  async sync(): Promise<void> {
    if (this.#isWhole) return;
    if (this.#parts === undefined) {
      await this.storage.put(this.path, this.#take());
    } else {
      if (this.#waiting > 0) await this.#putPart();
      await this.#parts.end();
    }
    this.#isWhole = true;
    this.onWhole(this.#bytes);
  }

  truncate(): Promise<void> {
    return Promise.reject(
      new LogstrataError('unsupported', `${this.path} is an object`, { path: this.path }),
    );
  }

  /** Drops the upload if it was not synced. */
  async close(): Promise<void> {
    if (!this.#isWhole) await this.#parts?.drop();
  }
}
