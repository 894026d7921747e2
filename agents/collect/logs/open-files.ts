import { systemCode } from '../../sources/source-error.js';
import type { LogFiles, LogHandle } from './log-files.js';

/** A file that keeps a handle while there are enough. */
export interface HandleHolder {
  /** It has no name any more: without its handle it is lost. */
  readonly gone: boolean;
}

/** Handles that are kept at the least, however few the system gives. */
const handlesMin = 16;

/**
 * The handles of all followed files. They stay open while there are at most `max`, so that a file that is renamed or removed
 * can be read to its end; beyond that those go that were not used for longest, and are opened anew by name.
 */
export class OpenFiles {
  /** In the order of use. */
  private readonly handles = new Map<HandleHolder, LogHandle>();
  /** Holders whose handles are read from just now. */
  private readonly busy = new Set<HandleHolder>();
  private max: number;

  constructor(
    private readonly files: LogFiles,
    private readonly handlesMax: number,
  ) {
    this.max = handlesMax;
  }

  get count(): number {
    return this.handles.size;
  }

  /** The holder's handle, opened if need be. Where the system has no more handles, others are given up, and it is tried again. */
  async use(holder: HandleHolder, path: string): Promise<LogHandle> {
    const handle = this.handles.get(holder) ?? (await this.open(path));
    this.handles.delete(holder);
    this.handles.set(holder, handle);
    await this.shrink(this.max, holder);
    return handle;
  }

  /** As `use`, with a handle that stays open until `read` is done, whatever else is opened meanwhile. */
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

  /** The holder's handle if it is open; null if not. */
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

  /** There may be handles again: as many are kept as at first. */
  recover(): void {
    this.max = this.handlesMax;
  }

  private async shrink(to: number, spared: HandleHolder | undefined): Promise<void> {
    if (this.handles.size <= to) return;
    const holders = [...this.handles.keys()];
    const named = holders.filter((holder) => !holder.gone);
    const unnamed = holders.filter((holder) => holder.gone);
    // Those that still have a name can be opened again; the others only go when nothing else is left.
    for (const holder of [...named, ...unnamed]) {
      if (this.handles.size <= to) return;
      if (holder !== spared && !this.busy.has(holder)) await this.release(holder);
    }
  }

  /** Closes the holder's handle, if it has one. */
  async release(holder: HandleHolder): Promise<void> {
    const handle = this.handles.get(holder);
    this.handles.delete(holder);
    // What is only read has nothing to lose when it is closed.
    await handle?.close().catch(() => {});
  }
}
