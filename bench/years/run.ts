#!/usr/bin/env node
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { formatCount } from '../../server/cli/output/figures.js';
import { packageRoot } from '../../server/cli/options/package-root.js';
import { describeMachine } from '../machine.js';
import { UsageFailure } from '../options.js';
import { formatFigure } from '../report/figures.js';
import { spreadOf, type Spread } from '../spread.js';
import type { Asked } from './asking.js';
import { fillAgents, fillQuietYear } from './stores.js';

const usage = `Usage: npm run bench:years -- [options]

How an archive does after years: files and time to open of an agent with few records a day, and the newest 100 records of agents with
many, for a month beside a single day. Prints a table, and writes it with a record of the run.

  --tiny        a few days: whether it works, not how fast
  --repeat N    fresh processes for each figure (default: 9)
  --out PATH    result, without ending (default: bench/results/years)
`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const agents = Array.from({ length: 10 }, (_, i) => `agent-${i}`);

interface Line {
  readonly what: string;
  readonly target: string;
  readonly figure: string;
  readonly spread?: Spread;
}

function readOptions(args: readonly string[]) {
  const options = { tiny: flag, repeat: text, out: text, help: flag } as const;
  let values;
  try {
    values = parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
  const tiny = values.tiny === true;
  const repeat = values.repeat ?? (tiny ? '1' : '9');
  if (!/^[1-9]\d{0,3}$/.test(repeat))
    throw new UsageFailure(`--repeat must be a whole number from 1 on, not "${repeat}"`);
  return {
    help: values.help === true,
    repeat: Number(repeat),
    quietDays: tiny ? 3 : 365,
    manyDays: tiny ? 3 : 30,
    perDay: tiny ? 100_000 : 10_000_000,
    outPath: resolve(values.out ?? join(packageRoot(), tiny ? 'bench/data/years' : 'bench/results/years')),
  };
}

type Options = ReturnType<typeof readOptions>;

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

async function measureQuiet(folder: string, options: Options): Promise<Line[]> {
  const location = join(folder, 'quiet');
  const { records, segments, rewrites } = await fillQuietYear(location, options.quietDays, 1000);
  const files = filesIn(location);
  const opened = spreadOf(Array.from({ length: options.repeat }, () => ask(location, ['quiet']).openMs));
  const what = `1000 records a day, ${options.quietDays} days`;
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

async function measureMany(folder: string, options: Options): Promise<Line[]> {
  const stores = [1, options.manyDays].map((days) => ({
    days,
    location: join(folder, `days-${days}`),
    asked: [] as Asked[],
  }));
  for (const { days, location } of stores) await fillAgents(location, agents, days, options.perDay);
  for (let turn = 0; turn < options.repeat; turn++)
    for (const { location, asked } of stores) asked.push(ask(location, agents));
  const about = `10 agents, ${formatCount(options.perDay)} records a day each`;
  const lines: Line[] = [];
  const add = (what: string, target: string, read: (asked: Asked) => readonly number[]): void => {
    const [day, month] = stores.map(({ asked }) => spreadOf(asked.flatMap(read)));
    lines.push(
      { what: `${about}, 1 day: ${what}`, target: '', figure: ms(day!), spread: day! },
      {
        what: `${about}, ${options.manyDays} days: ${what}`,
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

function report(lines: readonly Line[], about: string): string {
  const rows = lines.map(({ what, target, figure, spread }) => {
    const half =
      spread === undefined
        ? ''
        : `${formatFigure(spread.lower, 'ms')} – ${formatFigure(spread.upper, 'ms')} of ${spread.count}`;
    return `| ${what} | ${target} | ${figure} | ${half} |`;
  });
  return `${about}\n\n| what | target | median | half of the runs within |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-years-'));
  try {
    const options = readOptions(process.argv.slice(2));
    if (options.help) {
      process.stdout.write(usage);
      return 0;
    }
    const { outPath, ...settings } = options;
    const startedAt = new Date().toISOString();
    const machine = describeMachine();
    const lines = [...(await measureQuiet(folder, options)), ...(await measureMany(folder, options))];
    const about =
      `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; load before the run ${machine.loadBefore.toFixed(2)}; ` +
      `commit ${machine.commit ?? 'unknown'}; ${startedAt}`;
    const table = report(lines, about);
    mkdirSync(dirname(outPath), { recursive: true });
    writeFileSync(`${outPath}.md`, table);
    const record = { format: 'logstrata-years/1', startedAt, machine, settings, lines };
    writeFileSync(`${outPath}.json`, `${JSON.stringify(record, null, 1)}\n`);
    process.stdout.write(`${table}\nwritten  ${relative(process.cwd(), outPath)}.md and .json\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageFailure)) throw error;
    process.stderr.write(`years: ${error.message}\n\n${usage}`);
    return 2;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = await main();
