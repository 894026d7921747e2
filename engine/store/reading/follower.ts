import type { AgentState } from './agent-state.js';
import type { Directory } from '../disk/directory.js';
import { Semaphore } from '../../workers/semaphore.js';
import { readCommitted, type Heads } from './recovery.js';
import { SharedWork } from '../../core/waiting.js';

/** Keeps an agent's state up to date with what the writer of another process commits, until this process becomes the writer. */
export class Follower {
  private readonly reading = new Semaphore(1);
  private readonly refreshing = new SharedWork(() =>
    this.reading.run(async () => {
      if (!this.ended) await readCommitted(this.directory, this.state, this.heads);
    }),
  );
  private ended = false;

  constructor(
    private readonly directory: Directory,
    private readonly state: AgentState,
    private readonly heads: () => Promise<Heads | undefined>,
  ) {}

  /** Updates the state to the newest committed one. Concurrent calls share one reading. */
  refresh(): Promise<void> {
    return this.refreshing.run();
  }

  /**
   * Runs `takeOver` while no reading is under way. Once it has succeeded, `refresh` does nothing. Two concurrent readings would add the
   * same hot batches twice, and a reading after a commit of this process would undo that commit in memory.
   */
  async end(takeOver: () => Promise<void>): Promise<void> {
    await this.reading.run(async () => {
      if (this.ended) return;
      await takeOver();
      this.ended = true;
    });
  }
}
