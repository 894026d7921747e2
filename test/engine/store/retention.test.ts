import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { formatCursor, parseCursor } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import type { Archive } from '../../../engine/archive/archive.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import { batchFromRows } from '../../model/rows.js';
import type { Value } from '../../model/dataset.js';
import {
  answer,
  append,
  load,
  noExtras,
  noon,
  openCompacting,
  openOn,
  schema,
  textOf,
} from './memory-archive.js';
import type { Retention } from '../../../engine/store/manifest/retention-policy.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const twoDays: Retention = { periodMs: 2 * dayMs, bytesMax: null, intervalMs: hourMs, graceMs: dayMs };

/** One record in each hour of the `hours` before `endMs`. */
function hourly(endMs: number, hours: number): Value[][] {
  return Array.from({ length: hours }, (_, i) => [
    BigInt(endMs - (hours - i) * hourMs),
    1n,
    null,
    `hour ${i}`,
  ]);
}

const cursorsOf = (text: string): string[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => line.slice(12, 28));

async function opened(directory: MemoryDirectory, now = () => noon): Promise<[Archive, AgentStore]> {
  const archive = await openCompacting(directory, now);
  return [archive, await archive.agent('web', schema, twoDays)];
}

/** Four days of records, half of which expire as soon as the newest arrives. */
async function fill(store: AgentStore): Promise<void> {
  const rows = hourly(noon, 96);
  // Each load is made at the time of its records, so that none is expired on arrival.
  for (let day = 0; day < 4; day++) await load(store, rows.slice(day * 24, (day + 1) * 24));
}

async function loadBeyond(store: AgentStore, rows: Value[][], beyondRetention: boolean): Promise<void> {
  const session = await store.beginLoad({ beyondRetention });
  try {
    await session.append(batchFromRows(schema, rows), 0);
    await session.commit({ checkpoints: [], counters: noExtras.counters });
  } finally {
    await session.abort();
  }
}

