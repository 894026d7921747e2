import { constants, existsSync, promises as fs } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { assert, LogstrataError, isLogstrataError } from '../../core/errors.js';
import {
  type Directory,
  type DiskSpace,
  type ReadableFile,
  type WritableFile,
  fileSystemError,
  hasSystemCode,
  problemOfKind,
  pathParts,
} from './directory.js';

/** A longer read is limited to the size of the file first, so that a wrong length cannot allocate too much memory. */
const readUnclampedBytesMax = 1024 * 1024;

class RealFile implements ReadableFile, WritableFile {
  readonly path: string;
  readonly #absolute: string;
  #handle: FileHandle | null;

  constructor(path: string, absolute: string, handle: FileHandle) {
    this.path = path;
    this.#absolute = absolute;
    this.#handle = handle;
  }

  async size(): Promise<number> {
    const handle = this.#open();
    return this.#run('read the size of', async () => (await handle.stat()).size);
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    const handle = this.#open();
    return this.#run('read', async () => {
      const wanted =
        length <= readUnclampedBytesMax
          ? length
          : Math.min(length, Math.max(0, (await handle.stat()).size - position));
      const bytes = new Uint8Array(wanted);
      const done = await readAll(handle, position, bytes);
      return done === wanted ? bytes : bytes.subarray(0, done);
    });
  }

  async readInto(position: number, target: Uint8Array): Promise<number> {
    const handle = this.#open();
    return this.#run('read', () => readAll(handle, position, target));
  }

  async write(position: number, bytes: Uint8Array): Promise<void> {
    const handle = this.#open();
    await this.#run(
      'write',
      async () => {
        let done = 0;
        while (done < bytes.length) {
          const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
          done += bytesWritten;
        }
      },
      position,
    );
  }

  async truncate(length: number): Promise<void> {
    const handle = this.#open();
    await this.#run('truncate', () => handle.truncate(length), length);
  }

  async sync(): Promise<void> {
    const handle = this.#open();
    await this.#run('sync', () => handle.datasync());
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    if (handle === null) return;
    this.#handle = null;
    await this.#run('close', () => handle.close());
  }

  #open(): FileHandle {
    if (this.#handle === null) {
      throw new LogstrataError('closed', `${this.#absolute} is closed already`, { path: this.#absolute });
    }
    return this.#handle;
  }

  async #run<T>(action: string, work: () => Promise<T>, offset?: number): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw fileSystemError(error, action, this.#absolute, offset);
    }
  }
}

/** Reads until `target` is full or the file ends. Returns the number of bytes read. */
async function readAll(handle: FileHandle, position: number, target: Uint8Array): Promise<number> {
  let done = 0;
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}

/**
 * Creates a folder and its missing parents. Returns the created folders, innermost first. Node's recursive `mkdir` is not used: it loops
 * forever below folders such as `/proc`, which exist but in which nothing can be created.
 */
async function makeFolders(absolute: string): Promise<string[]> {
  const missing: string[] = [];
  for (let folder = absolute; !(await isFolder(folder)); folder = dirname(folder)) missing.push(folder);
  const made: string[] = [];
  for (const folder of missing.reverse()) {
    try {
      await fs.mkdir(folder);
      made.unshift(folder);
    } catch (error) {
      // Another process may have created it meanwhile.
      if (!hasSystemCode(error, 'EEXIST') || !(await isFolder(folder))) throw error;
    }
  }
  return made;
}

/** Whether `path` is a folder; false if it does not exist. Throws if a part of the path is not a folder. */
async function isFolder(path: string): Promise<boolean> {
  try {
    return (await fs.stat(path)).isDirectory();
  } catch (error) {
    if (hasSystemCode(error, 'ENOENT')) return false;
    throw error;
  }
}

class RealDirectory implements Directory {
  constructor(
    readonly location: string,
    private readonly owner?: Owner,
  ) {}

