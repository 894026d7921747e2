import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { formatCount } from '../../server/cli/terminal.js';
import { formatFigure } from '../report/figures.js';
import { numberOf, figureBenchmark, type FigureLine, type Values } from '../runner.js';
import { spreadOf, type Spread } from '../spread.js';
import type { Asked } from './asking.js';
import { fillAgents, fillQuietYear } from './stores.js';

const usage = `Usage: npm run bench -- years [options]

How an archive does after years: files and time to open of an agent with few records a day, and the newest 100 records of agents with
many, for a month beside a single day. Prints a table, and writes it with a record of the run.

  --tiny        a few days: whether it works, not how fast
  --repeat N    fresh processes for each figure (default: 9)
  --out PATH    result, without ending (default: bench/results/years)
`;

const agents = Array.from({ length: 10 }, (_, i) => `agent-${i}`);

interface Line extends FigureLine {
  readonly spread?: Spread;
}

/** The sizes of a run. */
interface Sizes {
  readonly repeat: number;
  readonly quietDays: number;
  readonly manyDays: number;
  readonly perDay: number;
}

function sizesOf(values: Values, isSmall: boolean): Sizes {
  return {
    repeat: numberOf(values, 'repeat', isSmall ? 1 : 9, { max: 9999 }),
    quietDays: isSmall ? 3 : 365,
    manyDays: isSmall ? 3 : 30,
    perDay: isSmall ? 100_000 : 10_000_000,
  };
}

/** Measures in a new process. */
function ask(location: string, names: readonly string[]): Asked {
  const script = join(import.meta.dirname, 'asking.js');
  const args = [script, location, names.join(','), '20'];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Asked;
}

function filesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .length;
}

async function measureQuiet(folder: string, sizes: Sizes): Promise<Line[]> {
  const location = join(folder, 'quiet');
  const { records, segments, rewrites } = await fillQuietYear(location, sizes.quietDays, 1000);
  const files = filesIn(location);
  const opened = spreadOf(Array.from({ length: sizes.repeat }, () => ask(location, ['quiet']).openMs));
  const what = `1000 records a day, ${sizes.quietDays} days`;
  return [
    {
      what: `${what}: files (${formatCount(records)} records, ${segments} segments, ${rewrites} rewrites)`,
      target: '≤ 800',
      figure: formatCount(files),
    },
    {
      what: `${what}: time to open`,
      target: '≤ 200 ms',
      figure: `${formatFigure(opened.median, 'ms')} ms`,
      spread: opened,
    },
  ];
}

async function measureMany(folder: string, sizes: Sizes): Promise<Line[]> {
  const stores = [1, sizes.manyDays].map((days) => ({
    days,
    location: join(folder, `days-${days}`),
    asked: [] as Asked[],
  }));
  for (const { days, location } of stores) await fillAgents(location, agents, days, sizes.perDay);
  for (let turn = 0; turn < sizes.repeat; turn++)
    for (const { location, asked } of stores) asked.push(ask(location, agents));
  const about = `10 agents, ${formatCount(sizes.perDay)} records a day each`;
  const lines: Line[] = [];
  const add = (what: string, target: string, read: (asked: Asked) => readonly number[]): void => {
    const [day, month] = stores.map(({ asked }) => spreadOf(asked.flatMap(read)));
    lines.push(
      { what: `${about}, 1 day: ${what}`, target: '', figure: ms(day!), spread: day! },
      {
        what: `${about}, ${sizes.manyDays} days: ${what}`,
        target,
        figure: `${ms(month!)}, ${(month!.median / day!.median).toFixed(2)}×`,
        spread: month!,
      },
    );
  };
  add('newest 100', '≤ 2× of 1 day', ({ againMs }) => againMs);
  add('newest 100, the first answer after opening', '', ({ firstMs }) => firstMs);
  add('time to open all agents', '', ({ openMs }) => [openMs]);
  return lines;
}

const ms = ({ median }: Spread): string => `${formatFigure(median, 'ms')} ms`;

function halfOf({ spread }: Line): string {
  if (spread === undefined) return '';
  return `${formatFigure(spread.lower, 'ms')} – ${formatFigure(spread.upper, 'ms')} of ${spread.count}`;
}

export const benchmark = figureBenchmark<Line>({
  name: 'years',
  usage,
  texts: ['repeat'],
  columns: [
    ['what', ({ what }) => what],
    ['target', ({ target }) => target],
    ['median', ({ figure }) => figure],
    ['half of the runs within', halfOf],
  ],
  measure: async (values, isSmall, { folder }) => {
    const sizes = sizesOf(values, isSmall);
    const lines = [...(await measureQuiet(folder, sizes)), ...(await measureMany(folder, sizes))];
    const about = `fresh processes for each figure: ${sizes.repeat}`;
    return { about, settings: sizes, lines };
  },
});
