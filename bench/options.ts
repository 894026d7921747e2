import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { packageRoot } from '../server/cli/options.js';
import { questionIds, type QuestionId } from './question.js';
import { numberOf, textOf, UsageFailure, type Values } from './runner.js';
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
  readonly dataFolder: string;
  /** Whether to measure an archive: Parquet files that DuckDB wrote, queried in place. */
  readonly archive: boolean;
  /** Whether to install the packages of the peers. */
  readonly mayInstall: boolean;
}

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

/** Reads the options. Throws a `UsageFailure`. */
export function readBenchOptions(values: Values): BenchOptions {
  if (values['quick'] === true && values['tiny'] === true)
    throw new UsageFailure('--quick and --tiny exclude each other');
  const preset = values['tiny'] === true ? tiny : values['quick'] === true ? quick : full;
  const webRows = numberOf(values, 'rows', preset.webRows);
  const archive = values['archive'] === true;
  const kind = archive ? `archive-${preset.name}` : preset.name;
  const questions = questionsOf(textOf(values, 'queries'));
  // Loading five million records that nothing is asked of takes longer than most questions.
  const asksApp = questions === null || questions.some((id) => id === 'bulk' || id.startsWith('app-'));
  const scaled = values['rows'] === undefined ? preset.appRows : Math.max(1, Math.floor(webRows / 2));
  return {
    ...preset,
    name: webRows === preset.webRows ? kind : `${kind}-${webRows}`,
    webRows,
    appRows: preset.appRows === 0 || archive || !asksApp ? 0 : scaled,
    peers: peersOf(textOf(values, 'peers'), preset),
    questions,
    turns: numberOf(values, 'repeat', preset.turns),
    threads: numberOf(values, 'threads', availableParallelism()),
    cacheBytes: numberOf(values, 'cache', 4096) * 1024 * 1024,
    dataFolder: resolve(textOf(values, 'data') ?? join(packageRoot(), 'bench/data')),
    archive,
    mayInstall: values['no-install'] !== true,
  };
}
