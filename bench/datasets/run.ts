import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { packageRoot } from '../../server/cli/options.js';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { ServerProcess } from '../http/server-process.js';
import { figureBenchmark, Finding, numberOf, textOf, UsageFailure, type FigureLine } from '../runner.js';
import type { DuckDbConnection, DuckDbModule } from '../sides/duckdb.js';
import { folderBytes } from '../sides/folder-size.js';
import { importPeer } from '../sides/peer-package.js';
import { quoteText } from '../sides/sql.js';
import { spreadOf } from '../spread.js';
import {
  clickBenchQuestions,
  comparedOf,
  comparedOfRows,
  jsonBenchQuestions,
  type AnswerRow,
  type DatasetQuestion,
} from './questions.js';

const usage = `Usage: npm run bench -- --clickbench hits.parquet [options]
       npm run bench -- --jsonbench file_0001.json.gz [options]

Asks the questions of ClickBench or JSONBench that the query route and the count route can ask, of a file that you have: a Parquet file with
the columns of ClickBench's hits, in place with an index and imported, or JSON Lines of JSONBench's Bluesky events (also .gz), loaded.
Beside it DuckDB, over the same file and over a table of its own. The answers are compared. Needs DuckDB: node bench/peers/install.mjs duckdb

  --clickbench FILE   Parquet file with the columns of ClickBench
  --jsonbench FILE    JSON Lines with the keys of JSONBench
  --repeat N          times that each question is asked after the first (default: 5)
  --tiny              a small file: whether it works, not how fast
  --out PATH          result, without ending (default: bench/results/clickbench or jsonbench)
`;

const main = join(packageRoot(), 'dist/program/server/main.js');

/** A public set of data: how each side reads its file. */
interface Dataset {
  readonly name: 'clickbench' | 'jsonbench';
  readonly questions: readonly DatasetQuestion[];
  /** The rows of the file in DuckDB's SQL. */
  readonly from: (file: string) => string;
  /** The column of which `{id}` is a value. */
  readonly idColumn: string;
  /** The contents of our agents' files by the names of the agents. */
  readonly agents: (file: string, columns: readonly AnswerRow[]) => Readonly<Record<string, string>>;
}

const fieldTypes: Readonly<Record<string, string>> = { VARCHAR: 'string', DOUBLE: 'float', FLOAT: 'float' };

/** A field for each column of ClickBench's file: `EventTime` places records; other times are numbers there, or texts of them. */
function hitsFields(columns: readonly AnswerRow[]): string {
  const fields = columns.map(([name, type]) => {
    const isTime = type!.startsWith('TIMESTAMP');
    return `  - { name: ${name!.toLowerCase()}, source: ${name!}, type: ${isTime ? 'time' : (fieldTypes[type!] ?? 'int')} }\n`;
  });
  return `fields:\n  - { name: eventtime, source: EventTime, type: time, unit: s }\n${fields
    .filter((field) => !field.includes('source: EventTime,'))
    .join('')}`;
}

const datasets: readonly Dataset[] = [
  {
    name: 'clickbench',
    questions: clickBenchQuestions,
    // In ClickBench's file, times are seconds and texts are bytes without a type.
    from: (file) =>
      `(SELECT * REPLACE (make_timestamp(EventTime * 1000000) AS EventTime) FROM read_parquet(${quoteText(file)}, binary_as_string = true))`,
    idColumn: 'UserID',
    agents: (file, columns) => ({
      in_place: `archive: { path: ${quoteText(file)}, format: parquet }\n${hitsFields(columns)}`,
      imported: `archive: { path: ${quoteText(file)}, format: parquet, mode: import }\n${hitsFields(columns)}`,
    }),
  },
  {
    name: 'jsonbench',
    questions: jsonBenchQuestions,
    from: (file) =>
      `(SELECT make_timestamp(time_us) AS time, did, kind, commit->>'$.operation' AS operation, commit->>'$.collection' AS collection, ` +
      `commit->'$.record' AS record FROM read_json(${quoteText(file)}, format = 'newline_delimited', ` +
      `columns = {time_us: 'BIGINT', did: 'VARCHAR', kind: 'VARCHAR', commit: 'JSON'}, maximum_object_size = 16777216))`,
    idColumn: 'did',
    // Times are stored in milliseconds, which are the first 13 digits of microseconds.
    agents: (file) => ({
      loaded: `fields:
  - { name: time, type: time, template: '{{slice .time_us 0 13}}' }
  - { name: did }
  - { name: kind }
  - { name: operation, source: commit.operation }
  - { name: collection, source: commit.collection }
  - { name: record, source: commit.record }
archive: { path: ${quoteText(file)}, format: json }
`,
    }),
  },
];

