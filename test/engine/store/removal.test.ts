import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { caseCount } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { RemovalRequest } from '../../../engine/maintenance/removal.js';
import type { Retention } from '../../../engine/store/manifest/retention-policy.js';
import { maintenanceIntervalMs } from '../../../engine/core/limits.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answerOf } from '../../model/answer.js';
import type { Value } from '../../model/dataset.js';
import { seededRandom } from '../../model/random.js';
import { answer, append, load, noon, openOn, openToRead, schema } from './memory-archive.js';
import { ModelStore } from './model-store.js';

const hour = 3_600_000;
const everything = { limit: 1_000_000, predicates: [] };

/** Records of the three days before noon in any order, some without a time. */
function rows(random: () => number, count: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    random() < 0.1 ? null : BigInt(noon - Math.floor(random() * 72 * hour)),
    BigInt(i),
    random() < 0.5 ? null : random(),
    `text ${i}`,
  ]);
}

function isWithin({ sinceMs, untilMs }: RemovalRequest & { kind: 'times' }, time: Value): boolean {
  if (time === null) return false;
  return Number(time) >= (sinceMs ?? -Infinity) && Number(time) < (untilMs ?? Infinity);
}

describe('removing records', () => {
  it('of a time range, or all of them, leaves the same records as a naive model, and gives no position again', async () => {
    for (let seed = 1; seed <= caseCount(8, 60); seed++) {
      const random = seededRandom(seed);
      const directory = new MemoryDirectory();
      let archive = await openOn(directory);
      let store = await archive.agent('web', schema);
      const model = new ModelStore(schema);
      const given = new Set<string>();
      const remember = (): void => {
        for (const { partition, ordinal } of model.positions()) given.add(`${partition}/${ordinal}`);
      };
      for (let step = 0; step < 12; step++) {
        const more = rows(random, 1 + Math.floor(random() * 80));
        const kind = Math.floor(random() * 6);
        if (kind === 0) {
          await append(store, more, 'live');
          model.live(more, noon, hour);
        } else if (kind === 1) {
          await load(store, more, 20);
          model.load(more, noon);
        } else if (kind === 2) {
          await store.compact();
        } else if (kind === 3) {
          await archive.close();
          archive = await openOn(directory);
          store = await archive.agent('web', schema);
        } else {
          const sinceMs = random() < 0.2 ? null : noon - Math.floor(random() * 72 * hour);
          const untilMs = random() < 0.2 ? null : noon - Math.floor(random() * 72 * hour);
          const wish: RemovalRequest =
            random() < 0.15 ? { kind: 'all' } : { kind: 'times', sinceMs, untilMs };
          remember();
          const before = model.records.length;
          model.remove(
            ({ values }) => wish.kind === 'all' || (wish.kind === 'times' && isWithin(wish, values[0]!)),
          );
          const foretold = await store.previewRemoval(wish);
          const { records } = await store.remove(wish);
          expect({ seed, records, foretold: foretold.records }).toEqual({
            seed,
            records: before - model.records.length,
            foretold: records,
          });
        }
        expect(await answer(store)).toBe(answerOf(model, everything));
      }
      const removed = [...given].filter(
        (place) => !model.positions().some(({ partition, ordinal }) => place === `${partition}/${ordinal}`),
      );
      const late = rows(random, 200);
      const before = new Set(model.positions().map(({ partition, ordinal }) => `${partition}/${ordinal}`));
      await load(store, late);
      model.load(late, noon);
      expect(await answer(store)).toBe(answerOf(model, everything));
      const added = model.positions().map(({ partition, ordinal }) => `${partition}/${ordinal}`);
      expect(added.filter((place) => !before.has(place) && removed.includes(place))).toEqual([]);
      expect(await store.verify()).toMatchObject({
        damages: [],
        records: model.records.length,
      });
      await archive.close();
      const opened = await openOn(directory);
      const whole = await (await opened.agent('web', schema)).verify();
      expect(whole).toMatchObject({ damages: [], unnamedFiles: [] });
      await opened.close();
      const reader = await openToRead(directory);
      expect(await answer(await reader.agent('web'))).toBe(answerOf(model, everything));
      await reader.close();
    }
  });

  it('removes a segment as a whole if all of its records go, and reads only the time column of others', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    const dayRows = (day: number): Value[][] =>
      Array.from({ length: 500 }, (_, i) => [
        BigInt(noon - day * 24 * hour + i * 1000),
        BigInt(i),
        null,
        'x',
      ]);
    for (const day of [3, 2, 1]) await load(store, dayRows(day));
    const files = async (): Promise<string[]> => {
      const found: string[] = [];
      for (const folder of await directory.list('web'))
        if (folder.startsWith('dt=')) found.push(...(await directory.list(`web/${folder}`)));
      return found;
    };
    const before = await files();
    const wish: RemovalRequest = {
      kind: 'times',
      sinceMs: noon - 3 * 24 * hour,
      untilMs: noon - 2 * 24 * hour + 100 * 1000,
    };
    expect(await store.previewRemoval(wish)).toMatchObject({
      records: 600,
      rewritten: 1,
      fromMs: noon - 72 * hour,
      untilMs: noon - 48 * hour + hour,
    });
    await store.remove(wish);
    expect(await store.stats()).toMatchObject({ records: 900, segments: 2 });
    // A query that began before may still read the removed records.
    await archive.close();
    const after = await files();
    expect(before.filter((file) => after.includes(file))).toHaveLength(1);
    expect(after).toHaveLength(2);
  });

  it('of a time range removes nothing from an agent without a time field, and of an unknown load is refused', async () => {
    const archive = await openOn(new MemoryDirectory());
    const timeless = await archive.agent('plain', makeSchema([{ name: 'message', type: 'string' }]));
    await append(timeless, [['a'], ['b']], 'live');
    expect(await timeless.remove({ kind: 'times', sinceMs: null, untilMs: null })).toMatchObject({
      records: 0,
    });
    await expect(timeless.remove({ kind: 'load', id: '079bd70000000001' })).rejects.toThrow(
      'has no load "079bd70000000001"',
    );
    expect(await timeless.remove({ kind: 'all' })).toMatchObject({ records: 2 });
    expect(await answer(timeless)).toBe('');
    await append(timeless, [['c']], 'live');
    expect(await answer(timeless)).toContain('0000000003","message":"c"}');
    await archive.close();
  });

  it('continues if compaction replaced the segments first', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    const random = seededRandom(5);
    const model = new ModelStore(schema);
    for (let i = 0; i < 4; i++) {
      const some = rows(random, 100);
      await load(store, some);
      model.load(some, noon);
    }
    const wish: RemovalRequest = { kind: 'times', sinceMs: noon - 40 * hour, untilMs: noon - 10 * hour };
    const removing: Promise<unknown>[] = [store.remove(wish), store.compact(), compactLater(store)];
    await Promise.all(removing);
    model.remove(({ values }) => isWithin(wish, values[0]!));
    expect(await answer(store)).toBe(answerOf(model, everything));
    expect(await store.verify()).toMatchObject({ damages: [] });
    await archive.close();
  });
});

