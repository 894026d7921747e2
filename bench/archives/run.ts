import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { packageRoot } from '../../server/cli/options.js';
import { ServerProcess } from '../http/server-process.js';
import { numberOf, figureBenchmark, type MeasuredLine } from '../runner.js';
import { folderBytes } from '../sides/folder-size.js';
import { spreadOf } from '../spread.js';
import { makeFiles, type MadeFiles } from './made-files.js';

const usage = `Usage: npm run bench -- archives [options]

How an archive of very many files does that are answered from where they lie: Parquet that DuckDB writes, in folders day=…. Measures how long it
takes to attach and index them, until a server answers, and for the newest records and an id. Needs DuckDB: node bench/peers/install.mjs duckdb

  --tiny        a few files: whether it works, not how fast
  --files N     files (default: 10000)
  --rows N      rows of each (default: 10000; all of it takes 5 GB of disk then)
  --out PATH    result, without ending (default: bench/results/archives)
`;

const main = join(packageRoot(), 'dist/program/server/main.js');
const filesOfDay = 30;
const questions = 50;

interface Attached {
  readonly seconds: number;
  readonly indexBytes: number;
}

/** Attaches and indexes all files with one command. */
async function attach(folder: string, files: number): Promise<Attached> {
  const startMs = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'index', 'lake', '--json'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const seconds = (performance.now() - startMs) / 1000;
  if (status !== 0) throw new Error(`indexing ended with ${status}: ${stderr}`);
  const { attached, indexed } = JSON.parse(stdout) as { attached: number; indexed: number };
  if (attached !== files || indexed !== files) throw new Error(`${attached} attached, ${indexed} indexed`);
  return { seconds, indexBytes: await folderBytes(join(folder, 'data/store/lake/attached')) };
}

/** Milliseconds from the request to the end of the response, which must have `records` records. */
async function ask(server: ServerProcess, query: string, records: number): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`${server.origin}/api/query/lake?${query}`);
  const text = await response.text();
  const elapsedMs = performance.now() - startMs;
  const lines = text.split('\n').length - 1;
  if (response.status !== 200 || lines !== records)
    throw new Error(`${query}: ${response.status}, ${lines} records: ${text.slice(0, 300)}`);
  return elapsedMs;
}

interface Served {
  /** From the start of the process until it prints its address. */
  readonly readyMs: number;
  readonly firstMs: number;
  readonly newestMs: readonly number[];
  readonly firstIdMs: number;
  readonly idMs: readonly number[];
  readonly residentBytes: number;
}

async function serve(folder: string, id: string): Promise<Served> {
  const startMs = performance.now();
  const args = ['serve', '--listen', '127.0.0.1:0', '--console', 'off'];
  const server = await ServerProcess.start(main, args, folder);
  const readyMs = performance.now() - startMs;
  try {
    const newest = (): Promise<number> => ask(server, 'limit=100', 100);
    const needle = (): Promise<number> => ask(server, `request_id__exact=${id}`, 1);
    const firstMs = await newest();
    const newestMs: number[] = [];
    for (let i = 0; i < questions; i++) newestMs.push(await newest());
    const firstIdMs = await needle();
    const idMs: number[] = [];
    for (let i = 0; i < questions; i++) idMs.push(await needle());
    return { readyMs, firstMs, newestMs, firstIdMs, idMs, residentBytes: server.residentBytes };
  } finally {
    await server.stop();
  }
}

async function measure(folder: string, made: MadeFiles, serverStarts: number): Promise<MeasuredLine[]> {
  const lake = join(folder, 'lake');
  mkdirSync(join(folder, 'agents'), { recursive: true });
  writeFileSync(join(folder, 'agents/lake.yaml'), "archive: { path: '../lake/**/*.parquet' }\n");
  const id = await makeFiles(lake, made);
  const bytes = await folderBytes(lake);
  const { seconds, indexBytes } = await attach(folder, made.files);
  const served: Served[] = [];
  for (let i = 0; i < serverStarts; i++) served.push(await serve(folder, id));
  const line = (what: string, target: string, read: (one: Served) => readonly number[]): MeasuredLine => {
    const { median, lower, upper, count } = spreadOf(served.flatMap(read));
    const figure = `${median.toFixed(2)} ms (half of ${count} within ${lower.toFixed(2)} – ${upper.toFixed(2)})`;
    return { what, target, figure, values: { median, lower, upper, count } };
  };
  return [
    {
      what: `attaching and indexing ${formatBytes(bytes)} of files`,
      target: '',
      figure: `${seconds.toFixed(1)} s; the index and the lists take ${formatBytes(indexBytes)}, ${((100 * indexBytes) / bytes).toFixed(1)} %`,
      values: { seconds, bytes, indexBytes },
    },
    line('from the start of a server until it serves', '≤ 2,000 ms', ({ readyMs }) => [readyMs]),
    line('newest 100 over HTTP, the first answer', '', ({ firstMs }) => [firstMs]),
    line('newest 100 over HTTP', '≤ 5 ms', ({ newestMs }) => newestMs),
    line('an id of the oldest file, the first answer', '', ({ firstIdMs }) => [firstIdMs]),
    line('an id of the oldest file', '', ({ idMs }) => idMs),
    {
      what: 'memory of the server in the end',
      target: '',
      figure: formatBytes(Math.max(...served.map(({ residentBytes }) => residentBytes))),
      values: { residentBytes: Math.max(...served.map(({ residentBytes }) => residentBytes)) },
    },
  ];
}

export const benchmark = figureBenchmark({
  name: 'archives',
  usage,
  texts: ['files', 'rows'],
  measure: async (values, isSmall, { folder }) => {
    const files = numberOf(values, 'files', isSmall ? 6 : 10_000, { max: 1e6 });
    const rowsOfFile = numberOf(values, 'rows', isSmall ? 40 : 10_000, { max: 1e7 });
    const made = { files, rowsOfFile, filesOfDay };
    const about = `${formatCount(files)} Parquet files of DuckDB with ${formatCount(files * rowsOfFile)} rows`;
    return { about, settings: made, lines: await measure(folder, made, isSmall ? 1 : 5) };
  },
});
