import { LogstrataError } from '../../engine/core/errors.js';
import {
  type Directory,
  type DiskSpace,
  type ReadableFile,
  type WritableFile,
  joinPath,
  pathParts,
} from '../../engine/store/disk/directory.js';
import { seededRandom } from '../model/random.js';
import { MemoryFile, type CrashMode } from './memory-file.js';
import { MemoryFolder, MemoryTree } from './memory-tree.js';

/** The operations that change the disk; a crash or a fault can hit each of them. */
export type MutatingOperation =
  'makeDirectory' | 'create' | 'write' | 'truncate' | 'sync' | 'link' | 'rename' | 'remove' | 'syncDirectory';

export type ReadingOperation = 'list' | 'openRead' | 'openWrite' | 'read' | 'size';

/** The planned faults. Operations are counted from 1 over all files of the directory. */
export interface FaultPlan {
  /** At this mutating operation the machine stops: it throws `closed`, and so does every later operation. */
  readonly crashAtOperation?: number;
  /** This mutating operation fails once with `io`: a write leaves a part, a sync loses data that was not durable (but `failedSyncStays`). */
  readonly failAtOperation?: number;
  /** A failed sync leaves the content readable, though it never becomes durable. */
  readonly failedSyncStays?: boolean;
  /** Bytes that can be written before the disk is full: the write that crosses it leaves a part and throws `disk_full`. */
  readonly freeBytes?: number;
  /** Seed that decides how much a failing write leaves. */
  readonly seed?: number;
}

/**
 * A directory in memory that behaves like a file system, including crashes: content that was not synced, and names whose folder was not
 * synced, are lost, kept, or kept in part. Tests use it to crash at every step of a protocol.
 */
export class MemoryDirectory implements Directory {
  readonly location: string;
  /** Number of mutating operations so far, including failed ones. */
  mutations = 0;
  /** The free part of the disk. */
  free: number | null = 1;
  bytesRead = 0;
  bytesWritten = 0;
  readonly counts = new Map<MutatingOperation | ReadingOperation, number>();
  #tree: MemoryTree;
  #plan: FaultPlan;
  #random: () => number;
  #crashed = false;

  constructor(plan: FaultPlan = {}, tree = new MemoryTree('memory:')) {
    this.location = tree.location;
    this.#tree = tree;
    this.#plan = plan;
    this.#random = seededRandom(plan.seed ?? 1);
  }

  /** Whether the planned crash has happened. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** Sets the faults from now on; the count of operations continues. */
  setFaults(plan: FaultPlan): void {
    this.#plan = plan;
    this.#random = seededRandom(plan.seed ?? 1);
  }

