import type { FolderWatch, LogFiles } from './log-files.js';
import type { WakeUp } from './wake-up.js';

/** Changes between two looks beyond which watching costs more than looking: then the folder is looked at for a while. */
const changesMax = 2000;
const restMs = 10_000;

/** Names that wait to be looked at; more are better looked at together. */
const namesMax = 200;

/** Tells which names of a folder have changed, as far as the system tells us. */
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

  get watching(): boolean {
    return this.watch !== null;
  }

  /** Begins to watch, where that is possible. Returns true when the folder must be looked at, since it was not watched before. */
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

  /** The names that have changed since the last call; null when only a look at the whole folder can tell. */
  take(nowMs: number): readonly string[] | null {
    const busy = this.changes > changesMax;
    this.changes = 0;
    if (busy) this.end(nowMs);
    const names = this.unknown || busy ? null : [...this.names];
    this.names.clear();
    this.unknown = false;
    return names;
  }

  /** Stops watching, for a while. */
  end(nowMs: number): void {
    const { watch } = this;
    this.watch = null;
    this.restUntilMs = nowMs + restMs;
    watch?.close();
  }
}
