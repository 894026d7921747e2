import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../server/cli/options.js';
import { loadUws } from '../../server/http/uws-binary.js';
import type { Question } from '../question.js';
import { compareLine, type ResultLine } from '../result.js';
import { rawQuery } from '../sides/logstrata.js';
import { spreadOf } from '../spread.js';
import { driveRequests } from './client.js';
import { measureBeside, measureLeaving } from './measure-beside.js';
import { ServerProcess } from './server-process.js';

const connectionsMany = 64;
const cursorZero = '0000000000000000';

/**
 * The configuration of the server. The days of the set are old enough for ZSTD, so the server would rewrite them during the measurement,
 * which takes half of a thread and would be counted as work for requests.
 */
const serverConfig = 'storage:\n  zstd_after: never\n';

/** What is needed to measure HTTP. */
export interface HttpPlan {
  /** Folder of our loaded store. */
  readonly storeFolder: string;
  /** Folder for the files that the bare servers send. */
  readonly scratchFolder: string;
  readonly newest: Question;
  /** A question that examines every record. */
  readonly scan: Question;
  readonly bulkRows: number;
  readonly turns: number;
  readonly seconds: number;
}

interface HttpCase {
  readonly id: string;
  readonly title: string;
  /** The requested paths; each connection requests one of them. */
  readonly paths: readonly string[];
  readonly connections: number;
  readonly unit: 'requests/s' | 'bytes/s';
  readonly target?: string;
}

/**
 * Measures our server and bare servers that send the same bytes, each in a process of its own, in turns. Times are only measured after the
 * bodies were found to be equal.
 */
export async function measureHttp(plan: HttpPlan): Promise<ResultLine[]> {
  const root = packageRoot();
  const config = join(plan.scratchFolder, 'http.yaml');
  writeFileSync(config, serverConfig);
  const server = await ServerProcess.start(join(root, 'dist/program/server/main.js'), [
    'serve',
    ...['--listen', '127.0.0.1:0', '--data', plan.storeFolder, '--agents', join(root, 'bench/agents')],
    ...['--config', config],
  ]);
  try {
    const newest = pathOf(rawQuery(plan.newest));
    const bulk = pathOf(`after=${cursorZero}&limit=${plan.bulkRows}`);
    const many = { connections: connectionsMany, unit: 'requests/s' } as const;
    const cases: HttpCase[] = [
      {
        ...many,
        id: 'http-newest',
        title: `HTTP, ${connectionsMany} connections, newest 100`,
        paths: [newest],
        target: '≥ 0.5 of the bare transport',
      },
      {
        ...many,
        id: 'http-pages',
        title: `HTTP, ${connectionsMany} connections, each another page of 100`,
        paths: await lastPages(server, newest, connectionsMany),
      },
      {
        id: 'http-bulk',
        title: `HTTP, one client, ${plan.bulkRows.toLocaleString('en-US')} records`,
        paths: [bulk],
        connections: 1,
        unit: 'bytes/s',
        target: '≥ 1 GB/s',
      },
    ];
    const lines: ResultLine[] = [];
    for (const each of cases) lines.push(await measureCase(each, server, plan));
    const scan = pathOf(rawQuery(plan.scan));
    const { turns, seconds } = plan;
    const beside = { newest, bulk, scan, turns, seconds };
    return [...lines, await measureBeside(server, beside), ...(await measureLeaving(server, beside))];
  } finally {
    await server.stop();
    rmSync(config, { force: true });
  }
}

/** The paths of the newest page, the page before it and so on: `count` of them, or as many as there are. */
async function lastPages(server: ServerProcess, newest: string, count: number): Promise<string[]> {
  const paths: string[] = [];
  for (let path = newest; paths.length < count;) {
    const body = await bodyOf(new URL(path, server.origin));
    if (body.length === 0) break;
    paths.push(path);
    const first = JSON.parse(body.toString('utf8', 0, body.indexOf(lineEnd))) as { readonly _cursor: string };
    path = `${newest}&before=${first._cursor}`;
  }
  return paths;
}

