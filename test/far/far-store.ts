import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore, StoreContext } from '../../engine/archive/agent-store.js';
import { FarTier } from '../../engine/far/far-tier.js';
import { freeAndDrop, shipNext, type Ship } from '../../engine/far/ship-agent.js';
import { shipSegment } from '../../engine/far/ship-segment.js';
import { FarCluster } from '../../engine/far/far-cluster.js';
import { type FarSettings, openFarTransport } from '../../engine/far/far-transport.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import type { Schema } from '../../engine/core/schema.js';
import type { Query } from '../../engine/scan/query.js';
import { load, noon, openOn, textOf } from '../engine/store/memory-archive.js';
import { ModelStore } from '../engine/store/model-store.js';
import { answerOf } from '../model/answer.js';
import type { Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { FaultyTransport } from './faulty-transport.js';

const dayMs = 86_400_000;

export interface TestTier extends FarTier {
  readonly transport: FaultyTransport;
}

/** A tier that takes every sealed segment, whatever its age, and frees its local file at once. */
export async function tierOf(servers: FarSettings, keepLocalMs = 0): Promise<TestTier> {
  const transport = new FaultyTransport(await openFarTransport(servers));
  const tier = new FarTier({
    cluster: new FarCluster(servers, transport),
    policy: { afterMs: -400_000 * dayMs, keepLocalMs },
    bytesPerSecond: Infinity,
    longestQueryMs: 0,
  });
  return Object.assign(tier, { transport });
}

/** A name that no other test uses. */
export function freshName(): string {
  return `t${randomBytes(6).toString('hex')}`;
}

/** An archive with one agent and a far tier, and the model of its records. */
export class FarStore {
  private constructor(
    readonly archive: Archive,
    readonly store: AgentStore,
    readonly model: ModelStore,
  ) {}

  static async open(
    tier: FarTier,
    schema: Schema,
    name = freshName(),
    directory: Directory = new MemoryDirectory(),
    model = new ModelStore(schema),
    now = () => noon,
  ): Promise<FarStore> {
    const archive = await openOn(directory, now, undefined, { far: tier });
    return new FarStore(archive, await archive.agent(name, schema), model);
  }

  get context(): StoreContext {
    return (this.store as unknown as { context: StoreContext }).context;
  }

  /** Loads rows as one unit, which becomes a segment. */
  async load(rows: readonly (readonly Value[])[]): Promise<void> {
    if (rows.length === 0) return;
    await load(this.store, rows);
    this.model.load(rows, noon);
  }

  /** Ships the segments whose places in the manifest satisfy the condition, and frees their local files. */
  async shipSome(tier: FarTier, isShipped: (segment: number) => boolean): Promise<void> {
    const { state, access, directory } = this.context;
    const committer = await access.committer();
    await access.refresh();
    const segments = state.manifest?.segments ?? [];
    const staying = segments.filter((_, segment) => !isShipped(segment));
    const except = new Set(staying.map(({ file }) => file));
    const { cluster, bytesPerSecond } = tier;
    const ship: Ship = (entry, schema, attempt) =>
      shipSegment({ directory, cluster, agent: state.agent, schema, bytesPerSecond }, entry, attempt);
    while ((await shipNext({ state, committer }, tier, noon, ship, except)) !== null) await access.refresh();
    await freeAndDrop({ state, committer }, tier, noon);
    await access.refresh();
    const { units, onlyRecords } = (await this.store.stats()).far;
    const far = segments.filter(({ file }) => !except.has(file));
    expect({ units, onlyRecords }).toEqual({
      units: far.length,
      onlyRecords: far.reduce((sum, { rows }) => sum + rows, 0),
    });
  }

  async answer(query: Query): Promise<string> {
    const { lines } = await this.store.scan(query);
    return textOf(lines);
  }

  expected(query: Query): string {
    return answerOf(this.model, query);
  }

  close(): Promise<void> {
    return this.archive.close();
  }
}
