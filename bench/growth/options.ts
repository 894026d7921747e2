import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '../../server/cli/options.js';
import { UsageFailure } from '../options.js';

/** The options of the command line. */
export interface GrowthOptions {
  /** Whether to query a made-up archive of 10^9 records instead of measuring growth. */
  readonly billion: boolean;
  /** Whether the messages have `index: full`. */
  readonly isFull: boolean;
  /** Number of made-up segments in that archive. */
  readonly segments: number;
  /** Numbers of records at which the archive is queried, ascending. */
  readonly sizes: readonly number[];
  /** Number of days that the largest size is spread over. */
  readonly days: number;
  /** Number of new processes for each question and size. */
  readonly repeat: number;
  /** Folder in which the archive is made and removed. */
  readonly dataFolder: string;
  /** Path of the result files without their endings. */
  readonly outPath: string;
}

export const growthUsage = `Usage: npm run bench:growth -- [options]

How the time of a question grows with the archive: one archive is filled day after day, and asked at several sizes, the first
time after opening (files in the page cache) and again. Writes a table, a plot and a record. Half an hour and 9 GB of disk.

  --rows A,B,C   records at which it is asked, ascending; 300k and 10M are understood (default: 10M,20M,40M,80M)
  --days N       days that the largest size is spread over (default: 365)
  --billion      instead: needles in 1,006,698,496 records in 240 segments, whose filters are made up; 6 GB of disk
  --full         the messages have "index: full", larger filters for texts
  --repeat N     fresh processes for each question (default: 7)
  --data FOLDER  where the archive is made and removed again (default: bench/data)
  --out PATH     result, without ending (default: bench/results/growth or billion; with --full growth-full, …)
  --tiny         a few thousand records, or three segments: whether it works, not how fast
  --help         this

Ctrl-C ends it, removes the archive and writes nothing.
`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

function parse(args: readonly string[]) {
  const options = {
    rows: text,
    days: text,
    billion: flag,
    full: flag,
    repeat: text,
    data: text,
    out: text,
    tiny: flag,
    help: flag,
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
}

function whole(name: string, value: string): number {
  if (!/^[1-9]\d{0,3}$/.test(value))
    throw new UsageFailure(`--${name} must be a whole number from 1 to 9999, not "${value}"`);
  return Number(value);
}

const factors = { k: 1000, M: 1_000_000 } as const;

function sizesOf(value: string): number[] {
  const sizes = value.split(',').map((size) => {
    const [, digits, factor] = /^([1-9]\d{0,10})([kM]?)$/.exec(size) ?? [];
    if (digits === undefined)
      throw new UsageFailure(`--rows must be numbers of records, such as 300k,10M, not "${value}"`);
    return Number(digits) * (factor === 'k' || factor === 'M' ? factors[factor] : 1);
  });
  if (sizes.some((size, i) => i > 0 && size <= sizes[i - 1]!))
    throw new UsageFailure(`--rows must ascend, which "${value}" does not`);
  return sizes;
}

/** Parses the command line; undefined where help is asked for. Throws `UsageFailure`. */
export function readGrowthOptions(args: readonly string[]): GrowthOptions | undefined {
  const values = parse(args);
  if (values.help === true) return undefined;
  const tiny = values.tiny === true;
  const billion = values.billion === true;
  if (billion && (values.rows !== undefined || values.days !== undefined))
    throw new UsageFailure('--billion has its own records: it does not go together with --rows and --days');
  const isFull = values.full === true;
  const name = (billion ? 'billion' : 'growth') + (isFull ? '-full' : '');
  return {
    billion,
    isFull,
    segments: tiny ? 3 : 240,
    sizes: billion ? [] : sizesOf(values.rows ?? (tiny ? '5k,10k' : '10M,20M,40M,80M')),
    days: whole('days', values.days ?? (tiny ? '4' : '365')),
    repeat: whole('repeat', values.repeat ?? (tiny ? '1' : '7')),
    dataFolder: resolve(values.data ?? `${packageRoot()}/bench/data`),
    outPath: resolve(values.out ?? `${packageRoot()}/bench/${tiny ? 'data' : 'results'}/${name}`),
  };
}