async function compactLater(store: AgentStore): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await store.compact();
}

describe('records ahead of the clock', () => {
  const century = noon + 74 * 365 * 24 * hour;
  const live = (timeMs: number, n: number): Value[] => [BigInt(timeMs), BigInt(n), null, `text ${n}`];
  const recordsOf = async (store: AgentStore): Promise<Record<string, unknown>[]> =>
    (await answer(store))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const numbersOf = async (store: AgentStore): Promise<unknown[]> =>
    (await recordsOf(store)).map(({ status }) => status);

  /** A store whose clock was once a century ahead, and has been right for some hours since. */
  async function onceAhead(retention?: Retention) {
    const warnings: string[] = [];
    const directory = new MemoryDirectory();
    const clock = { now: century };
    const open = async () => {
      const onWarning = (message: string) => void warnings.push(message);
      const archive = await openOn(directory, () => clock.now, undefined, { onWarning });
      return { archive, store: await archive.agent('web', schema, retention) };
    };
    const opened = await open();
    await append(opened.store, [live(noon - hour, 0)], 'load');
    await append(opened.store, [live(century - 1, 9), live(century, 1)], 'live');
    clock.now = noon;
    await append(opened.store, [live(noon, 2)], 'live');
    clock.now = noon + 5 * hour;
    await append(opened.store, [live(clock.now, 3)], 'live');
    return { ...opened, open, clock, warnings };
  }

  it('are told of, and a removal of them places new records by the clock again, also later', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { archive, store, open, clock, warnings } = await onceAhead();
    for (let round = 0; round < 2; round++) {
      vi.advanceTimersByTime(maintenanceIntervalMs);
      await vi.waitFor(() => expect(warnings.length).toBeGreaterThan(0));
    }
    expect(warnings).toEqual([expect.stringContaining('"logstrata remove web --ahead"')]);
    const last = (await store.stats()).lastCursor!;
    const wish = { kind: 'ahead', sinceMs: null, untilMs: null } as const;
    expect(await store.previewRemoval(wish)).toMatchObject({ records: 4, isLowered: true });
    expect(await store.remove(wish)).toMatchObject({ records: 4, isLowered: true });
    expect(await store.previewRemoval(wish)).toMatchObject({ records: 0, isLowered: false });
    expect(await numbersOf(store)).toEqual([0]);
    await append(store, [live(clock.now, 4)], 'live');
    await archive.close();
    const again = await open();
    await append(again.store, [live(clock.now + 1, 5)], 'live');
    expect(await numbersOf(again.store)).toEqual([0, 4, 5]);
    expect(await again.store.stats()).toMatchObject({ highestPartition: Math.floor(clock.now / hour) });
    // Once the clock gets there, no position is given again.
    clock.now = century;
    await append(again.store, [live(century, 6)], 'live');
    expect((await again.store.stats()).lastCursor! > last).toBe(true);
    await again.archive.close();
  });

  it('stay where they are outside the range of times, with their cursors, and raise nothing when they are rewritten', async () => {
    const { archive, store, open, clock } = await onceAhead();
    const before = await recordsOf(store);
    // Their segment keeps one of them, so it is rewritten.
    const removed = await store.remove({ kind: 'ahead', sinceMs: century, untilMs: null });
    expect(removed).toMatchObject({ records: 1, isLowered: true });
    await store.compact();
    expect(await recordsOf(store)).toEqual(before.filter(({ status }) => status !== 1));
    await archive.close();
    const again = await open();
    await append(again.store, [live(clock.now, 4)], 'live');
    await again.store.compact();
    await append(again.store, [live(clock.now, 5)], 'live');
    expect(await numbersOf(again.store)).toEqual([0, 4, 5, 9, 2, 3]);
    await again.archive.close();
  });

  it('expire by their own times', async () => {
    const day = 24 * hour;
    const retention = { periodMs: 2 * day, bytesMax: null, graceMs: 0, intervalMs: 0 };
    const { archive, store, clock } = await onceAhead(retention);
    await store.remove({ kind: 'ahead', sinceMs: clock.now + hour, untilMs: null });
    await store.compact();
    clock.now += day;
    await append(store, [live(clock.now, 4)], 'live');
    await archive.applyRetention('web', retention);
    expect(await numbersOf(store)).toEqual([0, 4, 2, 3]);
    clock.now += day + 2 * hour;
    await append(store, [live(clock.now, 5)], 'live');
    await archive.applyRetention('web', retention);
    expect(await numbersOf(store)).toEqual([4, 5]);
    await archive.close();
  });
});
