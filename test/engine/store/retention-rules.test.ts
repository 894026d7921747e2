import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { Archive } from '../../../engine/archive/archive.js';
import { formatCursor, parseCursor } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { makeSchema, type FieldPredicate, type Schema } from '../../../engine/core/schema.js';
import type { RetentionRule } from '../../../engine/store/manifest/manifest.js';
import type { Retention } from '../../../engine/store/manifest/retention-policy.js';
import { caseCount, fc, isWhole } from '../../cases.js';
import { answerOf, matchesOf } from '../../model/answer.js';
import { predicates } from '../../model/arbitraries.js';
import type { ModelRecord, Value } from '../../model/dataset.js';
import { between, seededRandom, type Random } from '../../model/random.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, append, backupFolderOn, load, noon, openCompacting, openToRead } from './memory-archive.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
  { name: 'n', type: 'int' },
]);
const everything = { limit: 1_000_000, predicates: [] };
const levels = ['debug', 'trace', 'info', null];

const unwanted: RetentionRule = {
  where: [{ field: 'level', type: 'string', op: 'exact', values: ['debug', 'trace'] }],
  periodMs: dayMs,
};
const small: RetentionRule = {
  where: [
    { field: 'n', type: 'int', op: 'lt', values: ['30'] },
    { field: 'level', type: 'string', op: 'exists', values: ['false'] },
  ],
  periodMs: 2 * dayMs,
};

/** The same rules, as the model reads them. */
const matchers = new Map<RetentionRule, (values: readonly Value[]) => boolean>([
  [unwanted, ([, level]) => level === 'debug' || level === 'trace'],
  [small, ([, level, n]) => level === null && n !== null && Number(n) < 30],
]);

function keeping(rules: readonly RetentionRule[], graceMs = 0): Retention {
  return { periodMs: null, bytesMax: null, intervalMs: hourMs, graceMs, rules };
}

/** Applies all rules that are due. */
async function maintain(archive: Archive): Promise<void> {
  await archive.retireNow();
  while (await archive.compactNext());
}

function recordsOf(text: string): ModelRecord[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const { _cursor, time, level, n } = JSON.parse(line) as {
        _cursor: string;
        time: number;
        level: string | null;
        n: number | null;
      };
      const values = [BigInt(time), level, n === null ? null : BigInt(n)];
      return { position: parseCursor(_cursor)!, values };
    });
}

const cursorOf = ({ position }: ModelRecord): string => formatCursor(position);

/** One record in each hour of the days before noon. */
function hourly(days: number): Value[][] {
  return Array.from({ length: 24 * days }, (_, i) => [
    BigInt(noon - (24 * days - i) * hourMs),
    levels[i % 4]!,
    BigInt(i),
  ]);
}

async function opened(
  directory: MemoryDirectory,
  retention: Retention,
  now = noon,
): Promise<[Archive, AgentStore]> {
  const archive = await openCompacting(directory, () => now);
  return [archive, await archive.agent('web', schema, retention)];
}

/** A store and what it must hold. */
class Trial {
  readonly directory = new MemoryDirectory();
  archive!: Archive;
  store!: AgentStore;
  nowMs = noon;
  rules: readonly RetentionRule[] = [unwanted, small];
  /** Records that were there when last looked at. */
  known = new Map<string, ModelRecord>();
  stored = 0;
  /** A walk that goes on whatever happens: its filters, its pages so far, and the records that were there all the time. */
  walk: { filter: FieldPredicate[]; seen: string[]; stayed: Set<string> } | undefined;

  constructor(readonly random: Random) {}

  async open(): Promise<void> {
    this.archive = await openCompacting(this.directory, () => this.nowMs);
    this.store = await this.archive.agent('web', schema, keeping(this.rules));
    await this.archive.redefine('web', schema, keeping(this.rules));
  }

  async step(): Promise<void> {
    const { random, store } = this;
    const rows = Array.from({ length: between(random, 1, 40) }, (): Value[] => [
      BigInt(this.nowMs - between(random, 0, 40) * hourMs),
      levels[between(random, 0, 4)]!,
      between(random, 0, 10) === 0 ? null : BigInt(between(random, 0, 60)),
    ]);
    switch (between(random, 0, 7)) {
      case 0:
        await append(store, rows, 'live');
        return this.note(rows.length);
      case 1:
        await load(store, rows, 7);
        return this.note(rows.length);
      case 2:
        this.nowMs += between(random, 1, 40) * hourMs;
        await append(store, [[BigInt(this.nowMs), 'info', 1n]], 'live');
        return this.note(1);
      case 3:
        await this.archive.close();
        return this.open();
      case 4:
        this.rules = [[], [unwanted], [small], [unwanted, small]][between(random, 0, 4)]!;
        await this.archive.redefine('web', schema, keeping(this.rules));
        return undefined;
      case 5:
        await this.store.compact();
        return undefined;
      default:
        this.nowMs += 30 * hourMs;
        await append(store, [[BigInt(this.nowMs), 'info', 1n]], 'live');
        await this.note(1);
        return this.maintain();
    }
  }

