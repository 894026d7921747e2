import { isLogstrataError, type AgentStore, type Checkpoint } from '../../engine/index.js';
import type { OpenFile } from '../sources/opened-file.js';
import { isStoredAsItLies } from '../sources/source-identity.js';

/** The files whose records are stored, by path. */
export class StoredFiles {
  private readonly byPath = new Map<string, Checkpoint[]>();

  private constructor(
    checkpoints: readonly Checkpoint[],
    private readonly openFile: OpenFile,
  ) {
    for (const checkpoint of checkpoints) {
      const others = this.byPath.get(checkpoint.path);
      if (others === undefined) this.byPath.set(checkpoint.path, [checkpoint]);
      else others.push(checkpoint);
    }
  }

  /** Loads the checkpoints of an agent. Throws what the storage throws. */
  static async of(store: AgentStore, openFile: OpenFile): Promise<StoredFiles> {
    return new StoredFiles(await store.checkpoints(), openFile);
  }

  /**
   * Whether a file is stored as it is on disk (`isStoredAsItLies`). A file that can't be read counts as not stored; its
   * error is reported when it is read.
   */
  async has(path: string): Promise<boolean> {
    try {
      return await isStoredAsItLies(path, this.byPath.get(path) ?? [], this.openFile);
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      return false;
    }
  }
}
