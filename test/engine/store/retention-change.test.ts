import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { batchFromRows } from '../../model/rows.js';
import { parseCursor } from '../../../engine/core/cursor.js';
import type { Retention, RetentionEvent } from '../../../engine/store/manifest/retention-policy.js';
import type { Archive } from '../../../engine/archive/archive.js';
import type { RetentionPolicy } from '../../../engine/store/manifest/manifest.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { append, answer, load, noExtras, noon, openOn, openToRead, schema } from './memory-archive.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

function kept(periodMs: number | null, bytesMax: number | null = null, graceMs = dayMs): Retention {
  return { periodMs, bytesMax, intervalMs: hourMs, graceMs };
}

const noThreads = new WorkerPool(0);

/** An agent's archive that can be reopened with another retention or clock, as by a server that restarts. */
class Served {
  readonly directory = new MemoryDirectory();
  nowMs = noon;
  events: RetentionEvent[] = [];
  archive!: Archive;
  store!: AgentStore;

  async start(retention: Retention | undefined): Promise<void> {
    const onRetention = (event: RetentionEvent): void => void this.events.push(event);
    const options = { background: { threads: 0 }, onRetention } as const;
    this.archive = await openOn(this.directory, () => this.nowMs, noThreads, options);
    this.store = await this.archive.agent('web', schema, retention);
  }

  async restart(retention: Retention | undefined): Promise<void> {
    await this.archive.close();
    await this.start(retention);
  }

  /** The agent's file has changed, and the server has read the change. */
  async change(retention: Retention | undefined): Promise<void> {
    await this.archive.redefine('web', schema, retention);
    await this.look();
  }

  /** Runs retention once. Returns the events that it reported, without the agent. */
  async look(): Promise<object[]> {
    this.events = [];
    await this.archive.retireNow();
    return this.events.map(({ agent: _, ...event }) => event);
  }

  async records(): Promise<number> {
    return (await answer(this.store)).split('\n').length - 1;
  }

  async stop(): Promise<void> {
    await this.archive.close();
  }
}

/** Four days of hourly records, those of the last day hot, under the given retention. */
async function served(retention: Retention | undefined): Promise<Served> {
  const each = new Served();
  await each.start(retention);
  const rows = Array.from({ length: 96 }, (_, i) => [
    BigInt(noon - (96 - i) * hourMs),
    1n,
    null,
    `hour ${i}`,
  ]);
  // Each record is stored at its own time, so that none is expired on arrival.
  for (let i = 0; i < 72; i += 24) await load(each.store, rows.slice(i, i + 24));
  await append(each.store, rows.slice(72), 'live');
  return each;
}

const policyOf = ({ periodMs, bytesMax }: RetentionPolicy): RetentionPolicy => ({ periodMs, bytesMax });

