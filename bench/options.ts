import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '../server/cli/options.js';
import { questionIds, type QuestionId } from './question.js';
import { peerNames, type PeerName } from './side.js';

/** The options of the benchmark. */
export interface BenchOptions {
  /** Name of the result. */
  readonly name: string;
  readonly webRows: number;
  /** 0 leaves the application's records out. */
  readonly appRows: number;
  readonly peers: readonly PeerName[];
  /** Ids of the questions to ask; null for all. */
  readonly questions: readonly QuestionId[] | null;
  readonly turns: number;
  /** Rounds of questions that take seconds, HTTP included. */
  readonly turnsWhenSlow: number;
  readonly turnMs: number;
  readonly threads: number;
  readonly cacheBytes: number;
  readonly httpSeconds: number;
  /** Path of the result files without their endings. */
  readonly outPath: string;
  readonly dataFolder: string;
  /** Whether to measure an archive: Parquet files that DuckDB wrote, queried in place. */
  readonly archive: boolean;
  /** Whether to install the packages of the peers. */
  readonly mayInstall: boolean;
}

export const benchUsage = `Usage: npm run bench -- [options]

Measures Logstrata beside other programs, on the same records, and writes a table, a plot and a record of the run.
Without options: 10 million web records and 5 million of an application, all peers. That takes an hour and 40 GB of disk.

  --quick           1 million web records, DuckDB alone (3 minutes)
  --archive         web records alone, in 100 Parquet files of DuckDB: answered by it, and by ours in place
  --tiny            a few thousand records: whether it works, not how fast
  --rows N          web records, and half as many of the application where it takes part
  --peers A,B       of ${peerNames.join(', ')}; none for ours alone
  --queries A,B     ids of the questions to ask, as the record names them (default: all)
  --repeat N        rounds of each question (default: 7; 3 with --quick)
  --threads N       threads for each side (default: the processors)
  --cache MB        memory for our decoded columns (default: 4096)
  --no-install      measure without the peers that are not installed yet
  --data FOLDER     for records and stores (default: bench/data)
  --out PATH        result, without ending (default: bench/results/full, bench/results/quick, …)
`;

/** Wrong usage of the command line; the message says what was expected. */
export class UsageFailure extends Error {}

type Preset = Pick<
  BenchOptions,
  'name' | 'webRows' | 'appRows' | 'peers' | 'turns' | 'turnsWhenSlow' | 'turnMs' | 'httpSeconds'
>;

const full: Preset = {
  name: 'full',
  webRows: 10_000_000,
  appRows: 5_000_000,
  peers: peerNames,
  turns: 7,
  turnsWhenSlow: 3,
  turnMs: 100,
  httpSeconds: 5,
};
const quick: Preset = {
  ...full,
  name: 'quick',
  webRows: 1_000_000,
  appRows: 0,
  peers: ['duckdb'],
  turns: 3,
  turnsWhenSlow: 2,
  httpSeconds: 2,
};
const tiny: Preset = {
  name: 'tiny',
  webRows: 20_000,
  appRows: 5_000,
  peers: ['duckdb'],
  turns: 2,
  turnsWhenSlow: 1,
  turnMs: 1,
  httpSeconds: 0.3,
};

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d{1,12}$/.test(text) || Number(text) < 1) {
    throw new UsageFailure(`--${name} must be a whole number from 1 on, not "${text}"`);
  }
  return Number(text);
}

function peersOf(text: string | undefined, preset: Preset): readonly PeerName[] {
  if (text === undefined) return preset.peers;
  if (text === 'none' || text === '') return [];
  return text.split(',').map((word) => {
    const peer = peerNames.find((name) => name === word);
    if (peer === undefined) throw new UsageFailure(`--peers knows ${peerNames.join(', ')}, not "${word}"`);
    return peer;
  });
}

function questionsOf(text: string | undefined): readonly QuestionId[] | null {
  if (text === undefined) return null;
  return text.split(',').map((word) => {
    const id = questionIds.find((each) => each === word);
    if (id === undefined) throw new UsageFailure(`--queries knows ${questionIds.join(', ')}, not "${word}"`);
    return id;
  });
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: flag,
        tiny: flag,
        archive: flag,
        rows: text,
        peers: text,
        queries: text,
        repeat: text,
        threads: text,
        cache: text,
        'no-install': flag,
        data: text,
        out: text,
        help: flag,
      },
    }).values;
  } catch (error) {
    throw new UsageFailure(error instanceof Error ? error.message : String(error));
  }
}

/** Parses the command line; undefined where help is asked for. Throws `UsageFailure`. */
export function readBenchOptions(args: readonly string[]): BenchOptions | undefined {
  const values = parse(args);
  if (values.help === true) return undefined;
  if (values.quick === true && values.tiny === true)
    throw new UsageFailure('--quick and --tiny exclude each other');
  const preset = values.tiny === true ? tiny : values.quick === true ? quick : full;
  const webRows = wholeNumber('rows', values.rows, preset.webRows);
  const scaled = Math.max(1, Math.floor(webRows / 2));
  const archive = values.archive === true;
  const kind = archive ? `archive-${preset.name}` : preset.name;
  const name = webRows === preset.webRows ? kind : `${kind}-${webRows}`;
  // The tiny run is a test, so its result is not put into the folder of results.
  const outFolder = preset === tiny ? 'bench/data' : 'bench/results';
  return {
    ...preset,
    name,
    webRows,
    appRows: preset.appRows === 0 || archive ? 0 : values.rows === undefined ? preset.appRows : scaled,
    peers: peersOf(values.peers, preset),
    questions: questionsOf(values.queries),
    turns: wholeNumber('repeat', values.repeat, preset.turns),
    threads: wholeNumber('threads', values.threads, availableParallelism()),
    cacheBytes: wholeNumber('cache', values.cache, 4096) * 1024 * 1024,
    outPath: resolve(values.out ?? `${packageRoot()}/${outFolder}/${name}`),
    dataFolder: resolve(values.data ?? `${packageRoot()}/bench/data`),
    archive,
    mayInstall: values['no-install'] !== true,
  };
}
