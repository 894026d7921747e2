import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { openArchive } from '../../engine/index.js';
import type { CountedValue } from '../../engine/scan/count-query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { parseCountRequest } from '../../server/http/count-request.js';
import { append, load } from '../engine/store/memory-archive.js';
import type { Value } from '../model/dataset.js';
import { queryAllDuckDb, type DuckDbRow } from './duckdb.js';
import { sealed } from './sql-query.js';

const minuteMs = 60_000;
const nowMs = Date.UTC(2027, 0, 1);
/** Weeks in which clocks are put forward or back, for each zone that does so. */
const weeks = [Date.UTC(2026, 2, 5), Date.UTC(2026, 2, 26), Date.UTC(2026, 9, 1), Date.UTC(2026, 9, 22)];

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
  { name: 'status', type: 'int' },
  { name: 'took', type: 'float' },
  { name: 'path', type: 'string' },
  { name: 'cached', type: 'bool' },
  { name: 'small', type: 'int' },
]);

const rowArbitrary: fc.Arbitrary<readonly Value[]> = fc.tuple<Value[]>(
  fc.option<Value>(
    fc
      .tuple(fc.constantFrom(...weeks), fc.nat(14 * 24 * 60 * 60_000))
      .map(([weekMs, offsetMs]) => BigInt(weekMs + offsetMs)),
    { freq: 30 },
  ),
  fc.option<Value>(fc.constantFrom('info', 'warn', 'error', '', 'É'), { freq: 20 }),
  fc.option<Value>(fc.oneof(fc.constantFrom(200n, 404n, 500n), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)), {
    freq: 20,
  }),
  fc.option<Value>(fc.constantFrom(0, -0, 0.5, 1e21, 5e-324), { freq: 20 }),
  fc.nat(400).map((id) => `/orders/${id}`),
  fc.option<Value>(fc.constantFrom(0n, 1n), { freq: 20 }),
  fc.option<Value>(fc.bigInt(-20n, 3000n), { freq: 5 }),
);

let place: string;
let archive: Archive;
let store: AgentStore;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'logstrata-counts-'));
  archive = await openArchive(place, { mode: 'write', role: 'test', now: () => nowMs });
  store = await archive.agent('web', schema);
  const rows = fc.sample(rowArbitrary, { seed, numRuns: caseCount(4000) });
  await load(store, rows.slice(0, 2500), 500);
  await append(store, rows.slice(2500), 'load');
  // The archive is closed so that DuckDB sees each record once: replaced files are removed then.
  await store.compact();
  await archive.close();
  archive = await openArchive(place, { mode: 'write', role: 'test', now: () => nowMs });
  store = await archive.agent('web', schema);
});
afterAll(async () => {
  await archive.close();
  await rm(place, { recursive: true, force: true });
});

const ask = (query: string): ReturnType<AgentStore['count']> =>
  store.count(parseCountRequest(query, { schema, now: nowMs, timezone: 'UTC' }).query);

const where = `seed ${seed}`;

/** The start of a day, or of a shorter step in zones whose offset from UTC is a multiple of the step. */
function startSql(step: string, zone: string): string {
  if (step === '1d') return `epoch_ms(date_trunc('day', time AT TIME ZONE '${zone}') AT TIME ZONE '${zone}')`;
  if (step === '1w')
    return `epoch_ms(date_trunc('week', time AT TIME ZONE '${zone}') AT TIME ZONE '${zone}')`;
  if (step === '1mo')
    return `epoch_ms(date_trunc('month', time AT TIME ZONE '${zone}') AT TIME ZONE '${zone}')`;
  const ms = { '15m': 15 * minuteMs, '1h': 60 * minuteMs }[step]!;
  return `epoch_ms(time) // ${ms} * ${ms}`;
}

function asRow(value: CountedValue, count: number): [CountedValue, number] {
  return [value, count];
}

/** DuckDB's expression for a function of a field. */
function functionSql(fn: string, field: string): string {
  if (fn === 'distinct') return `count(DISTINCT ${field})`;
  return fn.startsWith('p') ? `quantile_disc(${field}, ${Number(fn.slice(1)) / 100})` : `${fn}(${field})`;
}

function isNear(fn: string, given: number, wanted: number): boolean {
  const tolerance = fn.startsWith('p') ? 0.01 : 1e-12;
  return Math.abs(given - wanted) <= tolerance * Math.abs(wanted);
}