/** A side that answers questions. Returns what is compared. */
interface AskedSide {
  readonly name: string;
  readonly ask: (question: DatasetQuestion, id: string) => Promise<AnswerRow>;
}

/** Runs a command of ours. Returns how long it took, in seconds. Throws where it fails. */
function run(folder: string, ...args: string[]): number {
  const startMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [main, ...args], { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`logstrata ${args.join(' ')} ended with ${status}: ${stderr}`);
  return (performance.now() - startMs) / 1000;
}

/** Asks a server for an agent's answers. A refusal (`400`), as of too many values, is an answer in which both sides need not agree. */
function routeSide(server: ServerProcess, agent: string): AskedSide {
  return {
    name: `Logstrata, ${agent.replace('_', ' ')}`,
    ask: async (question, id) => {
      const origin = question.route === 'query' ? server.origin : new URL(server.console).origin;
      const query = question.query.replaceAll('{id}', encodeURIComponent(id));
      const response = await fetch(`${origin}/api/${question.route}/${agent}?${query}`);
      const body = await response.text();
      if (response.status === 400) throw new Refusal(body);
      if (response.status !== 200) throw new Error(`${question.title}: ${response.status} ${body}`);
      return comparedOf(question, body);
    },
  };
}

/** A question that a side refuses, because its answer exceeds a bound. */
class Refusal extends Error {}

function sqlSide(connection: DuckDbConnection, name: string, from: string): AskedSide {
  return {
    name,
    ask: async (question, id) => {
      const sql = question.sql.replaceAll('{from}', from).replaceAll('{id}', id.replaceAll("'", "''"));
      const texts = `SELECT COLUMNS(*)::VARCHAR FROM (${sql}) AS answer`;
      return comparedOfRows(question, (await connection.runAndReadAll(texts)).getRows() as AnswerRow[]);
    },
  };
}

interface Line extends FigureLine {
  readonly side: string;
  readonly firstMs: number;
  readonly median: number;
}

/** Asks all sides by turns. Throws a `Finding` where they disagree. */
async function askAll(
  question: DatasetQuestion,
  sides: readonly AskedSide[],
  id: string,
  repeat: number,
): Promise<Line[]> {
  const times = sides.map((): number[] => []);
  const refusals = sides.map(() => '');
  let expected: { of: string; answer: AnswerRow } | undefined;
  for (let turn = 0; turn <= repeat; turn++)
    for (const [i, side] of sides.entries()) {
      if (refusals[i] !== '') continue;
      const startMs = performance.now();
      try {
        const answer = await side.ask(question, id);
        times[i]!.push(performance.now() - startMs);
        expected ??= { of: side.name, answer };
        if (!isDeepStrictEqual(answer, expected.answer))
          throw new Finding(
            `${question.title}: ${side.name} answers ${answer.slice(0, 5).join(', ')}, ${expected.of} ${expected.answer.slice(0, 5).join(', ')}`,
          );
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        refusals[i] = error.message.trim();
      }
    }
  return sides.map(({ name }, i) => {
    const [firstMs = NaN, ...later] = times[i]!;
    const median = later.length === 0 ? NaN : spreadOf(later).median;
    const figure =
      refusals[i] === ''
        ? `${median.toFixed(1)} ms, first ${firstMs.toFixed(1)}`
        : `refused: ${refusals[i]!}`;
    return { what: `${question.id} ${question.title}`, side: name, target: '', figure, firstMs, median };
  });
}