  /** Cuts the power: every other use of this directory fails with `closed`. Returns the content of the disk. */
  crash(mode: CrashMode, plan: FaultPlan = {}): MemoryDirectory {
    this.#crashed = true;
    const random = seededRandom(typeof mode === 'object' ? mode.seed : 0);
    return new MemoryDirectory(plan, this.#tree.afterCrash(mode, random));
  }

  /** Ends only the process: every other use of this directory fails with `closed`. Returns the content that the system has in memory. */
  restart(plan: FaultPlan = {}): MemoryDirectory {
    this.#crashed = true;
    return new MemoryDirectory(plan, this.#tree);
  }

  async list(path: string): Promise<string[]> {
    this.#reading('list');
    if (this.#tree.find(path) === undefined) return [];
    return [...this.#tree.folder(path, 'list').seen.keys()].sort();
  }

  async isFolder(path: string): Promise<boolean> {
    this.#reading('list');
    return this.#tree.find(path) instanceof MemoryFolder;
  }

  async makeDirectory(path: string): Promise<void> {
    let folder = this.#tree.root;
    this.#check();
    for (const name of pathParts(path)) {
      let next = folder.seen.get(name);
      if (next === undefined) {
        next = new MemoryFolder();
        this.#mutating('makeDirectory');
        this.#tree.change([{ folder, name, node: next }]);
        this.#mayCrash();
        this.#tree.syncFolder(folder);
      }
      if (!(next instanceof MemoryFolder)) throw this.#tree.exists(path, 'create the folder');
      folder = next;
    }
  }

  async openRead(path: string): Promise<ReadableFile> {
    this.#reading('openRead');
    return new MemoryHandle(path, this.#tree.file(path, 'open'), this);
  }

  async create(path: string): Promise<WritableFile> {
    this.#mutating('create');
    const { folder, name } = this.#tree.place(path, 'create');
    if (folder.seen.has(name)) throw this.#tree.exists(path, 'create');
    const file = new MemoryFile();
    this.#tree.change([{ folder, name, node: file }]);
    this.#mayCrash();
    return new MemoryHandle(path, file, this);
  }

  async openWrite(path: string): Promise<WritableFile> {
    this.#reading('openWrite');
    return new MemoryHandle(path, this.#tree.file(path, 'open'), this);
  }

  async link(from: string, to: string): Promise<void> {
    this.#mutating('link');
    const file = this.#tree.file(from, 'link');
    const { folder, name } = this.#tree.place(to, 'link');
    if (folder.seen.has(name)) throw this.#tree.exists(to, 'link');
    this.#tree.change([{ folder, name, node: file }]);
    this.#mayCrash();
  }

  async rename(from: string, to: string): Promise<void> {
    this.#mutating('rename');
    const source = this.#tree.place(from, 'rename');
    const node = source.folder.seen.get(source.name);
    // Looking up a missing source gives the right error, whatever kind it was expected to have.
    if (node === undefined) throw this.#missing(from);
    const target = this.#tree.place(to, 'rename');
    const replaced = target.folder.seen.get(target.name);
    if (replaced instanceof MemoryFolder && (!(node instanceof MemoryFolder) || replaced.seen.size > 0)) {
      throw this.#tree.exists(to, 'rename');
    }
    if (replaced === node) return;
    this.#tree.change([
      { folder: source.folder, name: source.name, node: null },
      { folder: target.folder, name: target.name, node },
    ]);
    this.#mayCrash();
  }

  async remove(path: string): Promise<void> {
    this.#check();
    const node = this.#tree.find(path);
    if (node === undefined) return;
    this.#mutating('remove');
    this.#tree.file(path, 'remove');
    const { folder, name } = this.#tree.place(path, 'remove');
    this.#tree.change([{ folder, name, node: null }]);
    this.#mayCrash();
  }

  async removeDirectory(path: string): Promise<void> {
    this.#check();
    if (this.#tree.find(path) === undefined) return;
    const removed = this.#tree.folder(path, 'remove');
    for (const [name, child] of [...removed.seen]) {
      if (child instanceof MemoryFolder) await this.removeDirectory(joinPath(path, name));
      else await this.remove(joinPath(path, name));
    }
    this.#mutating('remove');
    const { folder, name } = this.#tree.place(path, 'remove');
    this.#tree.change([{ folder, name, node: null }]);
    this.#mayCrash();
  }

  async syncDirectory(path: string): Promise<void> {
    this.#mutating('syncDirectory');
    const folder = this.#tree.folder(path, 'sync');
    this.#mayCrash();
    this.#tree.syncFolder(folder);
  }

  diskSpace(): Promise<DiskSpace | null> {
    this.#check();
    const sizeBytes = 1e12;
    return Promise.resolve(this.free === null ? null : { sizeBytes, freeBytes: this.free * sizeBytes });
  }

  async size(path: string): Promise<number> {
    this.#reading('size');
    return this.#tree.file(path, 'read the size of').length;
  }

  /** For the files that this directory has opened. */
  readFile(file: MemoryFile, position: number, length: number): Uint8Array {
    this.#reading('read');
    const bytes = file.read(position, length);
    this.bytesRead += bytes.length;
    return bytes;
  }

  sizeOfFile(file: MemoryFile): number {
    this.#reading('size');
    return file.length;
  }

  writeFile(path: string, file: MemoryFile, position: number, bytes: Uint8Array): void {
    const fails = this.#count('write');
    const room = (this.#plan.freeBytes ?? Infinity) - this.bytesWritten;
    const wanted = fails ? Math.floor(this.#random() * (bytes.length + 1)) : bytes.length;
    const written = Math.max(0, Math.min(wanted, room));
    file.write(position, bytes.subarray(0, written));
    this.bytesWritten += written;
    this.#mayCrash();
    const where = `${this.location}/${path}`;
    if (fails) throw this.#failure(`cannot write ${where}: the disk reported an error`, where);
    if (written < bytes.length) {
      throw new LogstrataError('disk_full', `cannot write ${where}: the disk is full`, { path: where });
    }
  }

  truncateFile(file: MemoryFile, length: number): void {
    this.#mutating('truncate');
    file.truncate(length);
    this.#mayCrash();
  }

  syncFile(path: string, file: MemoryFile): void {
    const fails = this.#count('sync');
    this.#mayCrash();
    if (fails) {
      if (this.#plan.failedSyncStays === true) file.forgetUnsynced();
      else file.loseUnsynced();
      const where = `${this.location}/${path}`;
      throw this.#failure(`cannot sync ${where}: the disk reported an error`, where);
    }
    file.sync();
  }

  #missing(path: string): LogstrataError {
    const where = `${this.location}/${path}`;
    return new LogstrataError('not_found', `cannot rename ${where}: no such file or folder`, { path: where });
  }

  #failure(message: string, path: string): LogstrataError {
    return new LogstrataError('io', message, { path });
  }

  #check(): void {
    if (this.#crashed) throw new LogstrataError('closed', `${this.location} has crashed`);
  }

  #reading(operation: ReadingOperation): void {
    this.#check();
    this.counts.set(operation, (this.counts.get(operation) ?? 0) + 1);
  }

  /** Counts a mutating operation, and returns whether the plan makes it fail. */
  #count(operation: MutatingOperation): boolean {
    this.#check();
    this.mutations++;
    this.counts.set(operation, (this.counts.get(operation) ?? 0) + 1);
    return this.mutations === this.#plan.failAtOperation;
  }

  #mutating(operation: MutatingOperation): void {
    if (this.#count(operation)) throw this.#failure(`planned failure of ${operation}`, this.location);
  }

  /** The planned crash comes after the operation is done in memory and before it is durable, so that either state may survive. */
  #mayCrash(): void {
    if (this.mutations !== this.#plan.crashAtOperation) return;
    this.#crashed = true;
    this.#check();
  }
}

class MemoryHandle implements ReadableFile, WritableFile {
  readonly path: string;
  readonly #file: MemoryFile;
  readonly #directory: MemoryDirectory;
  #closed = false;

  constructor(path: string, file: MemoryFile, directory: MemoryDirectory) {
    this.path = path;
    this.#file = file;
    this.#directory = directory;
  }

  async size(): Promise<number> {
    return this.#directory.sizeOfFile(this.#open());
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    return this.#directory.readFile(this.#open(), position, length);
  }

  async readInto(position: number, target: Uint8Array): Promise<number> {
    const bytes = this.#directory.readFile(this.#open(), position, target.length);
    target.set(bytes);
    return bytes.length;
  }

  async write(position: number, bytes: Uint8Array): Promise<void> {
    this.#directory.writeFile(this.path, this.#open(), position, bytes);
  }

  async truncate(length: number): Promise<void> {
    this.#directory.truncateFile(this.#open(), length);
  }

  async sync(): Promise<void> {
    this.#directory.syncFile(this.path, this.#open());
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #open(): MemoryFile {
    if (this.#closed) {
      throw new LogstrataError('closed', `${this.#directory.location}/${this.path} is closed already`);
    }
    return this.#file;
  }
}