describe('a retention that removes more than before', () => {
  const before = kept(30 * dayMs);
  const after = kept(7 * 60_000);
  const over = { records: 95, fromMs: noon - 96 * hourMs, toMs: noon - hourMs };

  it('removes nothing for a day, announces what it would remove, and then removes that and reports it', async () => {
    const web = await served(before);
    expect(await web.look()).toEqual([]);
    await web.archive.redefine('web', schema, after);
    expect(await web.archive.retentionOutlook('web')).toMatchObject({
      kept: policyOf(before),
      over: { records: 0 },
    });
    expect(await web.archive.retentionOutlook('web', after)).toEqual({
      kept: policyOf(before),
      over,
      records: 96,
    });
    const pending = { ...policyOf(after), sinceMs: noon, graceMs: dayMs };
    const inForce = { ...policyOf(before), pending };
    const told = {
      kind: 'pending',
      leapt: false,
      policy: policyOf(after),
      inForce,
      over,
      records: 96,
      dueMs: noon + dayMs,
    };
    expect(await web.look()).toEqual([told]);
    expect(await web.look()).toEqual([]);
    expect(await web.records()).toBe(96);

    web.nowMs = noon + dayMs - 1;
    await web.restart(after);
    expect(await web.look()).toEqual([told]);
    expect(await web.records()).toBe(96);
    // A process that only reads gets the same report, also without a writer.
    const reader = await openToRead(web.directory);
    expect(await reader.retentionOutlook('web')).toEqual({ kept: inForce, over, records: 96 });
    await reader.close();

    web.nowMs = noon + dayMs;
    await web.restart(after);
    expect(await web.look()).toEqual([
      { kind: 'in_force', policy: policyOf(after), cause: 'grace' },
      {
        kind: 'taken',
        policy: policyOf(after),
        taken: { ...over, rejectedLines: 0, segments: 7, bytes: expect.any(Number) as number },
      },
    ]);
    expect(await web.records()).toBe(1);
    expect(await web.archive.retentionOutlook('web')).toMatchObject({ kept: policyOf(after), records: 1 });
    expect(await web.store.verify()).toMatchObject({ damages: [], records: 1 });
    await web.stop();
  });

  it('is cancelled by a return to the former retention, and waits again from the start when it comes back', async () => {
    const web = await served(before);
    await web.change(after);
    web.nowMs += 20 * hourMs;
    await web.change(before);
    expect(web.events).toMatchObject([{ kind: 'in_force', cause: 'looser', policy: policyOf(before) }]);
    await web.restart(after);
    expect(await web.look()).toMatchObject([{ kind: 'pending', dueMs: noon + 44 * hourMs }]);
    expect(await web.records()).toBe(96);
    await web.stop();
  });

  it('leaves the former retention in force while it waits', async () => {
    const web = await served(kept(2 * dayMs));
    await web.change(after);
    expect(web.events.map(({ kind }) => kind)).toEqual(['pending', 'taken']);
    expect(await web.records()).toBe(48);
    await web.stop();
  });

  it('is put in force at once on demand, and only as the file states it', async () => {
    const web = await served(before);
    await web.change(after);
    await expect(web.archive.applyRetention('web', kept(dayMs))).rejects.toMatchObject({ code: 'conflict' });
    expect(await web.records()).toBe(96);
    const events = await web.archive.applyRetention('web', after);
    expect(events).toMatchObject([
      { kind: 'in_force', cause: 'applied' },
      { kind: 'taken', taken: over },
    ]);
    expect(await web.records()).toBe(1);
    expect(await web.archive.applyRetention('web', after)).toEqual([]);
    await expect(web.archive.applyRetention('nobody', after)).rejects.toMatchObject({ code: 'not_found' });
    await web.stop();
  });

  it('does not wait if less than a tenth of the disk is free', async () => {
    const web = await served(before);
    web.directory.free = 0.1;
    await web.change(after);
    expect(await web.records()).toBe(96);
    web.directory.free = null;
    expect(await web.look()).toEqual([]);
    web.directory.free = 0.0999;
    expect(await web.look()).toMatchObject([
      { kind: 'in_force', cause: 'disk_low' },
      { kind: 'taken', taken: over },
    ]);
    expect(await web.records()).toBe(1);
    await web.stop();
  });

  it('waits one day whatever the clock does in the meantime', async () => {
    const web = await served(before);
    await web.change(after);
    for (const stepMs of [3650 * dayMs, -3650 * dayMs, -noon - dayMs]) {
      web.nowMs = noon + stepMs;
      await web.look();
      expect(await web.records()).toBe(96);
    }
    // A retention that was announced under a clock set ahead waits no longer than a day under the right clock.
    web.nowMs = noon + 3650 * dayMs;
    await web.change(kept(8 * 60_000));
    web.nowMs = noon;
    await web.restart(kept(8 * 60_000, null, 0));
    await web.look();
    expect(await web.records()).toBe(1);
    await web.stop();
  });

  it('waits for the grace period that it states now, which may be none', async () => {
    const web = await served(before);
    await web.change(kept(7 * 60_000, null, 100 * dayMs));
    expect(web.events).toMatchObject([{ kind: 'pending', dueMs: noon + 100 * dayMs }]);
    await web.change(kept(7 * 60_000, null, 0));
    expect(web.events.map(({ kind }) => kind)).toEqual(['in_force', 'taken']);
    await web.stop();
  });

  it('also waits if it is the first retention of an archive that has records', async () => {
    const web = await served(undefined);
    await web.restart(after);
    expect(await web.look()).toMatchObject([
      { kind: 'pending', inForce: { periodMs: null, bytesMax: null }, over },
    ]);
    expect(await web.records()).toBe(96);
    await web.stop();
  });

  it('is in force at once in an archive without records', async () => {
    const web = new Served();
    await web.start(after);
    await web.change(kept(dayMs));
    await append(web.store, [[BigInt(noon), 1n, null, 'x']], 'live');
    expect(await web.look()).toEqual([]);
    expect(await web.archive.retentionOutlook('web')).toMatchObject({ kept: policyOf(kept(dayMs)) });
    await web.stop();
  });

  it('may be a smaller size, whatever the period', async () => {
    const web = await served(kept(30 * dayMs, 1_000_000));
    // The longer period takes effect at once; the smaller size waits.
    await web.change(kept(60 * dayMs, 1000));
    const inForce = { periodMs: 60 * dayMs, bytesMax: 1_000_000 };
    expect(web.events).toMatchObject([{ kind: 'pending', inForce, over: { records: 71 } }]);
    expect(await web.records()).toBe(96);
    web.nowMs += dayMs;
    await web.restart(kept(60 * dayMs, 1000));
    // The newest sealed hour stays, and all hot records.
    expect(await web.look()).toMatchObject([{ kind: 'in_force' }, { kind: 'taken', taken: { records: 71 } }]);
    expect(await web.records()).toBe(25);
    await web.stop();
  });

  it("is compared with the retention that was in force before the agent's file was missing", async () => {
    const web = await served(before);
    // The file is deleted, and no retention is stated any more.
    await web.change(undefined);
    expect(web.events).toEqual([]);
    web.nowMs += 40 * dayMs;
    await web.change(before);
    // The former retention is still in force.
    expect(web.events).toEqual([]);
    await web.change(after);
    expect(web.events).toMatchObject([{ kind: 'pending', dueMs: noon + 41 * dayMs }]);
    await web.stop();
  });
});

