import { closeSync, constants, fstatSync, ftruncateSync, openSync, watch, type Stats } from 'node:fs';
import { lstat, open, readdir, realpath, rename, stat, statfs, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { inodeOf } from '../../sources/opened-file.js';

/** The file system operations that a collector needs. They throw Node's errors, with their `code`. */
export interface LogFiles {
  /** Lists the entries of a folder, in no order. */
  list(folder: string): Promise<FolderEntry[]>;
  /** Status of the file that a path leads to; symbolic links are followed. */
  status(path: string): Promise<FileStatus>;
  /** Opens a file for reading. Never blocks, also not for a named pipe. */
  open(path: string): Promise<LogHandle>;
  /** Resolves a path, symbolic links included. */
  realPath(path: string): Promise<string>;
  /** Whether the path itself is a symbolic link. */
  isLink(path: string): Promise<boolean>;
  /**
   * Truncates a file to nothing if it has this inode and this size; returns whether it did. What is written between the
   * check and the truncation is lost, so the two follow each other directly.
   */
  empty(path: string, inode: string, sizeBytes: number): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  /**
   * Watches a folder. Calls `onChange` with the name that changed, or null where it is not known, and `onEnd` when
   * watching ends, also because the folder got another name. Returns null where the folder can't be watched.
   */
  watch(folder: string, onChange: (name: string | null) => void, onEnd: () => void): FolderWatch | null;
}

/** An entry of a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly isFolder: boolean;
  /** Whether it is a symbolic link: changes of its target do not show as changes of the folder. */
  readonly isLink: boolean;
}

/** Status of a file. */
export interface FileStatus {
  /** Device and inode number, in the form that checkpoints have. */
  readonly inode: string;
  readonly sizeBytes: number;
  /** Last modification of the content, in milliseconds since the epoch. */
  readonly modifiedMs: number;
  /** Creation of the file; null where that is not known. Unlike an inode number, no other file has it after a removal. */
  readonly bornMs: number | null;
  readonly isFile: boolean;
  /** Number of hard links; 0 when the file was removed and is only still open. */
  readonly links: number;
}

/** What the file system has allocated to a file. */
export interface Allocation {
  readonly sizeBytes: number;
  /** Bytes of the blocks that hold the file's data, and possibly more; all else of the file is holes. */
  readonly allocatedBytes: number;
  readonly blockBytes: number;
}

/** A file that is open for reading. */
export interface LogHandle {
  status(): Promise<FileStatus>;
  /** Null, like no function, where it is not known: a file system that compresses data has fewer blocks than there is data. */
  allocation?(): Promise<Allocation | null>;
  /** Reads up to `length` bytes from file offset `position` into `bytes` at `at`; returns how many were read. */
  read(bytes: Uint8Array, at: number, length: number, position: number): Promise<number>;
  close(): Promise<void>;
}

/** Reads `length` bytes of a log from `position` on, fewer where it ends. Throws Node's errors of reading. */
export async function readAt(handle: LogHandle, position: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const read = await handle.read(bytes, filled, length - filled, position + filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}

/** A watch on a folder; `close` ends it. */
export interface FolderWatch {
  close(): void;
}

/** Devices whose file systems keep the time of a file's creation. Elsewhere, Node gives 0 or the time of the last change. */
const keepBirths = new Set<number>();

function learnBirths({ dev, birthtimeMs, ctimeMs }: Stats): void {
  if (birthtimeMs > 0 && birthtimeMs < ctimeMs) keepBirths.add(dev);
}

function statusOf(stats: Stats): FileStatus {
  const { dev, birthtimeMs } = stats;
  learnBirths(stats);
  return {
    inode: inodeOf(stats),
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    bornMs: keepBirths.has(dev) ? Math.floor(birthtimeMs) : null,
    isFile: stats.isFile(),
    links: stats.nlink,
  };
}

/** Numbers of file systems (statfs(2)) whose blocks are as large as the data in them: ext2 to ext4, XFS, tmpfs. */
const exactSystems: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/** Unit in which the size of a file's blocks is given (stat(2)). */
const blockUnitBytes = 512;

class RealHandle implements LogHandle {
  constructor(private readonly handle: FileHandle) {}

  async status(): Promise<FileStatus> {
    return statusOf(await this.handle.stat());
  }

  async allocation(): Promise<Allocation | null> {
    // Linux has such a path also for a file that has no name any more; other systems do not.
    const system = await statfs(`/proc/self/fd/${this.handle.fd}`).catch(() => null);
    if (system === null || !exactSystems.has(system.type)) return null;
    const { size: sizeBytes, blocks } = await this.handle.stat();
    return { sizeBytes, allocatedBytes: blocks * blockUnitBytes, blockBytes: system.bsize };
  }

  async read(bytes: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return (await this.handle.read(bytes, at, length, position)).bytesRead;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Synchronous, so that only microseconds pass between the check and the truncation, in which a writer could add lines. */
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
  list: async (folder) => {
    const entries = await readdir(folder, { withFileTypes: true });
    // A log may have been created and written in one tick of the clock, which looks the same as a file system that keeps no births.
    learnBirths(await stat(folder));
    return entries.map((entry) => ({
      name: entry.name,
      isFolder: entry.isDirectory(),
      isLink: entry.isSymbolicLink(),
    }));
  },
  status: async (path) => statusOf(await stat(path)),
  // Without O_NONBLOCK, opening a named pipe waits for a writer.
  open: async (path) => new RealHandle(await open(path, constants.O_RDONLY | constants.O_NONBLOCK)),
  realPath: realpath,
  isLink: async (path) => (await lstat(path)).isSymbolicLink(),
  // A promise, so that a thrown error becomes a rejection.
  empty: async (path, inode, sizeBytes) => Promise.resolve(emptySync(path, inode, sizeBytes)),
  rename,
  watch(folder, onChange, onEnd) {
    try {
      const watcher = watch(folder, { persistent: false });
      watcher.on('change', (event, name) => {
        // The folder itself was renamed or removed, unless something in it has the same name.
        if (event === 'rename' && name === basename(folder)) onEnd();
        else onChange(name === null ? null : String(name));
      });
      watcher.on('error', onEnd);
      watcher.on('close', onEnd);
      return watcher;
    } catch {
      // The system has no more watches (ENOSPC, EMFILE), or the folder is missing: the caller surveys it regularly instead.
      return null;
    }
  },
};