  async note(added: number): Promise<void> {
    this.stored += added;
    const all = recordsOf(await answer(this.store));
    for (const record of all) this.known.set(cursorOf(record), record);
  }

  async maintain(): Promise<void> {
    await this.archive.retireNow();
    await this.store.compact();
    await maintain(this.archive);
    const referenceMs = Math.min(this.nowMs, (Math.max(...this.hours()) + 1) * hourMs);
    const left = new Set(recordsOf(await answer(this.store)).map(cursorOf));
    for (const rule of this.rules)
      for (const [cursor, { position, values }] of this.known) {
        const endOfDayMs = (Math.floor(position.partition / 24) + 1) * dayMs;
        if (matchers.get(rule)!(values) && endOfDayMs + rule.periodMs <= referenceMs)
          expect(left.has(cursor), `${cursor} is removed`).toBe(false);
      }
  }

  hours(): number[] {
    return [...this.known.values()].map(({ position }) => position.partition);
  }

  /** Compares everything that is answered with the model. */
  async compare(filters: readonly FieldPredicate[][]): Promise<void> {
    const { store, random } = this;
    const records = recordsOf(await answer(store));
    const there = new Map(records.map((record) => [cursorOf(record), record]));
    for (const [cursor, record] of this.known) {
      if (there.has(cursor)) expect(there.get(cursor)).toEqual(record);
      else expect([...matchers.values()].some((matches) => matches(record.values))).toBe(true);
    }
    for (const cursor of there.keys()) expect(this.known.has(cursor)).toBe(true);
    this.known = there;
    const model = { schema, records };
    const places = [...there.keys(), '0000000000000000'].map((cursor) => parseCursor(cursor)!);
    for (const predicates of filters) {
      const [after, before] = [
        places[between(random, 0, places.length)],
        places[between(random, 0, places.length)],
      ];
      for (const bounds of [{}, { after }, { before }, { after, before }]) {
        const query = { limit: between(random, 1, 20), predicates, ...bounds };
        expect(await answer(store, query)).toBe(answerOf(model, query));
        const counted = await store.count({ predicates, ...bounds, values: { field: 1, top: 10 } });
        const matching = matchesOf(model, { ...query, limit: Infinity });
        expect(counted.count).toBe(matching.length);
        expect((await store.count({ predicates, ...bounds })).count).toBe(matching.length);
        const nulls = matching.filter(({ values }) => values[1] === null).length;
        expect(counted.values!.nulls).toBe(nulls);
      }
    }
    const stats = await store.stats();
    expect(stats).toMatchObject({ records: records.length });
    expect(stats.retired.records).toBe(this.stored - records.length);
  }

  /** The next page of the walk. */
  async page(): Promise<void> {
    const walk = (this.walk ??= { filter: [], seen: [], stayed: new Set(this.known.keys()) });
    for (const cursor of walk.stayed) if (!this.known.has(cursor)) walk.stayed.delete(cursor);
    const after = parseCursor(walk.seen.at(-1) ?? '0000000000000000')!;
    const page = recordsOf(await answer(this.store, { limit: 13, after, predicates: walk.filter }));
    walk.seen.push(...page.map(cursorOf));
    expect(walk.seen).toEqual([...new Set(walk.seen)].sort());
    if (page.length === 13) return;
    expect([...walk.stayed].filter((cursor) => !walk.seen.includes(cursor))).toEqual([]);
    this.walk = undefined;
  }
}