async function measure(dataset: Dataset, file: string, repeat: number, folder: string): Promise<Line[]> {
  const { DuckDBInstance } = await importPeer<DuckDbModule>('duckdb', '@duckdb/node-api');
  const instance = await DuckDBInstance.create(join(folder, 'table.duckdb'), {});
  const connection = await instance.connect();
  const lines: Line[] = [];
  const tell = (side: string, seconds: number, bytes: number): void => {
    const figure = `${seconds.toFixed(1)} s, ${formatBytes(bytes)}`;
    lines.push({ what: 'making it ready', side, target: '', figure, firstMs: seconds * 1000, median: NaN });
  };
  try {
    const from = dataset.from(file);
    const describe = `SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM ${from})`;
    const columns = (await connection.runAndReadAll(describe)).getRows() as AnswerRow[];
    const startMs = performance.now();
    await connection.run(`CREATE TABLE rows AS SELECT * FROM ${from}`);
    await connection.run('CHECKPOINT');
    tell('DuckDB, its table', (performance.now() - startMs) / 1000, await folderBytes(folder));
    const [[id = ''] = []] = (
      await connection.runAndReadAll(
        `SELECT ${dataset.idColumn}::VARCHAR FROM rows WHERE ${dataset.idColumn} IS NOT NULL GROUP BY 1 ORDER BY count(*), 1 LIMIT 1`,
      )
    ).getRows();

    const agents = dataset.agents(file, columns);
    mkdirSync(join(folder, 'agents'));
    for (const [name, content] of Object.entries(agents)) {
      writeFileSync(join(folder, `agents/${name}.yaml`), content);
      const seconds = run(folder, name === 'in_place' ? 'index' : 'load', name);
      tell(
        `Logstrata, ${name.replace('_', ' ')}`,
        seconds,
        await folderBytes(join(folder, 'data/store', name)),
      );
    }
    const args = ['serve', '--listen', '127.0.0.1:0', '--console', '127.0.0.1:0'];
    const server = await ServerProcess.start(main, args, folder);
    try {
      const sides = [
        ...Object.keys(agents).map((name) => routeSide(server, name)),
        sqlSide(connection, 'DuckDB, the file', from),
        sqlSide(connection, 'DuckDB, its table', 'rows'),
      ];
      for (const question of dataset.questions) lines.push(...(await askAll(question, sides, id!, repeat)));
      return lines;
    } finally {
      await server.stop();
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

export const benchmark = figureBenchmark<Line>({
  name: 'datasets',
  usage,
  texts: ['clickbench', 'jsonbench', 'repeat'],
  columns: [
    ['question', ({ what }) => what],
    ['side', ({ side }) => side],
    ['median', ({ figure }) => figure],
  ],
  measure: async (values, isSmall, { folder }) => {
    const chosen = datasets.filter(({ name }) => textOf(values, name) !== undefined);
    if (chosen.length !== 1)
      throw new UsageFailure('one of --clickbench FILE and --jsonbench FILE is needed');
    const [dataset] = chosen as [Dataset];
    const file = resolve(textOf(values, dataset.name)!);
    if (!existsSync(file)) throw new UsageFailure(`--${dataset.name}: ${file} is not there`);
    const repeat = numberOf(values, 'repeat', isSmall ? 1 : 5, { max: 1000 });
    const lines = await measure(dataset, file, repeat, folder);
    const about = `${dataset.name} over ${basename(file)}, ${formatCount(repeat)} askings after the first`;
    return { about, settings: { dataset: dataset.name, repeat }, lines };
  },
});
