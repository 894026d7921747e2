import { systemCode } from '../../sources/source-error.js';
import type { LogFiles, LogHandle } from './log-files.js';

/** A file that keeps a handle while there are enough. */
export interface HandleHolder {
  handle: LogHandle | null;
  /** It has no name any more: without its handle it is lost. */
  readonly gone: boolean;
  /** Its handle is in use just now. */
  readonly busy: boolean;
}

/** Handles that are kept at the least, however few the system gives. */
const handlesMin = 16;

/**
 * The handles of all followed files. They stay open while there are at most `max`, so that a file that is renamed or removed
 * can be read to its end; beyond that those go that were not used for longest, and are opened anew by name.
 */
export class OpenFiles {
  /** In the order of use. */
  private readonly holders = new Set<HandleHolder>();
  private max: number;

  constructor(
    private readonly files: LogFiles,
    private readonly handlesMax: number,
  ) {
    this.max = handlesMax;
  }

  get count(): number {
    return this.holders.size;
  }

  /** The holder's handle, opened if need be. Where the system has no more handles, others are given up, and it is tried again. */
  async use(holder: HandleHolder, path: string): Promise<LogHandle> {
    if (holder.handle === null) {
      const handle = await this.open(path);
      holder.handle = handle;
    }
    this.holders.delete(holder);
    this.holders.add(holder);
    await this.shrink(this.max, holder);
    return holder.handle;
  }

  private async open(path: string): Promise<LogHandle> {
    for (;;) {
      try {
        return await this.files.open(path);
      } catch (error) {
        const code = systemCode(error);
        if (code !== 'EMFILE' && code !== 'ENFILE') throw error;
        const fewer = Math.max(handlesMin, Math.floor(this.holders.size / 2));
        if (fewer >= this.holders.size) throw error;
        this.max = fewer;
        const before = this.holders.size;
        await this.shrink(fewer, undefined);
        if (this.holders.size === before) throw error;
      }
    }
  }

  /** There may be handles again: as many are kept as at first. */
  recover(): void {
    this.max = this.handlesMax;
  }

  private async shrink(to: number, spared: HandleHolder | undefined): Promise<void> {
    if (this.holders.size <= to) return;
    const named = [...this.holders].filter((holder) => !holder.gone);
    const unnamed = [...this.holders].filter((holder) => holder.gone);
    // Those that still have a name can be opened again; the others only go when nothing else is left.
    for (const holder of [...named, ...unnamed]) {
      if (this.holders.size <= to) return;
      if (holder !== spared && !holder.busy) await this.release(holder);
    }
  }

  /** Closes the holder's handle, if it has one. */
  async release(holder: HandleHolder): Promise<void> {
    this.holders.delete(holder);
    const { handle } = holder;
    holder.handle = null;
    // What is only read has nothing to lose when it is closed.
    await handle?.close().catch(() => {});
  }
}
