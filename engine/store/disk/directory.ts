/**
 * The file port: all that storage asks of a file system. One test suite runs on each implementation
 * (`real-directory`, and the tests' `memory-directory` with its crashes and faults).
 *
 * Paths are relative to the archive's folder, with `/`, never absolute and never with `..`.
 * Failures are `LogstrataError`s: `not_found`, `exists`, `disk_full`, `io`, each with the path.
 */
export interface Directory {
  /** Where the folder is, for messages: an absolute path, or a name in memory. */
  readonly location: string;
  /** Where the file system has `path`, for threads that read it by themselves. Not there for what only this thread can read. */
  absolutePath?(path: string): string;
  /**
   * Files are made whole and can't be added to: a file that is created takes the place of one of its name in one step, once it is synced. Absent:
   * `create` refuses a name that is taken, and `openWrite` opens what is there.
   */
  readonly replacesWhole?: true;
  /** Names of the files and folders in `path`, sorted; empty when `path` is not there. */
  list(path: string): Promise<string[]>;
  /** Whether `path` is there and a folder. */
  isFolder(path: string): Promise<boolean>;
  /** Creates `path` and its parents where missing, durably. */
  makeDirectory(path: string): Promise<void>;
  /** Opens for reading at any position, and never waits, whatever stands there. Throws `not_found`, and `io` for what is no regular file. */
  openRead(path: string): Promise<ReadableFile>;
  /**
   * Creates a new file; throws `exists` when there is one. Durable once `sync` and `syncDirectory` have returned. `mode` says who may read
   * it: by default everybody whom the folders let.
   */
  create(path: string, mode?: number): Promise<WritableFile>;
  /** Opens an existing file for writing at any position. Throws `not_found`. */
  openWrite(path: string): Promise<WritableFile>;
  /** Gives a file a second name; throws `exists` when that is taken: what makes publishing exclusive. */
  link(from: string, to: string): Promise<void>;
  /** Moves a file or folder, replacing a file at `to`. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file. No error when it is not there. */
  remove(path: string): Promise<void>;
  /** Removes a folder and everything in it. No error when it is not there. */
  removeDirectory(path: string): Promise<void>;
  /** Makes the names in a folder durable (fsync of the folder). */
  syncDirectory(path: string): Promise<void>;
  /** Bytes of a file. Throws `not_found`. */
  size(path: string): Promise<number>;
  /** How large the disk is, and what of it is free for this process; null where that can't be told. */
  diskSpace(): Promise<DiskSpace | null>;
}

export interface DiskSpace {
  readonly sizeBytes: number;
  readonly freeBytes: number;
}

export interface ReadableFile {
  readonly path: string;
  size(): Promise<number>;
  /**
   * `length` bytes from `position` on; fewer only when the file ends there. The result is the caller's own:
   * it starts at an 8-byte aligned offset of its ArrayBuffer.
   */
  read(position: number, length: number): Promise<Uint8Array>;
  /** Reads to `target`, which may lie in a shared memory. Returns the bytes read: fewer than it has only when the file ends there. */
  readInto(position: number, target: Uint8Array): Promise<number>;
  close(): Promise<void>;
}

export interface WritableFile {
  readonly path: string;
  /** Writes all of `bytes` at `position`, or throws; after a failure the file's content there is unknown. */
  write(position: number, bytes: Uint8Array): Promise<void>;
  truncate(length: number): Promise<void>;
  /** Makes the content durable (fdatasync). After a failure nothing written since the last success may be relied on. */
  sync(): Promise<void>;
  close(): Promise<void>;
}
