import {
  realLogFiles,
  type FileStatus,
  type LogFiles,
  type LogHandle,
} from '../../agents/collect/logs/log-files.js';

/** A call on the logs' file system. */
export interface LogCall {
  readonly operation: 'list' | 'status' | 'open' | 'read' | 'handleStatus' | 'isLink' | 'empty' | 'rename';
  readonly path: string;
  /** Number of calls so far, including this one. */
  readonly number: number;
}

/** The real file system with faults: `failure` returns the code of a system error, or null. */
export function faultyFiles(failure: (call: LogCall) => string | null): LogFiles & { calls(): number } {
  let number = 0;
  const attempt = (operation: LogCall['operation'], path: string): void => {
    const code = failure({ operation, path, number: ++number });
    if (code !== null)
      throw Object.assign(new Error(`${code}: ${operation} '${path}'`), { code, syscall: operation });
  };
  const handleOf = (path: string, handle: LogHandle): LogHandle => ({
    status: async () => {
      attempt('handleStatus', path);
      return handle.status();
    },
    read: async (bytes, at, length, position) => {
      attempt('read', path);
      return handle.read(bytes, at, length, position);
    },
    close: () => handle.close(),
  });
  return {
    calls: () => number,
    list: async (folder) => {
      attempt('list', folder);
      return realLogFiles.list(folder);
    },
    status: async (path) => {
      attempt('status', path);
      return realLogFiles.status(path);
    },
    open: async (path) => {
      attempt('open', path);
      return handleOf(path, await realLogFiles.open(path));
    },
    realPath: (path) => realLogFiles.realPath(path),
    isLink: async (path) => {
      attempt('isLink', path);
      return realLogFiles.isLink(path);
    },
    empty: async (path, inode, sizeBytes) => {
      attempt('empty', path);
      return realLogFiles.empty(path, inode, sizeBytes);
    },
    rename: async (from, to) => {
      attempt('rename', from);
      return realLogFiles.rename(from, to);
    },
    watch: () => null,
  };
}

/** The real file system, of which each status is changed by `change`. */
export function changedStatus(change: (status: FileStatus) => Partial<FileStatus>): LogFiles {
  const changed = (status: FileStatus): FileStatus => ({ ...status, ...change(status) });
  return {
    ...realLogFiles,
    status: async (path) => changed(await realLogFiles.status(path)),
    open: async (path) => {
      const handle = await realLogFiles.open(path);
      return {
        status: async () => changed(await handle.status()),
        read: (bytes, at, length, position) => handle.read(bytes, at, length, position),
        close: () => handle.close(),
      };
    },
  };
}
