import { type AgentStore, BatchBuilder, type WorkerPool } from '../../engine/index.js';
import type { AgentDefinition, SystemInput } from '../definition/definition.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import { CollectTally, type CollectStatus } from './logs/collect-counts.js';
import { CollectPauses } from './collect-pauses.js';
import type { CollectLog } from './logs/collect-log.js';
import { systemFigures } from './system-figures.js';
import { readSystem, type SystemReading } from './system-reading.js';
import type { WakeUp } from './logs/wake-up.js';

/** Options of a collector of system figures. */
export interface SystemCollectorOptions {
  readonly store: AgentStore;
  /** Must have a `system` section. */
  readonly definition: AgentDefinition;
  readonly system: SystemInput;
  readonly timezone: string;
  /** Clock, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
}

/** Longest delay of Node's timers. */
const sleepMsMax = 2 ** 31 - 1;

/**
 * Stores a record of this machine's figures at the start and then one per interval. Differences refer to the last record
 * that was stored, so after a failed record the next one covers its time too.
 */
export class SystemCollector {
  readonly name: string;
  private readonly tally = new CollectTally();
  private readonly pauses: CollectPauses;
  private last: SystemReading | null = null;
  private readonly missing = new Set<string>();

  constructor(private readonly options: SystemCollectorOptions) {
    this.name = options.definition.name;
    this.pauses = new CollectPauses(this.name, options.log);
  }

  /** Stores figures until the signal aborts (the caller then also calls `wakeUp`, to end the sleep). */
  async run(signal: AbortSignal, wakeUp: WakeUp): Promise<void> {
    const { system, definition, log } = this.options;
    const { intervalMs } = system;
    log.info({ agent: this.name, intervalMs, fields: definition.fields.length }, 'taking figures');
    const startedMs = performance.now();
    for (let tick = 0; !signal.aborted;) {
      try {
        await this.take();
        this.pauses.resume();
      } catch (error) {
        this.pauses.pause(error);
      }
      tick = nextTick(tick, performance.now() - startedMs, intervalMs);
      await sleepUntil(startedMs + tick * intervalMs, signal, wakeUp);
    }
  }

  /** Stores one record. Throws what the storage throws. */
  async take(): Promise<void> {
    const { store, definition, system, timezone, now, workers } = this.options;
    const reading = await readSystem(workers, {
      diskPath: system.disk?.path ?? null,
      interface: system.net?.interface ?? null,
    });
    this.tellMissing(reading);
    const timeMs = now();
    const line = Buffer.from(JSON.stringify(systemFigures(reading, this.last, timeMs)));
    const options = { captures: new Map(), timezone, written: { byMs: timeMs }, columnar: false };
    const decoder = createRecordDecoder(definition, options);
    const builder = new BatchBuilder(definition.schema);
    decoder.decode(line, 0, line.length, builder, (reason) => this.tally.reject(reason));
    const batch = builder.finish();
    const counters = { ...decoder.counters, inputBytes: line.length };
    await store.append(batch, { checkpoints: [], rejected: [], counters }, 'live');
    this.last = reading;
    this.tally.records += batch.length;
    this.tally.bytes += line.length;
    this.tally.commit(timeMs);
  }

  /** Warns once about each configured source without figures. */
  private tellMissing({ disk, net }: SystemReading): void {
    const { system, log } = this.options;
    const told = (key: string, isMissing: boolean, message: string): void => {
      if (!isMissing) this.missing.delete(key);
      else if (!this.missing.has(key)) {
        this.missing.add(key);
        log.warn({ agent: this.name }, message);
      }
    };
    const path = system.disk?.path ?? '';
    told(
      'disk',
      system.disk !== undefined && disk === null,
      `disk.path ${path}: its figures can't be read and are null`,
    );
    const name = system.net?.interface ?? '';
    const what =
      name === 'default'
        ? 'there is no default network interface'
        : `the network interface ${name} (net.interface) does not exist`;
    told('net', system.net !== undefined && net === null, `${what}: its figures are null`);
  }

  /** The current state of the collection. */
  status(): CollectStatus {
    return { ...this.tally.counts(), files: [], lagBytes: 0, paused: this.pauses.reason };
  }
}

/** The tick to wait for after `tick`. Missed ticks are skipped: a second record at the same moment would add nothing. */
export function nextTick(tick: number, elapsedMs: number, intervalMs: number): number {
  return Math.max(tick + 1, Math.ceil(elapsedMs / intervalMs));
}

async function sleepUntil(dueMs: number, signal: AbortSignal, wakeUp: WakeUp): Promise<void> {
  while (!signal.aborted) {
    const leftMs = dueMs - performance.now();
    if (leftMs <= 0) return;
    await wakeUp.sleep(Math.min(leftMs, sleepMsMax));
  }
}
