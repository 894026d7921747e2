import { isAgentName } from '../../terms/schema.js';
import type { Directory } from '../disk/directory.js';

/** Lists the agents' folders in a data folder. */
export class AgentFolders {
  readonly #directory: Directory;
  readonly #onWarning: (message: string) => void;
  /** Names of which a warning was given already. */
  readonly #told = new Set<string>();

  constructor(directory: Directory, onWarning: (message: string) => void) {
    this.#directory = directory;
    this.#onWarning = onWarning;
  }

  /** Names of the agents that have anything stored, sorted. Skips a file that has an agent's name, and warns of it once. */
  async agents(): Promise<string[]> {
    const names: string[] = [];
    for (const name of await this.#directory.list('')) {
      if (!isAgentName(name)) continue;
      if (!(await this.#directory.isFolder(name))) this.#tell(name);
      else if ((await this.#directory.list(name)).some(isOwn)) names.push(name);
    }
    return names;
  }

  #tell(name: string): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    const { location } = this.#directory;
    this.#onWarning(
      `${location}/${name} is skipped: the data folder has one folder per agent, and this is not one`,
    );
  }
}

function isOwn(file: string): boolean {
  return /^(manifest-|dt=|hot$|rejected$)/.test(file);
}
