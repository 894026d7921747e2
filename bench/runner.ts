import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '../server/cli/options.js';
import { describeMachine, type MachineDescription } from './machine.js';

/** Wrong usage of the command line; the message says what was expected. */
export class UsageFailure extends Error {}

/** What a benchmark found out about the program that must not be: a wrong answer, a lost record. The run ends without a result. */
export class Finding extends Error {}

/** The values of a command line by option. */
export type Values = Readonly<Record<string, string | boolean | undefined>>;

/** What a run gets beside the command line. */
export interface RunContext {
  /** A temporary folder, which is removed at the end of the run. */
  readonly folder: string;
  /** Aborts at Ctrl-C, if the benchmark is stoppable. */
  readonly signal: AbortSignal;
  /** Reports in a sentence what the benchmark is doing. */
  readonly say: (what: string) => void;
  readonly startedAt: string;
  readonly machine: MachineDescription;
}

/** What a run has found out. */
export interface Report {
  /** Names the files, unless `--out` does. */
  readonly name: string;
  /** Whether the run only tests the benchmark, so that its result is no figure. */
  readonly isSmall: boolean;
  /** What is printed. */
  readonly shown: string;
  /** The contents of the files by their endings. */
  readonly files: { readonly json: object } & Readonly<Record<'md' | 'svg', string | undefined>>;
}

/** A benchmark: its options, and what it does. */
export interface Benchmark {
  readonly usage: string;
  /** The options beside `--out` and `--help`: those that take a text, and those that do not. */
  readonly texts: readonly string[];
  readonly flags: readonly string[];
  /** Whether it ends by itself at Ctrl-C. */
  readonly isStoppable?: boolean;
  /** Throws a `UsageFailure` for values that are not valid. */
  readonly run: (values: Values, context: RunContext) => Promise<Report>;
}

/** Parses a command line. Throws a `UsageFailure`. */
export function readValues(
  { texts, flags }: Pick<Benchmark, 'texts' | 'flags'>,
  args: readonly string[],
): Values {
  const options = Object.fromEntries([
    ...[...texts, 'out'].map((name) => [name, { type: 'string' }] as const),
    ...[...flags, 'help'].map((name) => [name, { type: 'boolean' }] as const),
  ]);
  try {
    return parseArgs({ args: [...args], options }).values as Values;
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
}

/** The number of an option, or its default. Throws a `UsageFailure`. */
export function numberOf(
  values: Values,
  name: string,
  usual: number,
  { min = 1, max = 1e12, isWhole = true }: { min?: number; max?: number; isWhole?: boolean } = {},
): number {
  const text = values[name];
  if (text === undefined) return usual;
  const value = /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : NaN;
  if (value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
  const what = isWhole ? 'a whole number' : 'a number';
  throw new UsageFailure(`--${name} must be ${what} from ${min} to ${max}, not "${String(text)}"`);
}

/** The text of an option. */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** Number of records of earlier runs that are kept, under the names `NAME.1.json`, `NAME.2.json`. */
const earlierRuns = 2;

function writeReport({ name, isSmall, shown, files }: Report, out: string | undefined): void {
  const path = resolve(out ?? join(packageRoot(), isSmall ? 'bench/data' : 'bench/results', name));
  const recordOf = (age: number): string => `${path}${age === 0 ? '' : `.${age}`}.json`;
  mkdirSync(dirname(path), { recursive: true });
  for (let age = earlierRuns; age > 0; age--)
    if (existsSync(recordOf(age - 1))) renameSync(recordOf(age - 1), recordOf(age));
  writeFileSync(recordOf(0), `${JSON.stringify(files.json, null, 1)}\n`);
  const texts = Object.entries(files).filter(([, content]) => typeof content === 'string');
  for (const [ending, content] of texts) writeFileSync(`${path}.${ending}`, content as string);
  const endings = ['json', ...texts.map(([ending]) => ending)].join(', .');
  process.stdout.write(`${shown}\nwritten  ${relative(process.cwd(), path)}.${endings}\n`);
}

/**
 * Runs a benchmark. Returns exit code 1 for a finding or a failure, 2 for wrong usage, 130 after Ctrl-C, which leaves no files behind unless the
 * benchmark ends early with a result.
 */
export async function runBenchmark(benchmark: Benchmark, args: readonly string[]): Promise<number> {
  const startMs = performance.now();
  const tell = (line: string): void => void process.stderr.write(`bench: ${line}\n`);
  const say = (what: string): void =>
    tell(`${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${what}`);
  const end = new AbortController();
  if (benchmark.isStoppable === true) process.once('SIGINT', () => end.abort());
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-bench-'));
  try {
    const values = readValues(benchmark, args);
    if (values['help'] === true) process.stdout.write(benchmark.usage);
    else {
      const startedAt = new Date().toISOString();
      const context = { folder, signal: end.signal, say, startedAt, machine: describeMachine() };
      writeReport(await benchmark.run(values, context), textOf(values, 'out'));
    }
    return 0;
  } catch (error) {
    if (error instanceof UsageFailure) {
      tell(`${error.message}\n\n${benchmark.usage}`);
      return 2;
    }
    if (end.signal.aborted) {
      tell('ended; nothing is left of it');
      return 130;
    }
    tell(error instanceof Finding ? error.message : error instanceof Error ? error.stack! : String(error));
    return 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

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

/** A column of the table: its title, and what it has of a line. */
type FigureColumn<Line extends FigureLine> = readonly [title: string, cellOf: (line: Line) => string];

/** The columns of a table where a benchmark names no others. */
const usualColumns: readonly FigureColumn<FigureLine>[] = [
  ['what', ({ what }) => what],
  ['target', ({ target }) => target],
  ['figure', ({ figure }) => figure],
];

/** A benchmark that has a table of figures and targets, and an option `--tiny`. */
export interface FigureBenchmark<Line extends FigureLine> extends Pick<Benchmark, 'usage' | 'texts'> {
  readonly name: string;
  readonly columns?: readonly FigureColumn<Line>[];
  /** `about` says in words what was measured. */
  readonly measure: (
    values: Values,
    isSmall: boolean,
    context: RunContext,
  ) => Promise<{ readonly about: string; readonly settings: object; readonly lines: readonly Line[] }>;
}

/** Makes a benchmark of one that has a table of figures. */
export function figureBenchmark<Line extends FigureLine = MeasuredLine>({
  name,
  usage,
  texts,
  columns = usualColumns,
  measure,
}: FigureBenchmark<Line>): Benchmark {
  return {
    usage,
    texts,
    flags: ['tiny'],
    run: async (values, context) => {
      const isSmall = values['tiny'] === true;
      const { about, settings, lines } = await measure(values, isSmall, context);
      const { startedAt, machine } = context;
      const head =
        `${about}; ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; load before the run ` +
        `${machine.loadBefore.toFixed(2)}; commit ${machine.commit ?? 'unknown'}; ${startedAt}`;
      const rows = lines.map((line) => `| ${columns.map(([, cellOf]) => cellOf(line)).join(' | ')} |`);
      const titles = columns.map(([title]) => title).join(' | ');
      const md = `${head}\n\n| ${titles} |\n|${'---|'.repeat(columns.length)}\n${rows.join('\n')}\n`;
      const json = { format: `logstrata-${name}/1`, startedAt, machine, settings, lines };
      return { name, isSmall, shown: md, files: { json, md, svg: undefined } };
    },
  };
}
