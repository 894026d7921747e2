import type { AgentState } from '../reading/agent-state.js';
import { isLogstrataError } from '../../core/errors.js';
import type { Directory } from '../disk/directory.js';
import { removalName } from '../disk/real-directory.js';

interface Removal {
  readonly path: string;
  /** Number of the first manifest that does not name the file. */
  readonly manifest: number;
  /** Earliest time of the removal (ms, by `clock`). */
  readonly atMs: number;
}

/**
 * Files that the manifest no longer names and that wait for their removal. A segment's file is renamed at once, so that file patterns of
 * other tools do not match it. A file is removed once no snapshot of this process can read it and the longest query time has passed, so
 * that queries of other processes have ended. A query that still needs it gets "not found" and continues with the newest manifest.
 */
export class Removals {
  private waiting: Removal[] = [];
  private doubtful: string[] = [];

  constructor(
    private readonly directory: Directory,
    private readonly state: AgentState,
    private readonly delayMs: number,
    private readonly clock: () => number,
  ) {}

  /** Adds files, relative to the agent's folder, that the newest durable manifest no longer names. */
  async add(files: readonly string[]): Promise<void> {
    const manifest = this.state.manifest?.number ?? 0;
    for (const file of files) {
      const path = `${this.state.agent}/${file}`;
      const renamed = removalName(path);
      const isMoved = renamed !== null && (await this.move(path, renamed));
      this.waiting.push({ path: isMoved ? renamed : path, manifest, atMs: this.clock() + this.delayMs });
    }
  }

  private async move(from: string, to: string): Promise<boolean> {
    try {
      await this.directory.rename(from, to);
      return true;
    } catch (error) {
      // The publication stays valid: other tools may still see a file that keeps its name, but our own queries do not read it.
      if (!isLogstrataError(error)) throw error;
      return false;
    }
  }

  /** Removes the files that no query can need any more. `now` does not wait for queries of other processes. */
  async run(when: 'due' | 'now'): Promise<void> {
    const keep: Removal[] = [];
    const due: Removal[] = [];
    for (const removal of this.waiting) {
      const passed = when === 'now' || removal.atMs <= this.clock();
      (passed && !this.state.pinnedBefore(removal.manifest) ? due : keep).push(removal);
    }
    this.waiting = keep;
    for (const { path } of due) await this.directory.remove(path);
  }

  /** Notes a file that was begun for a failed commit. */
  doubt(file: string): void {
    this.doubtful.push(file);
  }

  /** Removes the files of failed commits that the newest state does not name. */
  async removeDoubtful(): Promise<void> {
    const named = this.state.namedFiles();
    for (const file of this.doubtful.splice(0))
      if (!named.has(file)) await this.directory.remove(`${this.state.agent}/${file}`);
  }

  /** Removes files that a unit of work had moved into place before it failed. */
  async removeUnit(id: string, live: ReadonlySet<string>): Promise<void> {
    const { agent } = this.state;
    for (const folder of await this.directory.list(agent)) {
      if (!folder.startsWith('dt=') && folder !== 'rejected' && folder !== 'attached') continue;
      for (const name of await this.directory.list(`${agent}/${folder}`)) {
        const unnamed = name.startsWith(id) && !live.has(`${folder}/${name}`);
        if (unnamed) await this.directory.remove(`${agent}/${folder}/${name}`);
      }
    }
  }
}
