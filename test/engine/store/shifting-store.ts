import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { Query } from '../../../engine/scan/query.js';
import type { Archive } from '../../../engine/archive/archive.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import { between, type Random } from '../../model/random.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, backupFolderOn, load, noon, openCompacting, schema } from './memory-archive.js';
import type { Retention } from '../../../engine/store/manifest/retention-policy.js';

const hourMs = 3_600_000;
/** Longer than the period that the records' times cover, so that no record is expired when it is loaded. */
const retention: Retention = { periodMs: 48 * hourMs, bytesMax: null, intervalMs: hourMs, graceMs: 0 };
const strewnHours = 40;

/** Counts of the operations on the stores, to check that each kind occurred. */
export interface Disturbances {
  appends: number;
  loads: number;
  compactions: number;
  retired: number;
  restarts: number;
  crashes: number;
}

interface Opened {
  readonly directory: MemoryDirectory;
  readonly archive: Archive;
  readonly store: AgentStore;
}

/** A store that gets records, is compacted, loses old records, is closed and opened, and crashes, all while it is read. */
export class ShiftingStore {
  private current: Promise<Opened>;
  private now = noon;
  private written = 0;

  constructor(
    private readonly random: Random,
    private readonly done: Disturbances,
  ) {
    this.current = this.open(new MemoryDirectory());
  }

  /** The answer to a query as lines. A query that a restart interrupts is repeated, as a client would do. */
  async ask(query: Partial<Query>): Promise<string[]> {
    for (;;) {
      const asked = this.current;
      const { store, directory } = await asked;
      try {
        return (await answer(store, query)).split('\n').slice(0, -1);
      } catch (error) {
        if (asked === this.current && !directory.crashed) throw error;
        await nextTurn();
      }
    }
  }

  /** Updates a copy in another folder. A backup that a restart interrupts is started again. */
  async copyTo(target: MemoryDirectory): Promise<void> {
    for (;;) {
      const copied = this.current;
      const { store, directory } = await copied;
      try {
        await store.backup(backupFolderOn(target));
        return;
      } catch (error) {
        if (copied === this.current && !directory.crashed) throw error;
        await nextTurn();
      }
    }
  }

  async disturb(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      const { directory } = await this.current;
      try {
        await this.step();
      } catch (error) {
        if (!directory.crashed) throw error;
      }
      if ((await this.current).directory.crashed) await this.crash();
      await nextTurn();
    }
  }

  async close(): Promise<void> {
    const { archive, directory } = await this.current;
    await archive.close().catch((error: unknown) => {
      if (!directory.crashed) throw error;
    });
  }

  private async step(): Promise<void> {
    const { random, done } = this;
    const { archive, store } = await this.current;
    switch (between(random, 0, 9)) {
      case 0:
      case 1:
        await append(store, this.rows(0.5), 'live');
        done.appends++;
        return;
      case 2:
        await append(store, this.rows(strewnHours), 'load');
        done.appends++;
        return;
      case 3:
        await load(store, this.rows(strewnHours), 5);
        done.loads++;
        return;
      case 4:
        await store.compact();
        done.compactions++;
        return;
      case 5:
        if (await archive.compactNext()) done.compactions++;
        return;
      case 6:
        await this.retire();
        return;
      case 7:
        return this.restart();
      default:
        return this.crash({ crashAtOperation: between(random, 1, 200) });
    }
  }

  /** Advances the clock by some hours, stores a record of the new time, and runs retention. */
  private async retire(): Promise<void> {
    const { archive, store } = await this.current;
    const before = (await store.stats()).retired.records;
    this.now += between(this.random, 1, 10) * hourMs;
    await append(store, this.rows(0.5), 'live');
    await archive.retireNow();
    this.done.retired += (await store.stats()).retired.records - before;
  }

  private async restart(): Promise<void> {
    this.done.restarts++;
    const { archive, directory } = await this.current;
    this.current = this.started(directory, () => archive.close());
    await this.current;
  }

  /** Data that was not durable is lost, partly or completely. By the plan, the next crash comes during an operation. */
  private async crash(plan = {}): Promise<void> {
    this.done.crashes++;
    const { archive, directory } = await this.current;
    const modes: readonly CrashMode[] = ['lost', 'kept', { seed: between(this.random, 0, 1000) }];
    const left = directory.crash(modes[between(this.random, 0, modes.length)]!, plan);
    this.current = this.started(left);
    await archive.close().catch(() => undefined);
    await this.current;
  }

  /** The store after `before` has run and the store was reopened; both are repeated after a planned crash. */
  private async started(directory: MemoryDirectory, before = async (): Promise<void> => {}): Promise<Opened> {
    try {
      await before();
      return await this.open(directory);
    } catch (error) {
      if (!directory.crashed) throw error;
      return this.open(directory.crash('kept'));
    }
  }

  private async open(directory: MemoryDirectory): Promise<Opened> {
    const archive = await openCompacting(directory, () => this.now);
    return { directory, archive, store: await archive.agent('web', schema, retention) };
  }

  private rows(spreadHours: number): Value[][] {
    return Array.from({ length: between(this.random, 1, 40) }, () => {
      const n = this.written++;
      const timeMs = this.now - Math.floor(this.random() * spreadHours * hourMs);
      return [BigInt(timeMs), BigInt(n % 2), n % 5 === 0 ? null : n % 7, `record ${n}`];
    });
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