  async list(path: string): Promise<string[]> {
    return this.#run('list', path, async (absolute) => {
      try {
        return (await fs.readdir(absolute)).sort();
      } catch (error) {
        if (hasSystemCode(error, 'ENOENT')) return [];
        throw error;
      }
    });
  }

  async isFolder(path: string): Promise<boolean> {
    return this.#run('look at', path, isFolder);
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#run('create the folder', path, async (absolute) => {
      for (const made of await makeFolders(absolute)) {
        if (this.owner !== undefined) await fs.chown(made, this.owner.uid, this.owner.gid);
        // Without this a crash could undo the new name.
        await syncFolder(dirname(made));
      }
    });
  }

  async openRead(path: string): Promise<ReadableFile> {
    return this.#openFile('open', path, constants.O_RDONLY);
  }

  async create(path: string, mode = 0o644): Promise<WritableFile> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
    return this.#openFile('create', path, flags, { owner: this.owner, mode });
  }

  async openWrite(path: string): Promise<WritableFile> {
    return this.#openFile('open', path, constants.O_RDWR);
  }

  async link(from: string, to: string): Promise<void> {
    await this.#run('link', to, (absolute) => fs.link(this.absolutePath(from), absolute));
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#run('rename', from, (absolute) => fs.rename(absolute, this.absolutePath(to)));
  }

  async remove(path: string): Promise<void> {
    await this.#run('remove', path, async (absolute) => {
      try {
        await fs.unlink(absolute);
      } catch (error) {
        if (!hasSystemCode(error, 'ENOENT')) throw error;
      }
    });
  }

  async removeDirectory(path: string): Promise<void> {
    assert(pathParts(path).length > 0, 'the archive itself is never removed');
    await this.#run('remove', path, (absolute) => fs.rm(absolute, { recursive: true, force: true }));
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#run('sync', path, syncFolder);
  }

  async diskSpace(): Promise<DiskSpace | null> {
    try {
      const { blocks, bavail, bsize } = await fs.statfs(this.location);
      // Some file systems, such as network file systems, report no size.
      return blocks > 0 ? { sizeBytes: blocks * bsize, freeBytes: bavail * bsize } : null;
    } catch {
      return null;
    }
  }

  async size(path: string): Promise<number> {
    return this.#run('read the size of', path, async (absolute) => (await fs.stat(absolute)).size);
  }

  absolutePath(path: string): string {
    return join(this.location, ...pathParts(path));
  }

  async #openFile(
    action: string,
    path: string,
    flags: number,
    { owner, mode }: { readonly owner?: Owner | undefined; readonly mode?: number } = {},
  ): Promise<RealFile> {
    return this.#run(action, path, async (absolute) => {
      // Without O_NONBLOCK, opening a named pipe would block until there is a writer.
      const handle = await fs.open(absolute, flags | constants.O_NONBLOCK, mode);
      const stats = await handle.stat();
      const problem = problemOfKind(stats);
      // Writing to a device is allowed; reading from one is not.
      if (problem !== undefined && (flags === constants.O_RDONLY || stats.isDirectory())) {
        await handle.close();
        throw new LogstrataError('io', `cannot ${action} ${absolute}: ${problem}`, { path: absolute });
      }
      try {
        if (owner !== undefined) await handle.chown(owner.uid, owner.gid);
      } catch (error) {
        await handle.close();
        await fs.unlink(absolute);
        throw error;
      }
      return new RealFile(path, absolute, handle);
    });
  }

  async #run<T>(action: string, path: string, work: (absolute: string) => Promise<T>): Promise<T> {
    const absolute = this.absolutePath(path);
    try {
      return await work(absolute);
    } catch (error) {
      throw fileSystemError(error, action, absolute);
    }
  }
}

async function syncFolder(absolute: string): Promise<void> {
  const handle = await fs.open(absolute, constants.O_RDONLY);
  try {
    await handle.sync();
  } catch (error) {
    // Some systems do not support fsync of a folder. There the names are as durable as the file system makes them.
    if (!hasSystemCode(error, 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP')) throw error;
  } finally {
    await handle.close();
  }
}

/**
 * Opens the folder `absolutePath` of the real file system as a file port. If it is missing, it is created durably with its parents
 * (`create`), or `not_found` is thrown. What root creates in another user's folder gets that folder's user and group. Throws `invalid` if
 * the path is not absolute or not a folder.
 */
export async function openRealDirectory(
  absolutePath: string,
  options: { readonly create: boolean } = { create: false },
): Promise<Directory> {
  if (!isAbsolute(absolutePath)) {
    throw new LogstrataError('invalid', `the data folder must be an absolute path, not "${absolutePath}"`);
  }
  // Two spellings of one folder must give the same location, because messages and the writer lock use it.
  const location = resolve(absolutePath);
  try {
    if (options.create && !existsSync(location)) await new RealDirectory(location).makeDirectory('');
    if ((await fs.stat(location)).isDirectory()) return new RealDirectory(location, await ownerFor(location));
  } catch (error) {
    throw fileSystemError(error, 'open', location);
  }
  throw new LogstrataError('invalid', `${location} is a file, a folder was expected`, { path: location });
}

/** The user and group that own new files. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The owner of everything that this process creates in the folder at `absolute`. When root writes into another user's folder, that user
 * must be able to continue with the files. Undefined if the files may stay the process's own. Throws like `stat`.
 */
export async function ownerFor(absolute: string): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const { uid, gid } = await fs.stat(absolute);
  return uid === 0 ? undefined : { uid, gid };
}

const suffix = '.left';

/** Names of sealed segments. Files with other names may belong to other programs. */
const segmentName = /\/[0-9a-f]{12}-\d{5,}\.parquet$/;

/**
 * The name that a segment's file gets when it has left the manifest and waits for its removal. File patterns for Parquet do not match it,
 * so no other tool counts its records in addition to those of the file that replaced it. Null for a file that is no segment.
 */
export function removalName(path: string): string | null {
  return segmentName.test(`/${path}`) ? path + suffix : null;
}

/** Whether a name in the folder of a day is that of a segment that waits for its removal. */
export function isRemovalName(name: string): boolean {
  return name.endsWith(suffix) && segmentName.test(`/${name.slice(0, -suffix.length)}`);
}

/**
 * Opens a segment's file under its name, or under the name by which it waits for removal, so that queries that read an older manifest can
 * continue.
 */
export async function openSegment(directory: Directory, path: string): Promise<ReadableFile> {
  const renamed = removalName(path);
  try {
    return await directory.openRead(path);
  } catch (error) {
    if (renamed === null || !isLogstrataError(error) || error.code !== 'not_found') throw error;
    // Report the error for the name that was asked for.
    return directory.openRead(renamed).catch(() => {
      throw error;
    });
  }
}
