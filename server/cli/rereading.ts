import { statSync } from 'node:fs';

/** Why something is read again: a signal, or a change of the watched files. */
export type RereadCause = 'SIGHUP' | 'watch';

/** A part of the configuration that a running server can read again. */
export interface Rereadable {
  /** A text that differs whenever the source has changed. */
  fingerprint(): Promise<string>;
  /** Reads the source again and applies it. Never rejects: errors are logged, and the previous state stays. */
  reread(cause: RereadCause): Promise<void>;
  /** Tries again what has failed. Called now and then. Never rejects. */
  retry?(): Promise<void>;
}

/** Milliseconds between two checks of watched files. Notifications of the system are not used, as some file systems send none. */
const watchMs = 2000;

/** Milliseconds between two attempts at what has failed. */
const retryMs = 60_000;

/** Reads things again at SIGHUP and, where watching is on, when they have changed. */
export class Rereading {
  #working: Promise<void> = Promise.resolve();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #things: readonly Rereadable[];
  readonly #onSignal = (): void => this.#next(() => this.#around(() => this.#rereadAll()));
  readonly #around: (work: () => Promise<void>) => Promise<void>;

  /** @param around wraps the work that a signal causes, to report it to the service manager */
  constructor(things: readonly Rereadable[], around: (work: () => Promise<void>) => Promise<void>) {
    this.#things = things;
    this.#around = around;
  }

  /** Starts to listen for SIGHUP and, with `watch`, to watch. Changes after this has resolved are noticed. */
  async listen(watch: boolean): Promise<void> {
    process.on('SIGHUP', this.#onSignal);
    this.#every(retryMs, async () => {
      for (const thing of this.#things) await thing.retry?.();
    });
    if (!watch) return;
    const seen = new Map<Rereadable, string>();
    await this.#look(seen);
    this.#every(watchMs, () => this.#look(seen));
  }

  #every(ms: number, work: () => Promise<void>): void {
    this.#timers.push(setInterval(() => this.#next(work), ms).unref());
  }

  /** Stops listening, and waits for the current reading. Afterwards SIGHUP ends the process, as by default. */
  async close(): Promise<void> {
    process.off('SIGHUP', this.#onSignal);
    this.#timers.forEach(clearInterval);
    await this.#working;
  }

  /** Queues work, so that only one runs at a time. */
  #next(work: () => Promise<void>): void {
    this.#working = this.#working.then(work);
  }

  async #rereadAll(): Promise<void> {
    for (const thing of this.#things) await thing.reread('SIGHUP');
  }

  /** Reads the things again whose fingerprint has changed. The first call only takes the fingerprints. */
  async #look(seen: Map<Rereadable, string>): Promise<void> {
    for (const thing of this.#things) {
      const before = seen.get(thing);
      const now = await fingerprintOf(thing);
      seen.set(thing, now);
      if (before !== undefined && before !== now) await thing.reread('watch');
    }
  }
}

async function fingerprintOf(thing: Rereadable): Promise<string> {
  try {
    return await thing.fingerprint();
  } catch (error) {
    return messageOf(error);
  }
}

/** A text that differs whenever the file has changed. */
export function fingerprintOfFile(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'gone' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
}

/** The message of an error, for a log. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
