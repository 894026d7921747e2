import { systemCode } from '../../sources/byte-source.js';
import type { LogFiles, LogHandle } from './log-files.js';

/** The owner of a handle in `OpenFiles`. */
export interface HandleHolder {
  /** Whether the file has no name any more. Without its handle it can't be read then. */
  readonly isGone: boolean;
}

/** Number of handles that are kept at least, however few the system allows. */
const handlesMin = 16;

/**
 * The handles of all followed files. They stay open while there are at most `max`, so that a file that is renamed or removed
 * can be read to its end. Beyond that, the least recently used are closed and reopened by name when needed.
 */
export class OpenFiles {
  /** Least recently used first. */
  private readonly handles = new Map<HandleHolder, LogHandle>();
  /** Holders whose handles are being read from; these handles are not closed. */
  private readonly busy = new Set<HandleHolder>();

  constructor(
    private readonly files: LogFiles,
    private max: number,
  ) {}

  /** Returns the holder's handle; opens it if needed. Where the system has no more handles, closes others and tries again. */
  async use(holder: HandleHolder, path: string): Promise<LogHandle> {
    const handle = this.handles.get(holder) ?? (await this.open(path));
    this.handles.delete(holder);
    this.handles.set(holder, handle);
    await this.shrink(this.max, holder);
    return handle;
  }

  /** Like `use`, but keeps the handle open until `read` is done, whatever else is opened meanwhile. */
  async whileOpen<T>(
    holder: HandleHolder,
    path: string,
    read: (handle: LogHandle) => Promise<T>,
  ): Promise<T> {
    this.busy.add(holder);
    try {
      return await read(await this.use(holder, path));
    } finally {
      this.busy.delete(holder);
    }
  }

  /** The holder's handle if it is open; else null. */
  opened(holder: HandleHolder): LogHandle | null {
    return this.handles.get(holder) ?? null;
  }

  private async open(path: string): Promise<LogHandle> {
    for (;;) {
      try {
        return await this.files.open(path);
      } catch (error) {
        const code = systemCode(error);
        if (code !== 'EMFILE' && code !== 'ENFILE') throw error;
        const before = this.handles.size;
        const fewer = Math.max(handlesMin, Math.floor(before / 2));
        if (fewer >= before) throw error;
        this.max = fewer;
        await this.shrink(fewer, undefined);
        if (this.handles.size === before) throw error;
      }
    }
  }

  private async shrink(to: number, spared: HandleHolder | undefined): Promise<void> {
    if (this.handles.size <= to) return;
    const holders = [...this.handles.keys()];
    const named = holders.filter((holder) => !holder.isGone);
    const unnamed = holders.filter((holder) => holder.isGone);
    // Files that still have a name can be opened again; handles of the others are closed last.
    for (const holder of [...named, ...unnamed]) {
      if (this.handles.size <= to) return;
      if (holder !== spared && !this.busy.has(holder)) await this.release(holder);
    }
  }

  /** Closes the holder's handle, if it has one. */
  async release(holder: HandleHolder): Promise<void> {
    const handle = this.handles.get(holder);
    this.handles.delete(holder);
    // The handle is read-only, so a failure to close loses nothing.
    await handle?.close().catch(() => {});
  }
}
