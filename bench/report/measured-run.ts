import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '../../server/cli/options.js';
import { describeMachine } from '../machine.js';
import { UsageFailure } from '../options.js';

/** A figure of a run and its target. */
export interface FigureLine {
  readonly what: string;
  readonly target: string;
  readonly figure: string;
}

/** A figure that is also written as numbers. */
export interface MeasuredLine extends FigureLine {
  /** The figure as numbers, for the JSON file. */
  readonly values: Readonly<Record<string, number>>;
}

/** What a measurement gets from the command line. */
export interface RunOptions {
  readonly isSmall: boolean;
  /** The values of the additional options by name. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /** A temporary folder, which is removed at the end of the run. */
  readonly folder: string;
}

/** A column of the table: its title, and what it has of a line. */
export type FigureColumn<Line extends FigureLine> = readonly [title: string, cellOf: (line: Line) => string];

/** The columns of a table where a run names no others. */
const usualColumns: readonly FigureColumn<FigureLine>[] = [
  ['what', ({ what }) => what],
  ['target', ({ target }) => target],
  ['figure', ({ figure }) => figure],
];

/** A program that measures a part of the server. */
export interface MeasuredRun<Line extends FigureLine = MeasuredLine> {
  /** Names its temporary folder and its result files. */
  readonly name: string;
  readonly usage: string;
  /** The option for a small run, which tests whether the program works. */
  readonly small: 'quick' | 'tiny';
  /** Names of additional options, each of which takes a value. */
  readonly options?: readonly string[];
  /** The columns of the table, where they are not those of what, target and figure. */
  readonly columns?: readonly FigureColumn<Line>[];
  /** Throws a `UsageFailure` for invalid values. `about` describes in words what was measured. */
  readonly measure: (
    options: RunOptions,
  ) => Promise<{ about: string; settings: object; lines: readonly Line[] }>;
}

/** The number of an option, or its default. Throws a `UsageFailure` outside of 1 to `max`. */
export function numberOption(name: string, text: string | undefined, usual: number, max: number): number {
  const value = Number(text ?? usual);
  if (!(value >= 1 && value <= max)) throw new UsageFailure(`--${name} must be from 1 to ${max}`);
  return value;
}

/** What the options are read by. */
type OptionNames = Pick<MeasuredRun, 'name' | 'small' | 'options'>;

function readOptions({ name, small, options: more = [] }: OptionNames, args: readonly string[]) {
  const texts = Object.fromEntries([...more, 'out'].map((option) => [option, { type: 'string' } as const]));
  const switches = { [small]: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const { values } = parseArgs({ args: [...args], options: { ...texts, ...switches } });
    const isSmall = values[small] === true;
    const usual = join(packageRoot(), isSmall ? 'bench/data' : 'bench/results', name);
    return {
      isSmall,
      isHelp: values['help'] === true,
      outPath: resolve(String(values['out'] ?? usual)),
      values: Object.fromEntries(
        more.map((option) => [option, values[option] === undefined ? undefined : String(values[option])]),
      ),
    };
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
}

/** Runs a measurement, prints a table, and writes it with a JSON file. Returns the exit code. */
export async function runMeasured<Line extends FigureLine = MeasuredLine>(
  run: MeasuredRun<Line>,
): Promise<number> {
  const { name, usage, columns = usualColumns } = run;
  const folder = mkdtempSync(join(tmpdir(), `logstrata-${name}-`));
  try {
    const { isHelp, isSmall, values, outPath } = readOptions(run, process.argv.slice(2));
    if (isHelp) {
      process.stdout.write(usage);
      return 0;
    }
    const startedAt = new Date().toISOString();
    const machine = describeMachine();
    const { about, settings, lines } = await run.measure({ isSmall, values, folder });
    const head =
      `${about}; ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; load before the run ` +
      `${machine.loadBefore.toFixed(2)}; commit ${machine.commit ?? 'unknown'}; ${startedAt}`;
    const titles = columns.map(([title]) => title);
    const rows = lines.map((line) => `| ${columns.map(([, cellOf]) => cellOf(line)).join(' | ')} |`);
    const rule = `|${'---|'.repeat(columns.length)}`;
    const table = `${head}\n\n| ${titles.join(' | ')} |\n${rule}\n${rows.join('\n')}\n`;
    mkdirSync(dirname(outPath), { recursive: true });
    writeFileSync(`${outPath}.md`, table);
    const record = { format: `logstrata-${name}/1`, startedAt, machine, settings, lines };
    writeFileSync(`${outPath}.json`, `${JSON.stringify(record, null, 1)}\n`);
    process.stdout.write(`${table}\nwritten  ${relative(process.cwd(), outPath)}.md and .json\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageFailure)) throw error;
    process.stderr.write(`${name}: ${error.message}\n\n${usage}`);
    return 2;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