describe('retention', () => {
  it('answers without expired records, keeps their cursors valid as places, and gives none of them again', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await opened(directory);
    await fill(store);
    const before = await answer(store);
    await archive.retireNow();
    const after = await answer(store);
    expect(cursorsOf(after)).toEqual(cursorsOf(before).slice(-48));
    expect(before.endsWith(after)).toBe(true);
    expect((await store.stats()).retired).toMatchObject({
      records: 48,
      below: Math.floor((noon - 2 * dayMs) / hourMs),
    });
    const files = (await store.stats()).segments;

    for (const cursor of cursorsOf(before)) {
      const position = parseCursor(cursor)!;
      const expected = cursorsOf(before).filter((other) => other > cursor && after.includes(other));
      expect(cursorsOf(await answer(store, { after: position }))).toEqual(expected);
      expect(cursorsOf(await answer(store, { before: position, limit: 3 }))).toEqual(
        cursorsOf(after)
          .filter((other) => other < cursor)
          .slice(-3),
      );
    }
    expect(await store.verify()).toMatchObject({ damages: [], records: 48 });

    // New records of those hours get other ordinals, also after a restart and without the rest of the file.
    await store.compact();
    expect((await store.stats()).segments).toBeLessThan(files);
    expect(await answer(store)).toBe(after);
    await archive.close();
    const [again, reopened] = await opened(directory);
    await loadBeyond(reopened, hourly(noon, 96).slice(0, 3), true);
    const added = cursorsOf(await answer(reopened)).filter((cursor) => !cursorsOf(after).includes(cursor));
    expect(added).toHaveLength(3);
    expect(added.filter((cursor) => cursorsOf(before).includes(cursor))).toEqual([]);
    expect(parseCursor(added[0]!)!.ordinal).toBe(2);
    await again.close();
  });

  it('lets a query that began before it finish, removes the files afterwards, and sets no walk back', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await opened(directory);
    await fill(store);
    const before = await answer(store);
    const pieces = (await store.scan({ limit: 1000, predicates: [] }, { pieceBytes: 500 })).lines[
      Symbol.asyncIterator
    ]();
    const first = await pieces.next();
    await archive.retireNow();
    const rest = await textOf({ [Symbol.asyncIterator]: () => pieces });
    expect(Buffer.from(first.value as Uint8Array).toString() + rest).toBe(before);
    await archive.close();
    const names = (await directory.list('web')).filter((name) => name.startsWith('dt='));
    const folders = await Promise.all(names.map((name) => directory.list(`web/${name}`)));
    expect(folders.filter((files) => files.length > 0)).toHaveLength(3);
  });

  it('seals expired hot records, and removes them too', async () => {
    let now = noon;
    const [archive, store] = await opened(new MemoryDirectory(), () => now);
    await append(store, hourly(noon, 3), 'live');
    now += 3 * dayMs;
    await append(store, hourly(now, 2), 'live');
    await archive.retireNow();
    expect(cursorsOf(await answer(store))).toHaveLength(2);
    await archive.close();
  });

  it('keeps an hour until all of it is past the period', async () => {
    const minuteMs = hourMs / 60;
    const times = [-165, -105, -75, 15].map((minutes) => noon + minutes * minuteMs);
    let now = noon + 30 * minuteMs;
    const archive = await openCompacting(new MemoryDirectory(), () => now);
    const store = await archive.agent('web', schema, { ...twoDays, periodMs: 2 * hourMs });
    for (const time of times) await load(store, [[BigInt(time), 1n, null, 'one']]);
    const minutesLeft = async (): Promise<number[]> => {
      await archive.retireNow();
      const lines = (await answer(store)).trimEnd().split('\n');
      return lines.map((line) => ((JSON.parse(line) as { time: number }).time - noon) / minuteMs);
    };
    // 9:15 is over; 10:15 is older than two hours, but 10:45 is not.
    expect(await minutesLeft()).toEqual([-105, -75, 15]);
    now = noon + 59 * minuteMs;
    expect(await minutesLeft()).toEqual([-105, -75, 15]);
    now = noon + 61 * minuteMs;
    expect(await minutesLeft()).toEqual([15]);
    await archive.close();
  });

  it('leaves hot records of the oldest hour that is kept unchanged', async () => {
    let now = noon;
    const archive = await openCompacting(new MemoryDirectory(), () => now);
    const store = await archive.agent('web', schema, { ...twoDays, periodMs: 2 * hourMs });
    await append(store, hourly(noon, 1), 'live');
    now += hourMs;
    await append(store, hourly(now, 1), 'live');
    await archive.retireNow();
    expect(await store.stats()).toMatchObject({ records: 2, hotRecords: 2 });
    now += hourMs;
    await append(store, hourly(now, 1), 'live');
    await archive.retireNow();
    expect(await store.stats()).toMatchObject({ records: 2, hotRecords: 0 });
    await archive.close();
  });

  it('refuses to load expired records and states their number, or keeps them for its period from the load on', async () => {
    let now = noon;
    const [archive, store] = await opened(new MemoryDirectory(), () => now);
    await append(store, hourly(noon, 1), 'live');
    const old = hourly(noon - 9 * dayMs, 5);
    await expect(loadBeyond(store, [...old, ...hourly(noon, 1)], false)).rejects.toThrow('5 of 6 records');
    await expect(append(store, old, 'load')).rejects.toThrow('5 of 5 records');
    expect(cursorsOf(await answer(store))).toHaveLength(1);
    expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });

    await loadBeyond(store, old, true);
    await archive.retireNow();
    expect(cursorsOf(await answer(store))).toHaveLength(6);
    now += dayMs;
    await append(store, hourly(now, 1), 'live');
    for (let i = 0; i < 3; i++) await loadBeyond(store, hourly(noon - 9 * dayMs, 1), true);
    while (await archive.compactNext());
    await archive.retireNow();
    expect(cursorsOf(await answer(store))).toHaveLength(10);
    now += dayMs + 2 * hourMs;
    await append(store, hourly(now, 1), 'live');
    await archive.retireNow();
    // The five expire two days after their load, the three are a day younger, and the first live record has expired.
    expect(cursorsOf(await answer(store))).toHaveLength(5);
    await archive.close();
  });

  it('does not extend the life of records that are loaded together with expired ones but are not expired', async () => {
    let now = noon;
    const [archive, store] = await opened(new MemoryDirectory(), () => now);
    await append(store, hourly(noon, 1), 'live');
    // One record of the oldest hour that is kept, and one of a day long before.
    const first = hourly(noon - 2 * dayMs + hourMs, 1);
    await loadBeyond(store, [...hourly(noon - 9 * dayMs, 1), ...first], true);
    now += hourMs;
    await append(store, hourly(now + hourMs, 1), 'live');
    await archive.retireNow();
    expect((await store.stats()).retired.records).toBe(1);
    await archive.close();
  });

  it('does not restore removed records when a compaction read their segment before', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await opened(directory);
    const rows = hourly(noon - 12 * hourMs, 72);
    for (let i = 0; i < 3; i++) await load(store, rows.slice(0, 24));
    const compacting = archive.compactNext();
    await load(store, rows.slice(24));
    await load(store, hourly(noon + 2 * hourMs, 2));
    await archive.retireNow();
    await compacting;
    const live = cursorsOf(await answer(store));
    const below = formatCursor({ partition: (await store.stats()).retired.below, ordinal: 0 });
    expect((await store.stats()).retired.records).toBeGreaterThan(0);
    expect(live.filter((cursor) => cursor < below)).toEqual([]);
    await archive.close();
  });

  it('does not restore removed records of a segment at any moment of a compaction', async () => {
    let done = false;
    let turns = 0;
    for (; !done; turns += 16) {
      let now = noon;
      const [archive, store] = await opened(new MemoryDirectory(), () => now);
      for (let i = 0; i < 3; i++) await load(store, hourly(noon - 36 * hourMs, 12));
      await load(store, hourly(noon, 1));
      now += 6 * hourMs;
      await load(store, hourly(now, 1));
      const compacting = store.compact().then(
        () => (done = true),
        (error: unknown) => {
          if (!(error instanceof LogstrataError) || error.code !== 'conflict') throw error;
        },
      );
      for (let i = 0; i < turns; i++) await Promise.resolve();
      const isBefore: boolean = done;
      await archive.retireNow();
      const { retired } = await store.stats();
      expect([turns, retired.records]).toEqual([turns, 18]);
      await compacting;
      done = isBefore;
      const below = formatCursor({ partition: retired.below, ordinal: 0 });
      expect([turns, cursorsOf(await answer(store)).filter((cursor) => cursor < below)]).toEqual([turns, []]);
      expect([turns, await store.verify()]).toMatchObject([turns, { damages: [], records: 20 }]);
      await archive.close();
    }
    expect(turns).toBeGreaterThan(3);
  });

  it('leaves the state before or after it when the power fails at any step', async () => {
    const whole = new MemoryDirectory();
    const made = await openOn(whole);
    const web = await made.agent('web', schema, twoDays);
    await fill(web);
    const before = await answer(web);
    await made.close();
    const modes: CrashMode[] = ['lost', 'kept', { seed: 1 }];
    const after = before.split('\n').slice(48).join('\n');
    const seen = new Set<string>();
    for (let step = 1; step < 40; step++) {
      const directory = whole.crash('kept', { crashAtOperation: step });
      try {
        const [archive] = await opened(directory);
        await archive.retireNow();
        await archive.close();
      } catch (error) {
        if (!(error instanceof LogstrataError)) throw error;
      }
      const left = await openOn(directory.crash(modes[step % modes.length]!));
      const store = await left.agent('web', schema);
      const found = await answer(store);
      expect([before, after]).toContain(found);
      seen.add(found);
      expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
      await left.close();
    }
    expect(seen.size).toBe(2);
  });
});