function pathOf(query: string): string {
  return `/api/query/web?${query}`;
}

const lineEnd = 0x0a;

/** Counts lines without decoding the body, which may exceed the maximum length of a string. */
function countLines(body: Buffer): number {
  let lines = 0;
  for (let at = body.indexOf(lineEnd); at >= 0; at = body.indexOf(lineEnd, at + 1)) lines++;
  return lines;
}

async function bodyOf(url: URL): Promise<Buffer> {
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`${url.href} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Starts the bare servers: Node's, and uWebSockets.js where it has a binary. */
async function startBareServers(bodyPaths: readonly string[]): Promise<ServerProcess[]> {
  const kinds = 'uws' in loadUws() ? ['node', 'uws'] : ['node'];
  const script = join(packageRoot(), 'dist/bench/http/bare-server.js');
  return Promise.all(kinds.map((kind) => ServerProcess.start(script, [kind, ...bodyPaths])));
}

/** A server, and its rate in each turn. */
interface MeasuredServer {
  readonly name: string;
  readonly urls: readonly URL[];
  readonly rates: number[];
}

async function measureCase(wanted: HttpCase, server: ServerProcess, plan: HttpPlan): Promise<ResultLine> {
  const ours = wanted.paths.map((path) => new URL(path, server.origin));
  const bodies: Buffer[] = [];
  for (const url of ours) bodies.push(await bodyOf(url));
  const bodyPaths = bodies.map((_, i) => join(plan.scratchFolder, `${wanted.id}-${i}.jsonl`));
  bodies.forEach((body, i) => writeFileSync(bodyPaths[i]!, body));
  const bareServers = await startBareServers(bodyPaths);
  try {
    const servers: MeasuredServer[] = [{ name: 'logstrata', urls: ours, rates: [] }];
    for (const { origin, transport } of bareServers) {
      const urls = bodies.map((_, i) => new URL(`/${i}`, origin));
      for (const [i, body] of bodies.entries())
        if (!body.equals(await bodyOf(urls[i]!))) throw new Error('the bare transport sends other bytes');
      servers.push({ name: `bare ${transport}`, urls, rates: [] });
    }
    for (let turn = 0; turn < plan.turns; turn++) {
      for (let i = 0; i < servers.length; i++)
        await drive(servers[(i + turn) % servers.length]!, bodies, wanted, plan.seconds);
    }
    return compareLine({
      id: wanted.id,
      title: wanted.title,
      set: 'web',
      unit: wanted.unit,
      isLowerBetter: false,
      ours: 'logstrata',
      figures: Object.fromEntries(servers.map(({ name, rates }) => [name, spreadOf(rates)])),
      answer: answerOf(bodies),
      ...(wanted.target === undefined ? {} : { target: wanted.target }),
    });
  } finally {
    for (const bareServer of bareServers) await bareServer.stop();
    for (const bodyPath of bodyPaths) rmSync(bodyPath, { force: true });
  }
}

/** Runs one turn of a server. */
async function drive(
  { name, urls, rates }: MeasuredServer,
  bodies: readonly Buffer[],
  { connections, unit }: HttpCase,
  forSeconds: number,
): Promise<void> {
  const figures = await driveRequests(urls, connections, forSeconds);
  for (const [i, { requests, bodyBytes }] of figures.connections.entries())
    if (bodyBytes !== requests * bodies[i % bodies.length]!.length)
      throw new Error(`${name} sent bodies of other lengths`);
  rates.push((unit === 'bytes/s' ? figures.bodyBytes : figures.requests) / figures.seconds);
}

/** All bodies as one answer. */
function answerOf(bodies: readonly Buffer[]): NonNullable<ResultLine['answer']> {
  const hash = createHash('sha256');
  for (const body of bodies) hash.update(body);
  return {
    rows: bodies.reduce((sum, body) => sum + countLines(body), 0),
    bytes: bodies.reduce((sum, body) => sum + body.length, 0),
    digest: hash.digest('hex').slice(0, 32),
  };
}
