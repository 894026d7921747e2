import { join } from 'node:path';
import type { FolderWatch, LogFiles } from './log-files.js';
import type { WakeUp } from './wake-up.js';

/** With more changes than this between two surveys, watching costs more than surveying: watching pauses for `restMs`. */
const changesMax = 2000;
const restMs = 10_000;

/** Limit on changed paths that are looked at one by one, where there are not more folders; for more, a survey is cheaper. */
const pathsMax = 200;

/** Reports which paths in an agent's folders have changed, as far as the system announces changes. */
export class FolderChanges {
  private readonly watches = new Map<string, FolderWatch>();
  private isWatching = false;
  private restUntilMs = 0;
  private changes = 0;
  private readonly paths = new Set<string>();
  private unknown = false;

  constructor(
    private readonly files: LogFiles,
    private readonly wakeUp: WakeUp,
  ) {}

  /** Whether changes in all folders are announced at present. */
  get watching(): boolean {
    return this.isWatching;
  }

  /**
   * Watches these folders and no others, as far as possible. Those that it begins to watch count as changed, because earlier
   * changes were not seen. After a failure it rests.
   */
  begin(folders: ReadonlySet<string>, nowMs: number): void {
    for (const [folder, watch] of this.watches) {
      if (folders.has(folder)) continue;
      this.watches.delete(folder);
      watch.close();
    }
    this.isWatching = this.watches.size === folders.size;
    if (this.isWatching || (nowMs < this.restUntilMs && nowMs > this.restUntilMs - 2 * restMs)) return;
    for (const folder of folders) if (!this.watches.has(folder)) this.watch(folder, nowMs);
    this.isWatching = this.watches.size === folders.size;
  }

  private watch(folder: string, nowMs: number): void {
    const watch: FolderWatch | null = this.files.watch(
      folder,
      (name) => this.changed(name === null ? null : join(folder, name)),
      () => {
        if (this.watches.get(folder) === watch) this.changed(folder);
      },
    );
    if (watch === null) {
      this.restUntilMs = nowMs + restMs;
      return;
    }
    this.changed(folder);
    this.watches.set(folder, watch);
  }

  private changed(path: string | null): void {
    this.changes++;
    if (path === null || this.paths.size >= Math.max(pathsMax, this.watches.size)) this.unknown = true;
    else this.paths.add(path);
    // Another folder may have this name now.
    if (path !== null && this.watches.has(path)) this.drop(path);
    this.wakeUp.call();
  }

  /** Ends watching a folder and all below it. */
  private drop(path: string): void {
    for (const [folder, watch] of this.watches) {
      if (folder !== path && !folder.startsWith(`${path}/`)) continue;
      this.watches.delete(folder);
      watch.close();
    }
  }

  /** The paths that have changed since the last call; null when only a survey can tell. */
  take(nowMs: number): readonly string[] | null {
    const busy = this.changes > Math.max(changesMax, 2 * this.watches.size);
    this.changes = 0;
    if (busy) this.end(nowMs);
    const paths = this.unknown || busy ? null : [...this.paths];
    this.paths.clear();
    this.unknown = false;
    return paths;
  }

  /** Stops watching. `begin` starts again after `restMs` at the earliest. */
  end(nowMs: number): void {
    const watches = [...this.watches.values()];
    this.watches.clear();
    this.isWatching = false;
    this.restUntilMs = nowMs + restMs;
    for (const watch of watches) watch.close();
  }
}