describe('retention of rejected lines', () => {
  /** A load of a day's records and one rejected line. */
  async function loadDay(store: AgentStore, rows: Value[][], text: string): Promise<void> {
    const session = await store.beginLoad();
    await session.append(batchFromRows(schema, rows), 0);
    await session.reject({ reason: 'no match', file: 'web.log', offset: 0, line: Buffer.from(text) });
    await session.commit({ checkpoints: [], counters: noExtras.counters });
  }

  async function filled(directory: MemoryDirectory, policy: Retention): Promise<[Archive, AgentStore]> {
    const archive = await openCompacting(directory);
    const store = await archive.agent('web', schema, policy);
    const rows = hourly(noon, 96);
    for (let day = 0; day < 4; day++)
      await loadDay(store, rows.slice(day * 24, (day + 1) * 24), `${day} `.padEnd(20_000, 'x'));
    return [archive, store];
  }

  async function keptDays(store: AgentStore): Promise<string[]> {
    const days: string[] = [];
    for (const entry of await store.rejectedFiles())
      for await (const lines of store.rejectedLines(entry))
        for (const { line } of lines) days.push(Buffer.from(line).toString().slice(0, 1));
    return days.sort();
  }

  it('removes the lines from the time of expired records, and counts the remaining ones', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await filled(directory, twoDays);
    await archive.retireNow();
    // The newest record of the second day is slightly less than two days old, so its file is kept one hour longer.
    const kept = await keptDays(store);
    expect(kept).not.toContain('0');
    expect(kept).toEqual(expect.arrayContaining(['2', '3']));
    const stats = await store.stats();
    expect(stats).toMatchObject({ linesRejected: kept.length, counters: { rejected: 4 } });
    await archive.close();
    expect(await directory.list('web/rejected')).toHaveLength(kept.length);
    const again = await openOn(directory);
    expect(await (await again.agent('web')).verify()).toMatchObject({ damages: [], unnamedFiles: [] });
    await again.close();
  });

  it('counts the lines towards the size, and removes the oldest first', async () => {
    const forRecords: Retention = { periodMs: null, bytesMax: 50_000, intervalMs: hourMs, graceMs: dayMs };
    const [archive, store] = await filled(new MemoryDirectory(), forRecords);
    const { bytesRejected, bytesSealed } = await store.stats();
    expect(bytesSealed).toBeLessThan(50_000);
    expect(bytesSealed + bytesRejected).toBeGreaterThan(80_000);
    await archive.retireNow();
    expect(await keptDays(store)).toEqual(['2', '3']);
    const after = await store.stats();
    expect(after.bytesRejected).toBeLessThanOrEqual(50_000);
    expect(after.retired.records).toBeGreaterThan(0);
    await archive.close();
  });

  it('does not touch files of rejected lines that still grow, and removes them once they are expired', async () => {
    const directory = new MemoryDirectory();
    let nowMs = noon - 4 * dayMs;
    const archive = await openCompacting(directory, () => nowMs);
    const store = await archive.agent('web', schema, twoDays);
    const line = { reason: 'no match', file: 'web.log', offset: 0, line: Buffer.from('odd') };
    const extras = { ...noExtras, rejected: [line] };
    await store.append(batchFromRows(schema, hourly(nowMs, 1)), extras, 'live');
    await archive.retireNow();
    expect((await store.stats()).linesRejected).toBe(1);
    await store.compact();
    nowMs = noon;
    await load(store, hourly(noon, 2));
    await archive.retireNow();
    expect((await store.stats()).linesRejected).toBe(0);
    await archive.close();
    expect(await directory.list('web/rejected')).toEqual([]);
  });

  it('dates lines that are rejected again by their first rejection', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await filled(directory, { ...twoDays, periodMs: 10 * dayMs });
    const [oldest] = await store.rejectedFiles();
    const session = await store.beginLoad({ takes: oldest! });
    for await (const lines of store.rejectedLines(oldest!))
      for (const line of lines) await session.reject(line);
    await session.append(batchFromRows(schema, hourly(noon, 1)), 1);
    await session.commit({ checkpoints: [], counters: noExtras.counters });
    const files = await store.rejectedFiles();
    expect(files).toHaveLength(4);
    expect(files.map(({ partition }) => partition)).toContain(oldest!.partition);
    expect(files.map(({ file }) => file)).not.toContain(oldest!.file);
    await archive.close();
  });
});
