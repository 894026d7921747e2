import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '../../server/cli/options.js';
import { UsageFailure } from '../options.js';

/** The options of the soak test. */
export interface SoakOptions {
  readonly minutes: number;
  /** Lines per second. */
  readonly rate: number;
  readonly clients: number;
  /** Bound on the decoded columns of queries in MiB. With the default, the growing cache would hide other growth of memory. */
  readonly cacheMib: number;
  /** Path of the result files without their endings. */
  readonly outPath: string;
}

export const soakUsage = `Usage: npm run soak -- [options]

Runs "logstrata serve" for minutes or hours: a log is written and rotated, clients page through it, retention and compaction run.
Counts every record and looks each second at memory, lag, file handles and disk. Writes a plot and a record of the run.
Ctrl-C ends it early, and still counts and writes.

  --minutes N   how long (default: 60)
  --rate N      lines a second (default: 20000)
  --clients N   clients that page all the time (default: 10)
  --cache MB    memory for decoded columns (default: 256)
  --out PATH    result, without ending (default: bench/results/soak)

Exit code 1 when a record was lost, repeated or not counted.
`;

function positive(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0) return value;
  throw new UsageFailure(`--${name} must be a number above 0, not "${text}"`);
}

function whole(name: string, text: string | undefined, otherwise: number): number {
  const value = positive(name, text, otherwise);
  if (Number.isInteger(value)) return value;
  throw new UsageFailure(`--${name} must be a whole number, not "${text}"`);
}

const text = { type: 'string' } as const;

function parse(args: readonly string[]) {
  const options = {
    minutes: text,
    rate: text,
    clients: text,
    cache: text,
    out: text,
    help: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
}

/** Parses the command line; undefined where help is asked for. Throws `UsageFailure`. */
export function readSoakOptions(args: readonly string[]): SoakOptions | undefined {
  const { minutes, rate, clients, cache, out, help } = parse(args);
  if (help === true) return undefined;
  return {
    minutes: positive('minutes', minutes, 60),
    rate: whole('rate', rate, 20_000),
    clients: whole('clients', clients, 10),
    cacheMib: whole('cache', cache, 256),
    outPath: resolve(out ?? `${packageRoot()}/bench/results/soak`),
  };
}