describe('rules of retention', () => {
  it('remove what matches, within a day, and leave every other answer as it was', async () => {
    let removed = 0;
    const filters = fc.array(fc.array(predicates({ schema, records: sample }), { maxLength: 2 }), {
      minLength: 1,
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 5, max: 15 }), filters, async (seed, steps, asked) => {
        const trial = new Trial(seededRandom(seed));
        await trial.open();
        await append(trial.store, [[BigInt(noon), 'info', 1n]], 'live');
        await trial.note(1);
        for (let step = 0; step < steps; step++) {
          await trial.step();
          await trial.compare(asked as FieldPredicate[][]);
          await trial.page();
        }
        removed += (await trial.store.stats()).retired.records;
        expect(await trial.store.verify()).toMatchObject({ damages: [], records: trial.known.size });
        await trial.archive.close();
      }),
      { numRuns: caseCount(30) },
    );
    if (isWhole) expect(removed).toBeGreaterThan(50);
  });

  it('leave the time of removed rows and nothing else in the file, and are not applied twice', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await opened(directory, keeping([unwanted]));
    await load(store, hourly(4));
    await maintain(archive);
    const { segments, retired, records } = await store.stats();
    expect({ records, retired: retired.records }).toEqual({ records: 66, retired: 30 });
    const files = await filesOf(directory);
    expect(await archive.compactNext()).toBe(false);
    await store.compact();
    expect(await filesOf(directory)).toEqual(files);
    expect((await store.stats()).segments).toBe(segments);
    await archive.close();
    const reader = await openToRead(directory);
    const seen = await reader.agent('web');
    expect(recordsOf(await answer(seen)).filter(({ values }) => values[1] === 'debug')).toHaveLength(9);
    await reader.close();
  });

  it('wait for the grace period, and are withdrawn at once', async () => {
    const [archive, store] = await opened(new MemoryDirectory(), keeping([]));
    await load(store, hourly(4));
    await archive.redefine('web', schema, keeping([unwanted], dayMs));
    await maintain(archive);
    expect((await store.stats()).records).toBe(96);
    const outlook = await archive.retentionOutlook('web');
    expect(outlook.kept.pending).toMatchObject({ rules: [unwanted], graceMs: dayMs });
    await archive.redefine('web', schema, keeping([], dayMs));
    await maintain(archive);
    expect((await archive.retentionOutlook('web')).kept.pending).toBeUndefined();
    await archive.redefine('web', schema, keeping([unwanted], dayMs));
    await archive.applyRetention('web', keeping([unwanted], dayMs));
    await maintain(archive);
    expect((await store.stats()).records).toBeLessThan(96);
    await archive.close();
  });

  it('remove nothing for a field that old records lack, and what they name once it is theirs', async () => {
    const directory = new MemoryDirectory();
    const [archive, store] = await opened(directory, keeping([unwanted]));
    const renamed: Schema = makeSchema([
      schema.fields[0]!,
      { name: 'severity', type: 'string' },
      schema.fields[2]!,
    ]);
    const { where, periodMs } = unwanted;
    const rule = { where: [{ ...where[0]!, field: 'severity' }], periodMs };
    await archive.redefine('web', renamed, keeping([rule]));
    await load(
      store,
      hourly(4).map(([time, , n]) => [time!, 'debug', n!]),
    );
    await archive.redefine('web', schema, keeping([rule]));
    await maintain(archive);
    expect((await store.stats()).records).toBe(96);
    await archive.redefine('web', renamed, keeping([rule]));
    await maintain(archive);
    expect((await store.stats()).records).toBeLessThan(96);
    await archive.close();
  });

  it('leave the state before or after at a crash of any step, which the next run, a copy and a repair have too', async () => {
    const first = new MemoryDirectory();
    const [archive, store] = await opened(first, keeping([unwanted]));
    await load(store, hourly(3));
    const before = await answer(store);
    await archive.close();
    const whole = first.crash('kept');
    const [done, ruled] = await opened(whole, keeping([unwanted]));
    const start = whole.mutations;
    await maintain(done);
    const after = recordsOf(await answer(ruled));
    const copy = new MemoryDirectory();
    await ruled.backup(backupFolderOn(copy));
    await done.close();
    const states = [before, ...partStates(recordsOf(before), after)];
    for (let step = start + 1; step <= whole.mutations; step += isWhole ? 2 : 5) {
      const directory = first.crash('kept', { crashAtOperation: step, seed: step });
      await opened(directory, keeping([unwanted]))
        .then(([broken]) => maintain(broken))
        .catch((error: unknown) => expect(error).toBeInstanceOf(LogstrataError));
      const [again, found] = await opened(
        directory.crash(step % 2 === 0 ? 'lost' : 'kept'),
        keeping([unwanted]),
      );
      expect(states).toContain(await answer(found));
      await maintain(again);
      expect(recordsOf(await answer(found))).toEqual(after);
      expect(await found.verify()).toMatchObject({ damages: [], records: after.length });
      await again.close();
    }
    for (const name of await copy.list('web'))
      if (name.startsWith('manifest-')) await copy.remove(`web/${name}`);
    const repaired = await openCompacting(copy, () => noon);
    await repaired.repair('web', { adopt: () => Promise.resolve(true) });
    const left = await repaired.agent('web', schema);
    expect(recordsOf(await answer(left))).toEqual(after);
    expect((await left.stats()).records).toBe(after.length);
    await left.remove({ kind: 'times', sinceMs: null, untilMs: noon - dayMs });
    expect(recordsOf(await answer(left))).toEqual(
      after.filter(({ values }) => Number(values[0]) >= noon - dayMs),
    );
    await repaired.close();
  });
});

const sample: ModelRecord[] = hourly(1).map((values, i) => ({
  position: { partition: 1, ordinal: i + 1 },
  values,
}));

/** The answers after some of the days, the newest first, have lost what a rule names. */
function partStates(before: readonly ModelRecord[], after: readonly ModelRecord[]): string[] {
  const left = new Set(after.map(cursorOf));
  const days = [...new Set(before.map(({ position }) => Math.floor(position.partition / 24)))];
  return days.map((day) => {
    const records = before.filter(
      (record) => left.has(cursorOf(record)) || record.position.partition < day * 24,
    );
    return answerOf({ schema, records }, everything);
  });
}

async function filesOf(directory: MemoryDirectory): Promise<string[]> {
  const folders = (await directory.list('web')).filter((name) => name.startsWith('dt='));
  return (await Promise.all(folders.map((name) => directory.list(`web/${name}`)))).flat();
}