describe('numbers compared with DuckDB', () => {
  const functions = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95', 'p99', 'distinct'];
  it.each([
    ['status', 'true', ''],
    ['took', 'level IS NOT NULL', 'level__ne=none&'],
    ['small', "path LIKE '/orders/3%'", 'path__prefix=/orders/3&'],
  ])('of %s where %s, by value and by hour', async (field, condition, filters) => {
    for (const [by, key] of [
      ['level', 'hex(level)'],
      ['time:1d', `epoch_ms(date_trunc('day', time))`],
    ] as const) {
      const counts = await ask(`${filters}by=${by}&of=${field}&fn=${functions.join(',')}`);
      const columns = functions.map((fn) => `CAST(${functionSql(fn, field)} AS VARCHAR) AS ${fn}_`);
      const [rows] = await queryAllDuckDb([
        `SELECT ${key} AS key, ${columns.join(', ')} FROM ${sealed(join(place, 'web'))} WHERE ${condition} AND key IS NOT NULL GROUP BY 1`,
      ]);
      const groups = new Map<string, (bigint | number | null)[]>(
        by === 'level'
          ? counts.values!.top.map((one) => [
              Buffer.from(String(one.value)).toString('hex').toUpperCase(),
              [...one.numbers![0]!],
            ])
          : counts.time!.buckets.map((one) => [String(one.from), [...one.numbers![0]!]]),
      );
      expect(groups.size, where).toBe(rows!.length);
      for (const row of rows!)
        for (const [i, fn] of functions.entries()) {
          const wanted = row[`${fn}_`] as string | null;
          const given = groups.get(String(row.key))![i]!;
          const shown = `${where} ${field} ${fn}: ${given}, not ${wanted}`;
          if (wanted === null || fn === 'distinct')
            expect(String(given ?? (fn === 'distinct' ? 0 : null)), shown).toBe(String(wanted));
          else if (typeof given === 'bigint' && !fn.startsWith('p'))
            expect(given, shown).toBe(BigInt(wanted));
          else expect(isNear(fn, Number(given), Number(wanted)), shown).toBe(true);
        }
    }
  });
});

describe('counts compared with DuckDB', () => {
  it.each([
    ['1d', 'Europe/Oslo'],
    ['1d', 'America/New_York'],
    ['1d', 'Australia/Lord_Howe'],
    ['1d', 'Asia/Kathmandu'],
    ['1w', 'Australia/Lord_Howe'],
    ['1mo', 'America/New_York'],
    ['1h', 'Europe/Oslo'],
    ['1h', 'America/New_York'],
    ['15m', 'Asia/Kathmandu'],
  ])('by %s in %s', async (step, zone) => {
    for (const [filters, condition] of [
      ['', 'true'],
      ['status__gte=400&', 'status >= 400'],
      ['path__prefix=/orders/1&level__ne=info&', "starts_with(path, '/orders/1') AND level <> 'info'"],
    ]) {
      const counts = await ask(`${filters}by=time:${step}&by=level&top=4&zone=${zone}`);
      const top = counts.values!.top.map(({ value }) => String(value));
      const columns = top.map((value, i) => `count(*) FILTER (level = '${value}') AS v${i}`);
      const [rows, sums] = await queryAllDuckDb([
        `SELECT ${startSql(step, zone)} AS start, count(*) AS n, ${columns.join(', ')} FROM ${sealed(join(place, 'web'))} ` +
          `WHERE ${condition} AND time IS NOT NULL GROUP BY 1 ORDER BY 1`,
        `SELECT count(*) AS n, count(*) - count(time) AS nulls FROM ${sealed(join(place, 'web'))} WHERE ${condition}`,
      ]);
      const shown = counts.time!.buckets.map(({ from, count, values }) => [from, count, ...values!]);
      const expected = rows!.map((row) => [row.start, row.n, ...top.map((_, i) => row[`v${i}`])].map(Number));
      expect(shown, where).toEqual(expected);
      expect([counts.count, counts.time!.nulls], where).toEqual([sums![0]!.n, sums![0]!.nulls].map(Number));
    }
  });

  it.each(['level', 'status', 'took', 'path', 'cached'])('by the values of %s', async (field) => {
    const counts = await ask(`by=${field}&top=7&time__since=2026-03-10`);
    const from = `${sealed(join(place, 'web'))} WHERE time >= TIMESTAMPTZ '2026-03-10 00:00:00+00'`;
    const shownAs = field === 'level' ? 'hex(level)' : field;
    const [rows, sums] = (await queryAllDuckDb([
      `SELECT ${field} AS own, ${shownAs} AS value, count(*) AS n FROM ${from} AND ${field} IS NOT NULL GROUP BY 1, 2 ORDER BY n DESC, own LIMIT 7`,
      `SELECT count(*) AS n, count(*) - count(${field}) AS nulls, count(DISTINCT ${field}) AS different FROM ${from}`,
    ])) as [DuckDbRow[], DuckDbRow[]];
    const expected = rows.map(({ value, n }) =>
      asRow(
        field === 'level' ? Buffer.from(value as string, 'hex').toString('utf8') : (value as CountedValue),
        Number(n),
      ),
    );
    expect(
      counts.values!.top.map(({ value, count }) => asRow(value === 0 ? 0 : value, count)),
      where,
    ).toEqual(expected.map(([value, n]) => asRow(value === 0 ? 0 : value, n)));
    const { n, nulls, different } = sums[0]!;
    const given = expected.reduce((sum, [, each]) => sum + each, 0);
    expect(counts, where).toMatchObject({
      count: Number(n),
      values: { nulls: Number(nulls), distinct: Number(different), other: Number(n) - Number(nulls) - given },
    });
  });
});