describe('a retention that removes no more than before', () => {
  it.each([
    [kept(2 * dayMs), kept(30 * dayMs)],
    [kept(2 * dayMs), kept(null)],
    [kept(null, 1000), kept(null, 2_000_000)],
  ])('is in force at once: %o to %o', async (from, to) => {
    const web = await served(from);
    await web.change(to);
    expect(web.events).toEqual([{ agent: 'web', kind: 'in_force', policy: policyOf(to), cause: 'looser' }]);
    expect(await web.records()).toBe(96);
    await web.stop();
  });
});

describe('a clock that jumps ahead', () => {
  const month = kept(30 * dayMs);
  const ahead = noon + 3650 * dayMs;
  const over = { records: 96, fromMs: noon - 96 * hourMs, toMs: noon };
  const waits = { kind: 'pending', leapt: true, policy: policyOf(month), over, records: 97 };

  /** The archive after a record with a time ten years ahead has arrived. */
  async function leapt(retention = month): Promise<Served> {
    const web = await served(retention);
    expect(await web.look()).toEqual([]);
    web.nowMs = ahead;
    await append(web.store, [[BigInt(ahead), 1n, null, 'ahead']], 'live');
    return web;
  }

  it('removes nothing for a day, reports that once, and then removes expired records', async () => {
    const web = await leapt();
    expect(await web.look()).toMatchObject([{ ...waits, dueMs: ahead + dayMs }]);
    expect(await web.look()).toEqual([]);
    expect(await web.records()).toBe(97);
    web.nowMs = ahead + dayMs - 1;
    await web.restart(month);
    expect(await web.look()).toMatchObject([waits]);
    expect(await web.records()).toBe(97);

    web.nowMs = ahead + dayMs;
    await web.restart(month);
    expect(await web.look()).toMatchObject([
      { kind: 'in_force', cause: 'grace' },
      { kind: 'taken', taken: over },
    ]);
    expect(await web.records()).toBe(1);
    expect(await web.look()).toEqual([]);
    await web.stop();
  });

  it('has removed nothing once it is set back, and a client that follows misses no record', async () => {
    const web = await leapt();
    await web.look();
    const seen = (await answer(web.store)).split('\n').slice(-2)[0]!;
    expect(seen).toContain('ahead');
    web.nowMs = noon + hourMs;
    await web.restart(month);
    expect(await web.look()).toEqual([{ kind: 'in_force', cause: 'back', policy: policyOf(month) }]);
    await append(web.store, [[BigInt(noon + hourMs), 1n, null, 'back']], 'live');
    expect(await web.look()).toEqual([]);
    expect(await web.records()).toBe(98);
    const after = parseCursor((JSON.parse(seen) as { _cursor: string })._cursor)!;
    expect(await answer(web.store, { after })).toContain('"message":"back"');
    await web.stop();
  });

  it('does not delay retention on demand, without a grace period, or on a nearly full disk', async () => {
    const applied = await leapt();
    await applied.look();
    expect(await applied.archive.applyRetention('web', month)).toMatchObject([
      { kind: 'in_force', cause: 'applied' },
      { kind: 'taken', taken: over },
    ]);
    await applied.stop();
    const full = await leapt();
    full.directory.free = 0.09;
    expect(await full.look()).toMatchObject([{ cause: 'disk_low' }, { kind: 'taken', taken: over }]);
    await full.stop();
    const atOnce = await leapt(kept(30 * dayMs, null, 0));
    expect((await atOnce.look()).slice(1)).toMatchObject([{ kind: 'taken', taken: over }]);
    await atOnce.stop();
  });

  it('removes no more while a stricter retention waits too, which then waits again from the start', async () => {
    const web = await served(month);
    await web.change(kept(dayMs));
    web.nowMs = noon + 20 * hourMs;
    await web.look();
    web.nowMs = ahead;
    await append(web.store, [[BigInt(ahead), 1n, null, 'ahead']], 'live');
    await web.restart(kept(dayMs));
    expect(await web.look()).toMatchObject([
      { ...waits, policy: policyOf(kept(dayMs)), dueMs: ahead + dayMs },
    ]);
    expect(await web.records()).toBe(97);
    // A longer period cancels the wait, because no record is expired under it.
    await web.change(kept(5000 * dayMs));
    expect(web.events).toMatchObject([{ kind: 'in_force', cause: 'looser' }]);
    await web.stop();
  });

  it('does not stop the removal of records beyond the size', async () => {
    const web = await served(kept(30 * dayMs, 1000));
    web.nowMs = ahead;
    await append(web.store, [[BigInt(ahead), 1n, null, 'ahead']], 'live');
    // The newest sealed hour stays, and all hot records.
    expect(await web.look()).toMatchObject([
      { kind: 'pending', leapt: true },
      { kind: 'taken', taken: { records: 95 } },
    ]);
    expect(await web.records()).toBe(2);
    await web.stop();
  });

  it('is not assumed after a week without records, or for one old line among others', async () => {
    const web = await served(kept(2 * dayMs));
    expect((await web.look()).map((event) => (event as RetentionEvent).kind)).toEqual(['taken']);
    web.nowMs = noon + 7 * dayMs;
    await append(web.store, [[BigInt(web.nowMs), 1n, null, 'after a week']], 'live');
    expect((await web.look()).map((event) => (event as RetentionEvent).kind)).toEqual(['taken']);
    await append(web.store, [[1n, 1n, null, 'of 1970']], 'live');
    expect(await web.look()).toMatchObject([{ kind: 'taken', taken: { records: 1 } }]);
    expect(await web.records()).toBe(1);
    await web.stop();
  });

  it('is not assumed for records that were kept longer on demand', async () => {
    const web = await served(kept(2 * dayMs));
    const session = await web.store.beginLoad({ beyondRetention: true });
    await session.append(batchFromRows(schema, [[BigInt(noon - 1000 * dayMs), 1n, null, 'old']]), 0);
    await session.commit({ checkpoints: [], counters: noExtras.counters });
    web.nowMs = noon + 3 * dayMs;
    await append(web.store, [[BigInt(web.nowMs), 1n, null, 'new']], 'live');
    expect(await web.look()).toMatchObject([{ kind: 'taken', taken: { records: 97 } }]);
    await web.stop();
  });
});
