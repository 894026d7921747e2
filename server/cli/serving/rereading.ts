import { statSync } from 'node:fs';

/** What has a server read things anew. */
export type RereadCause = 'SIGHUP' | 'watch';

/** Something that a running server reads anew. */
export interface Rereadable {
  /** A text that changes with what is read. */
  fingerprint(): string | Promise<string>;
  /** Reads it and goes by it. Nothing fails: what is wrong is logged, and then it stays as it was. */
  reread(cause: RereadCause): Promise<void>;
}

/** How often what is watched is looked at. Notifications of changes are not used: some file systems send none. */
const watchMs = 2000;

/** Has things read anew at SIGHUP, and where they are watched when they have changed. */
export class Rereading {
  #working: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  readonly #things: readonly Rereadable[];
  readonly #onSignal = (): void => this.#next(() => this.#around(() => this.#rereadAll()));
  readonly #around: (work: () => Promise<void>) => Promise<void>;

  /** @param around runs what a signal has asked for */
  constructor(things: readonly Rereadable[], around: (work: () => Promise<void>) => Promise<void>) {
    this.#things = things;
    this.#around = around;
  }

  /** Begins to wait for SIGHUP and, if wanted, to watch. What changes once this has resolved is seen. */
  async listen(watch: boolean): Promise<void> {
    process.on('SIGHUP', this.#onSignal);
    if (!watch) return;
    const seen = new Map<Rereadable, string>();
    await this.#look(seen);
    this.#timer = setInterval(() => this.#next(() => this.#look(seen)), watchMs);
    this.#timer.unref();
  }

  /** Stops listening and waits for the reading under way. From then on SIGHUP ends the process, as usual. */
  async close(): Promise<void> {
    process.off('SIGHUP', this.#onSignal);
    clearInterval(this.#timer);
    await this.#working;
  }

  /** Does one thing after another. */
  #next(work: () => Promise<void>): void {
    this.#working = this.#working.then(work);
  }

  async #rereadAll(): Promise<void> {
    for (const thing of this.#things) await thing.reread('SIGHUP');
  }

  /** Has those read that are not as they were seen. The first look only sees. */
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

/** A text that changes with the file. */
export function fingerprintOfFile(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'gone' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
}

/** What went wrong, for a log. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
