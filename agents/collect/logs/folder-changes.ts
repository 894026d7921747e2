import type { FolderWatch, LogFiles } from './log-files.js';
import type { WakeUp } from './wake-up.js';

/** With more changes than this between two surveys, watching costs more than surveying: watching pauses for `restMs`. */
const changesMax = 2000;
const restMs = 10_000;

/** Limit on changed names that are looked at one by one; for more, a survey is cheaper. */
const namesMax = 200;

/** Reports which names of a folder have changed, as far as the system announces changes. */
export class FolderChanges {
  private watch: FolderWatch | null = null;
  private restUntilMs = 0;
  private changes = 0;
  private readonly names = new Set<string>();
  private unknown = false;

  constructor(
    private readonly files: LogFiles,
    private readonly folder: string,
    private readonly wakeUp: WakeUp,
  ) {}

  /** Whether changes are announced at present. */
  get watching(): boolean {
    return this.watch !== null;
  }

  /** Starts watching if possible. Returns true if it did: the folder must then be surveyed, because earlier changes were not seen. */
  begin(nowMs: number): boolean {
    if (this.watch !== null) return false;
    if (nowMs < this.restUntilMs && nowMs > this.restUntilMs - 2 * restMs) return false;
    this.restUntilMs = nowMs + restMs;
    const watch: FolderWatch | null = this.files.watch(
      this.folder,
      (name) => this.changed(name),
      () => {
        if (this.watch === watch) this.watch = null;
        this.unknown = true;
      },
    );
    this.watch = watch;
    return watch !== null;
  }

  private changed(name: string | null): void {
    this.changes++;
    if (name === null || this.names.size >= namesMax) this.unknown = true;
    else this.names.add(name);
    this.wakeUp.call();
  }

  /** The names that have changed since the last call; null when only a survey of the folder can tell. */
  take(nowMs: number): readonly string[] | null {
    const busy = this.changes > changesMax;
    this.changes = 0;
    if (busy) this.end(nowMs);
    const names = this.unknown || busy ? null : [...this.names];
    this.names.clear();
    this.unknown = false;
    return names;
  }

  /** Stops watching. `begin` starts again after `restMs` at the earliest. */
  end(nowMs: number): void {
    const { watch } = this;
    this.watch = null;
    this.restUntilMs = nowMs + restMs;
    watch?.close();
  }
}
