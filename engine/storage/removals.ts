import type { AgentState } from './agent-state.js';
import type { Directory } from './directory.js';
import type { Manifest, RejectedEntry } from './manifest.js';

interface Removal {
  readonly file: string;
  /** Number of the first manifest without the file. */
  readonly manifest: number;
  readonly atMs: number;
}

/**
 * Files that have left the manifest. One is removed when no snapshot of this process can still read it and the longest
 * query time has passed, for the readers of other processes; those that come too late find it gone and read the
 * newest manifest.
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

  /** Files under the agent's folder that the newest manifest no longer names. */
  add(files: readonly string[]): void {
    const manifest = this.state.manifest?.number ?? 0;
    for (const file of files) this.waiting.push({ file, manifest, atMs: this.clock() + this.delayMs });
  }

  /** Removes what nobody can need any more. `now`: without waiting for readers of other processes. */
  async run(when: 'due' | 'now'): Promise<void> {
    const keep: Removal[] = [];
    const due: Removal[] = [];
    for (const removal of this.waiting) {
      const passed = when === 'now' || removal.atMs <= this.clock();
      (passed && !this.state.pinnedBefore(removal.manifest) ? due : keep).push(removal);
    }
    this.waiting = keep;
    for (const { file } of due) await this.directory.remove(`${this.state.agent}/${file}`);
  }

  /** A file that was begun for a commit which failed. */
  doubt(file: string): void {
    this.doubtful.push(file);
  }

  /** Removes what failed commits have begun, unless the newest state names it. */
  async removeDoubtful(): Promise<void> {
    const named = this.state.namedFiles();
    for (const file of this.doubtful.splice(0))
      if (!named.has(file)) await this.directory.remove(`${this.state.agent}/${file}`);
  }

  /** Removes files that a unit of work had moved into place before it failed. */
  async removeUnit(id: string, live: ReadonlySet<string>): Promise<void> {
    const { agent } = this.state;
    for (const folder of await this.directory.list(agent)) {
      if (!folder.startsWith('dt=') && folder !== 'rejected') continue;
      for (const name of await this.directory.list(`${agent}/${folder}`)) {
        const unnamed = name.startsWith(id) && !live.has(`${folder}/${name}`);
        if (unnamed) await this.directory.remove(`${agent}/${folder}/${name}`);
      }
    }
  }
}

/**
 * Every file of a committed state, under the agent's folder: those that the manifest names, and those of rejected lines that
 * hot batches have come with since.
 */
export function namedFiles(manifest: Manifest, hotRejected: readonly RejectedEntry[]): Set<string> {
  const files = new Set<string>();
  for (const { file } of manifest.segments) files.add(file);
  for (const { file } of manifest.hot) files.add(file);
  for (const { file } of [...manifest.rejected, ...hotRejected]) files.add(file);
  return files;
}

const ownFolders = /^(dt=\d{4,}-\d\d-\d\d|hot|rejected)$/;
const ownNames = /^[0-9a-f]{12}(-\d{5,})?\.(parquet|arrows|jsonl)$/;

/** Files of our own making in an agent's folder that its newest state does not name: what crashes have left. */
export async function unnamedFiles(
  directory: Directory,
  agent: string,
  named: ReadonlySet<string>,
): Promise<string[]> {
  return (await ownFiles(directory, agent)).filter((file) => !named.has(file));
}

/** Files of our own making in an agent's folder, named by a manifest or not. */
export async function ownFiles(directory: Directory, agent: string): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list(agent)) {
    if (!ownFolders.test(folder)) continue;
    for (const name of await directory.list(`${agent}/${folder}`)) {
      const file = `${folder}/${name}`;
      if (ownNames.test(name)) files.push(file);
    }
  }
  return files;
}
