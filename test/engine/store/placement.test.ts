import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { batchFromRows } from '../../model/rows.js';
import { makeSchema, type Schema } from '../../../engine/core/schema.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import {
  lastPlacementTimes,
  livePartition,
  partTimes,
  placementTimes,
} from '../../../engine/store/manifest/placement.js';
import { answerOf } from '../../model/answer.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, load, noExtras, noon, openOn } from './memory-archive.js';
import { ModelStore } from './model-store.js';

const hour = 3_600_000;

/** The first time field decides, wherever it stands among the fields; without one the arrival time does. */
const schemas = {
  'a time field': makeSchema([
    { name: 'n', type: 'int' },
    { name: 'time', type: 'time' },
  ]),
  'two time fields': makeSchema([
    { name: 'made', type: 'time' },
    { name: 'time', type: 'time' },
  ]),
  'no time field': makeSchema([
    { name: 'n', type: 'int' },
    { name: 'message', type: 'string' },
  ]),
};

/** Times around now, and extreme ones: before the epoch, and after the last year that a clock can show. */
const anyTime = fc.option(
  fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: noon - 30 * hour, max: noon + 30 * hour }).map(BigInt) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0n, 1n, -1n, 3_599_999n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n),
    },
  ),
  { freq: 6 },
);

function rowsOf(schema: Schema): fc.Arbitrary<Value[][]> {
  const values = schema.fields.map(({ type }, i): fc.Arbitrary<Value> => {
    if (type === 'time') return anyTime;
    return type === 'int' ? fc.nat(9).map(BigInt) : fc.constantFrom(`a${i}`, `b${i}`);
  });
  return fc.array(fc.tuple(...values), { maxLength: 25 });
}

describe.each(Object.entries(schemas))('with %s', (_name, schema) => {
  it('records are placed by the rules, whatever the clock and the process do', async () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('live', 'load'), rows: rowsOf(schema) }) },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('clock'), hours: fc.integer({ min: -40, max: 40 }) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen') }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
        const directory = new MemoryDirectory();
        const model = new ModelStore(schema);
        let now = noon;
        let archive = await openOn(directory, () => now);
        let store = await archive.agent('web', schema);
        for (const next of steps) {
          if ('rows' in next && next.kind === 'live') {
            await append(store, next.rows, 'live');
            model.live(next.rows, now, hour);
          } else if ('rows' in next) {
            await load(store, next.rows, 4);
            model.load(next.rows, now);
          } else if ('hours' in next) {
            now += next.hours * hour;
          } else {
            await archive.close();
            archive = await openOn(directory, () => now);
            store = await archive.agent('web', schema);
          }
        }
        expect(await answer(store)).toBe(answerOf(model, { limit: 1_000_000, predicates: [] }));
        await archive.close();
      }),
      { numRuns: caseCount(60) },
    );
  });
});

it('a record whose time cannot be read follows the record before it in its source, also from an earlier commit', async () => {
  const schema = schemas['a time field'];
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const unread = batchFromRows(schema, [[1n, null]]);
  await store.append(unread, { ...noExtras, previousTimeMs: noon - 5 * hour }, 'load');
  await store.append(unread, noExtras, 'load');
  const partitions = (await answer(store)).matchAll(/"_cursor":"([0-9a-f]{6})/g);
  expect([...partitions].map((match) => parseInt(match[1]!, 16))).toEqual([noon / hour - 5, noon / hour]);
  await archive.close();
});

describe('the last placement time of each source', () => {
  for (const [name, schema] of Object.entries(schemas)) {
    it(`is that of its last row: ${name}`, () => {
      const row = fc.tuple(
        ...schema.fields.map(({ type }) => (type === 'string' ? fc.constant('x') : anyTime)),
      );
      const part = fc.record({
        rows: fc.array(row, { maxLength: 5 }),
        previousTimeMs: fc.option(fc.integer({ min: noon - hour, max: noon + hour })),
      });
      fc.assert(
        fc.property(fc.array(part, { maxLength: 4 }), (sources) => {
          const batch = batchFromRows(
            schema,
            sources.flatMap(({ rows }) => rows),
          );
          const parts = sources.map(({ rows, previousTimeMs }) => ({ rows: rows.length, previousTimeMs }));
          const all = placementTimes(schema, batch, noon, parts);
          expect(lastPlacementTimes(schema, batch, noon, parts)).toEqual(partTimes(all, parts));
        }),
      );
    });
  }
});

describe('a live record', () => {
  const w = noon / hour;
  const placed = (timeMs: number, nowMs = noon + 600_000, catchingUp = false): number =>
    livePartition(timeMs, { nowMs, highestPartition: w, graceMs: hour, catchingUp });

  it('in the highest partition or later goes to its own hour', () => {
    expect(placed(noon)).toBe(w);
    expect(placed(noon + hour, noon + hour)).toBe(w + 1);
  });

  it('from an earlier hour goes to the highest partition until it is late by the grace period, to the millisecond', () => {
    expect(placed(noon - 1)).toBe(w);
    expect(placed(noon - hour + 1)).toBe(w);
    expect(placed(noon - hour)).toBe(w - 1);
    expect(placed(noon - 30 * hour)).toBe(w - 30);
  });

  it('is late by the clock if the clock has gone back behind the highest partition', () => {
    const nowMs = noon - 5 * hour;
    expect(placed(nowMs, nowMs)).toBe(w);
    expect(placed(nowMs - hour + 1, nowMs)).toBe(w);
    expect(placed(nowMs - hour, nowMs)).toBe(w - 6);
  });

  it('is never late while lines are caught up from a checkpoint', () => {
    expect(placed(noon - 30 * hour, noon, true)).toBe(w);
  });
});
