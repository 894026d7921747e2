import { join } from 'node:path';
import {
  BatchBuilder,
  makeSchema,
  openArchive,
  WorkerPool,
  workersDefault,
  type AgentStore,
  type Archive,
  type ColumnBuilder,
  type Scan,
  type Schema,
} from '../../engine/index.js';
import { formatCount } from '../../server/cli/terminal.js';
import { appRecordLines } from '../app-records.js';
import { columnsOf } from '../record-set.js';
import { formatFigure } from '../report/figures.js';
import { numberOf, figureBenchmark, type FigureLine } from '../runner.js';
import { spreadOf, type Spread } from '../spread.js';
import { webRecordAsJson, webRecords } from '../web-records.js';

const usage = `Usage: npm run bench -- several [options]

Four agents in one answer beside the same agents one after another: their newest 100 records, all records, and the same when all
agents have the same fields. Prints a table, and writes it with a record of the run.

  --tiny        a few records: whether it works, not how fast
  --rows N      records of the four agents (default: 1000000)
  --repeat N    turns (default: 9)
  --out PATH    result, without ending (default: bench/results/several)
`;

type SetName = keyof typeof columnsOf;

const startMs = Date.UTC(2026, 9, 20);
const noCounters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };

function schemaOf(set: SetName): Schema {
  const types = { time: 'time', int: 'int', float: 'float', text: 'string', word: 'string' } as const;
  return makeSchema(columnsOf[set].map(({ name, kind }) => ({ name, type: types[kind] })));
}

function* linesOf(set: SetName, rows: number, seed: number): Generator<string> {
  const options = { rows, startMs, days: 3, seed };
  if (set === 'app') yield* appRecordLines(options);
  else for (const record of webRecords(options)) yield webRecordAsJson(record);
}

async function fill(
  archive: Archive,
  name: string,
  set: SetName,
  rows: number,
  seed: number,
): Promise<AgentStore> {
  const schema = schemaOf(set);
  const store = await archive.agent(name, schema);
  const session = await store.beginLoad();
  const builder = new BatchBuilder(schema);
  const sources = columnsOf[set].map(({ source }) => source);
  let count = 0;
  for (const line of linesOf(set, rows, seed)) {
    const record = JSON.parse(line) as Record<string, unknown>;
    sources.forEach((source, i) =>
      setValue(builder.column(i), record[source], schema.fields[i]!.type === 'time'),
    );
    builder.endRow();
    if (++count % 10_000 === 0) await session.append(builder.finish(), 0);
  }
  await session.append(builder.finish(), 0);
  await session.commit({ checkpoints: [], counters: noCounters });
  return store;
}

function setValue(column: ColumnBuilder, value: unknown, isTime: boolean): void {
  if (value === null || value === undefined) column.setNull();
  else if (column.kind === 'string')
    column.setString(typeof value === 'string' ? value : JSON.stringify(value));
  else column.setNumber(isTime ? Date.parse(String(value)) : Number(value));
}

/** Reads an answer to its end. Returns the number of its lines. */
async function read(scan: Scan): Promise<number> {
  for await (const piece of scan.lines) if (piece.length === 0) throw new Error('an empty piece');
  return scan.stats.rowsReturned;
}

/** Times of the same records by single answers, one after another, and by one answer. */
interface Times {
  readonly singles: Spread;
  readonly several: Spread;
}

async function compare(
  stores: readonly AgentStore[],
  limit: number,
  isAll: boolean,
  turns: number,
): Promise<Times> {
  const [first, ...others] = stores;
  const joined = first!.joined(others);
  const place = isAll ? { after: { partition: 0, ordinal: 0 } } : {};
  const options = { lends: true };
  const singles: number[] = [];
  const several: number[] = [];
  // The first turn fills the caches.
  for (let turn = 0; turn <= turns; turn++) {
    const beganMs = performance.now();
    let rows = 0;
    for (const store of stores)
      rows += await read(await store.scan({ limit, predicates: [], ...place }, options));
    const betweenMs = performance.now();
    const of = stores.map(() => []);
    const merged = await read(await joined.scan({ limit, predicates: [], of, ...place }, options));
    const endMs = performance.now();
    if (merged !== (isAll ? rows : limit)) throw new Error(`${merged} records of ${rows}`);
    if (turn === 0) continue;
    singles.push(betweenMs - beganMs);
    several.push(endMs - betweenMs);
  }
  return { singles: spreadOf(singles), several: spreadOf(several) };
}

interface Line extends FigureLine {
  readonly spread: Spread;
}

const ms = ({ median }: Spread): string => `${formatFigure(median, 'ms')} ms`;

function linesFor(about: string, times: Times, isRate: boolean): Line[] {
  const { singles, several } = times;
  const ratio = isRate ? singles.median / several.median : several.median / singles.median;
  const target = isRate ? '≥ 0.7 of the single rate' : '≤ 1.5× of the sum of single ones';
  return [
    { what: `${about}: one agent after another`, target: '', figure: ms(singles), spread: singles },
    {
      what: `${about}: in one answer`,
      target,
      figure: `${ms(several)}, ${ratio.toFixed(2)}×`,
      spread: several,
    },
  ];
}

export const benchmark = figureBenchmark<Line>({
  name: 'several',
  usage,
  texts: ['rows', 'repeat'],
  columns: [
    ['what', ({ what }) => what],
    ['target', ({ target }) => target],
    ['median', ({ figure }) => figure],
  ],
  measure: async (values, isSmall, { folder }) => {
    const rows = numberOf(values, 'rows', isSmall ? 4000 : 1_000_000, { max: 100_000_000 });
    const repeat = numberOf(values, 'repeat', isSmall ? 1 : 9, { max: 9999 });
    const workers = new WorkerPool(workersDefault());
    const now = (): number => startMs + 4 * 86_400_000;
    const archive = await openArchive(join(folder, 'data'), { mode: 'write', role: 'bench', now, workers });
    try {
      const lines: Line[] = [];
      for (const [about, sets] of [
        ['two web, two app', ['web', 'app', 'web', 'app']],
        ['four app', ['app', 'app', 'app', 'app']],
      ] as const) {
        const stores: AgentStore[] = [];
        for (const [k, set] of sets.entries())
          stores.push(await fill(archive, `${sets.join('-')}-${k}`, set, Math.floor(rows / 4), k + 1));
        const newest = await compare(stores, 100, false, isSmall ? 1 : 50 * repeat);
        lines.push(...linesFor(`${about}: newest 100`, newest, false));
        const all = await compare(stores, rows, true, repeat);
        lines.push(...linesFor(`${about}: all ${formatCount(rows)}`, all, true));
      }
      return { about: `turns: ${repeat}`, settings: { rows, repeat }, lines };
    } finally {
      await archive.close();
      await workers.close();
    }
  },
});
