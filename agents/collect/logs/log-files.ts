import { closeSync, constants, fstatSync, ftruncateSync, openSync, watch, type Stats } from 'node:fs';
import { lstat, open, readdir, realpath, rename, stat, type FileHandle } from 'node:fs/promises';
import { inodeOf } from '../../sources/opened-file.js';

/** What a collector asks of the file system that the logs lie on. Failures are Node's own, with their `code`. */
export interface LogFiles {
  /** What a folder holds, in no order. */
  list(folder: string): Promise<FolderEntry[]>;
  /** What stands behind a path, symbolic links followed. */
  status(path: string): Promise<FileStatus>;
  /** Opens for reading. Never waits, whatever stands there. */
  open(path: string): Promise<LogHandle>;
  /** Where a path leads, symbolic links followed. */
  realPath(path: string): Promise<string>;
  /** Whether the path itself is a symbolic link. */
  isLink(path: string): Promise<boolean>;
  /**
   * Cuts a file off to nothing if it is the one with this number and has this size. What is written between looking and cutting is
   * lost, so nothing else happens in between.
   */
  empty(path: string, inode: string, sizeBytes: number): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  /**
   * Calls `onChange` with the name of what changed in a folder, or null where that is not known, and `onEnd` once when there
   * is nothing more to come. Null when changes can't be had.
   */
  watch(folder: string, onChange: (name: string | null) => void, onEnd: () => void): FolderWatch | null;
}

export interface FolderEntry {
  readonly name: string;
  /** It is a symbolic link: what changes behind it is no change of the folder. */
  readonly isLink: boolean;
}

export interface FileStatus {
  /** Device and number, as checkpoints name them. */
  readonly inode: string;
  readonly sizeBytes: number;
  /** Last change of the content, in milliseconds. */
  readonly modifiedMs: number;
  readonly isFile: boolean;
  /** Names that the file has: 0 when it was removed and is only still open. */
  readonly links: number;
}

export interface LogHandle {
  status(): Promise<FileStatus>;
  /** Reads into bytes[at, at + length); gives how many there were. */
  read(bytes: Uint8Array, at: number, length: number, position: number): Promise<number>;
  close(): Promise<void>;
}

export interface FolderWatch {
  close(): void;
}

function statusOf(stats: Stats): FileStatus {
  return {
    inode: inodeOf(stats),
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    isFile: stats.isFile(),
    links: stats.nlink,
  };
}

class RealHandle implements LogHandle {
  constructor(private readonly handle: FileHandle) {}

  async status(): Promise<FileStatus> {
    return statusOf(await this.handle.stat());
  }

  async read(bytes: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return (await this.handle.read(bytes, at, length, position)).bytesRead;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Without handing over to another thread between looking and cutting: a writer has microseconds to come in between. */
function emptySync(path: string, inode: string, sizeBytes: number): boolean {
  const handle = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(handle);
    if (inodeOf(stats) !== inode || stats.size !== sizeBytes) return false;
    ftruncateSync(handle, 0);
    return true;
  } finally {
    closeSync(handle);
  }
}

/** The file system of this machine. */
export const realLogFiles: LogFiles = {
  list: async (folder) =>
    (await readdir(folder, { withFileTypes: true })).map((entry) => ({
      name: entry.name,
      isLink: entry.isSymbolicLink(),
    })),
  status: async (path) => statusOf(await stat(path)),
  // Without O_NONBLOCK, opening a named pipe waits for a writer.
  open: async (path) => new RealHandle(await open(path, constants.O_RDONLY | constants.O_NONBLOCK)),
  realPath: realpath,
  isLink: async (path) => (await lstat(path)).isSymbolicLink(),
  // A promise, so that what is thrown is its failure.
  empty: async (path, inode, sizeBytes) => Promise.resolve(emptySync(path, inode, sizeBytes)),
  rename,
  watch(folder, onChange, onEnd) {
    try {
      const watcher = watch(folder, { persistent: false });
      watcher.on('change', (_event, name) => onChange(name === null ? null : String(name)));
      watcher.on('error', onEnd);
      watcher.on('close', onEnd);
      return watcher;
    } catch {
      // The system gives no more watches (ENOSPC, EMFILE), or the folder is not there: the caller looks at it now and then instead.
      return null;
    }
  },
};
