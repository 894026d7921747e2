import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { checkAnswers, timeSides } from './comparison.js';
import { measureHttp } from './http/measure-http.js';
import { describeLoading, installPeers, loadSides, type LoadedSide } from './loading.js';
import { readBenchOptions, type BenchOptions } from './options.js';
import type { Question } from './question.js';
import { questionsOf } from './questions.js';
import { prepareSet, setDays, type RecordSet } from './record-set.js';
import { compareLine, type BenchResult, type ResultLine } from './result.js';
import { plotResult } from './report/plot.js';
import { describeRun, markdownReport, terminalTable } from './report/table.js';
import { textOf, type Benchmark, type RunContext } from './runner.js';
import { SideClient } from './side-client.js';
import { peerNames } from './side.js';
import type { SideName } from './side.js';

/** Reports in a sentence what the benchmark is doing. */
type Say = RunContext['say'];

/**
 * Runs the benchmark: generates the records or reuses those of an earlier run, loads them into every side, compares the answers of all
 * sides to every question, measures the times, and measures our server over HTTP. Throws where an answer is wrong, as its time would mean
 * nothing.
 */
async function compareSides(
  options: BenchOptions,
  { say, startedAt, machine }: RunContext,
): Promise<BenchResult> {
  const startMs = performance.now();
  mkdirSync(options.dataFolder, { recursive: true });
  const missing = installPeers(options);
  const sets: RecordSet[] = [await prepare('web', options.webRows, options, say)];
  if (options.appRows > 0) sets.push(await prepare('app', options.appRows, options, say));
  const lines: ResultLine[] = [];
  const versions: Record<string, string> = {};
  for (const set of sets) {
    const loaded = await loadSides(set, options, missing, say);
    const questions = questionsOf(set).filter(({ id, isUnindexed }) =>
      options.archive && isUnindexed === true ? false : (options.questions?.includes(id) ?? true),
    );
    lines.push(...(await askQuestions(questions, loaded, versions, options, say)));
    lines.push(...describeLoading(set, loaded));
    if (set.name === 'web' && !options.archive) lines.push(...(await overHttp(set, loaded, options, say)));
  }
  return {
    format: 'logstrata-bench/1',
    name: options.name,
    startedAt,
    seconds: Math.round((performance.now() - startMs) / 100) / 10,
    machine,
    settings: {
      threads: options.threads,
      cacheBytes: options.cacheBytes,
      turns: options.turns,
      httpSeconds: options.httpSeconds,
    },
    sets: sets.map(({ name, rows, bytes }) => ({ name, rows, bytes, days: setDays })),
    versions,
    missing,
    lines,
  };
}

function prepare(name: RecordSet['name'], rows: number, options: BenchOptions, say: Say): Promise<RecordSet> {
  let shown = -1;
  return prepareSet(name, rows, options.dataFolder, (fraction) => {
    const tenth = Math.floor(fraction * 10);
    if (tenth > shown) say(`making ${rows.toLocaleString('en-US')} ${name} records: ${tenth}0 %`);
    shown = Math.max(shown, tenth);
  });
}

async function askQuestions(
  questions: readonly Question[],
  loaded: readonly LoadedSide[],
  versions: Record<string, string>,
  options: BenchOptions,
  say: Say,
): Promise<ResultLine[]> {
  const clients: SideClient[] = [];
  try {
    for (const side of loaded) {
      const client = await SideClient.start(side.options);
      clients.push(client);
      versions[client.name] = await client.request({ kind: 'version' });
      await client.request({ kind: 'open' });
    }
    const lines: ResultLine[] = [];
    for (const question of questions) {
      say(`asking ${question.id}`);
      lines.push(await askQuestion(question, clients, options));
    }
    return lines;
  } finally {
    for (const client of clients) await client.stop();
  }
}

async function askQuestion(
  question: Question,
  clients: readonly SideClient[],
  options: BenchOptions,
): Promise<ResultLine> {
  const asked: SideClient[] = [];
  for (const client of clients) if (await client.request({ kind: 'answers', question })) asked.push(client);
  const { answer, slowestMs } = await checkAnswers(question, asked);
  const oursStored: SideName = question.isUnindexed === true ? 'logstrata-unindexed' : 'logstrata';
  const ours = options.archive ? 'logstrata-in-place-indexed' : oursStored;
  return compareLine({
    id: question.id,
    title: question.title,
    set: question.set,
    unit: 'ms',
    isLowerBetter: true,
    ours,
    figures: await timeSides(question, asked, slowestMs, options),
    answer,
    ...(question.targetMs === undefined ? {} : { target: `≤ ${question.targetMs}` }),
  });
}

function overHttp(
  set: RecordSet,
  loaded: readonly LoadedSide[],
  options: BenchOptions,
  say: Say,
): Promise<ResultLine[]> {
  const store = loaded.find(({ options: { side } }) => side === 'logstrata');
  const questions = questionsOf(set);
  const newest = questions.find(({ id }) => id === 'newest');
  const scan = questions.find(({ id }) => id === 'three-filters');
  if (store === undefined || newest === undefined || scan === undefined) return Promise.resolve([]);
  say('measuring HTTP');
  return measureHttp({
    storeFolder: store.options.folder,
    scratchFolder: options.dataFolder,
    newest,
    scan,
    bulkRows: set.probes.bulkRows,
    turns: options.turnsWhenSlow,
    seconds: options.httpSeconds,
  });
}

const usage = `Usage: npm run bench -- [NAME] [options]

Measures Logstrata beside other programs, on the same records, and writes a table, a plot and a record of the run.
Without options: 10 million web records and 5 million of an application, all peers. That takes an hour and 40 GB of disk.

Others, each with --help: growth, years, archives, collecting, following, soak, far, viewer.

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

export const benchmark: Benchmark = {
  usage,
  texts: ['rows', 'peers', 'queries', 'repeat', 'threads', 'cache', 'data'],
  flags: ['quick', 'tiny', 'archive', 'no-install'],
  run: async (values, context) => {
    const options = readBenchOptions(values);
    const result = await compareSides(options, context);
    const { name } = options;
    const plotName = `${basename(textOf(values, 'out') ?? name)}.svg`;
    return {
      name,
      isSmall: values['tiny'] === true,
      shown: ['', ...describeRun(result), '', ...terminalTable(result), ''].join('\n'),
      files: { json: result, md: markdownReport(result, plotName), svg: plotResult(result) },
    };
  },
};
