import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../server/cli/package-root.js';
import { loadUws } from '../../server/uws-binary.js';
import type { Question } from '../question.js';
import { compareLine, type ResultLine } from '../result.js';
import { rawQuery } from '../sides/logstrata.js';
import { spreadOf } from '../spread.js';
import { driveRequests } from './client.js';
import { measureBeside, measureLeaving } from './measure-beside.js';
import { ServerProcess } from './server-process.js';

const connectionsMany = 64;
const cursorZero = '0000000000000000';

/** What the HTTP lines need. */
export interface HttpPlan {
  /** Folder of our loaded store. */
  readonly storeFolder: string;
  /** For the bytes that the bare transport sends. */
  readonly scratchFolder: string;
  readonly newest: Question;
  /** Looks at every record. */
  readonly scan: Question;
  readonly bulkRows: number;
  readonly turns: number;
  readonly seconds: number;
}

interface HttpCase {
  readonly id: string;
  readonly title: string;
  readonly query: string;
  readonly connections: number;
  readonly unit: 'requests/s' | 'bytes/s';
  readonly target: string;
}

/**
 * Measures our server beside bare transports that send the same bytes, each in a process of its own, in turns. Only where
 * the bodies were found to be equal is anything timed.
 */
export async function measureHttp(plan: HttpPlan): Promise<ResultLine[]> {
  const cases: HttpCase[] = [
    {
      id: 'http-newest',
      title: `HTTP, ${connectionsMany} connections, newest 100`,
      query: rawQuery(plan.newest),
      connections: connectionsMany,
      unit: 'requests/s',
      target: '≥ 0.5 of the bare transport',
    },
    {
      id: 'http-bulk',
      title: `HTTP, one client, ${plan.bulkRows.toLocaleString('en-US')} records`,
      query: `after=${cursorZero}&limit=${plan.bulkRows}`,
      connections: 1,
      unit: 'bytes/s',
      target: '≥ 1 GB/s',
    },
  ];
  const root = packageRoot();
  const server = await ServerProcess.start(join(root, 'dist/server/main.js'), [
    'serve',
    ...['--listen', '127.0.0.1:0', '--data', plan.storeFolder, '--agents', join(root, 'bench/agents')],
  ]);
  try {
    const lines: ResultLine[] = [];
    for (const each of cases) lines.push(await measureCase(each, server, plan));
    const [newest, bulk] = cases.map(({ query }) => pathOf(query)) as [string, string];
    const scan = pathOf(rawQuery(plan.scan));
    const { turns, seconds } = plan;
    const beside = { newest, bulk, scan, turns, seconds };
    return [...lines, await measureBeside(server, beside), ...(await measureLeaving(server, beside))];
  } finally {
    await server.stop();
  }
}

function pathOf(query: string): string {
  return `/api/query/web?${query}`;
}

/** Without a text of the body, which could be longer than a text may be. */
function countLines(body: Buffer): number {
  let lines = 0;
  for (let at = body.indexOf(0x0a); at >= 0; at = body.indexOf(0x0a, at + 1)) lines++;
  return lines;
}

async function bodyOf(url: URL): Promise<Buffer> {
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`${url.href} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** All that could be the fastest; uWebSockets.js where it has a binary. */
async function startBareServers(bodyPath: string): Promise<ServerProcess[]> {
  const kinds = loadUws() === undefined ? ['net'] : ['net', 'uws'];
  const script = join(packageRoot(), 'dist/bench/http/bare-server.js');
  return Promise.all(kinds.map((kind) => ServerProcess.start(script, [kind, bodyPath])));
}

async function measureCase(wanted: HttpCase, server: ServerProcess, plan: HttpPlan): Promise<ResultLine> {
  const ours = new URL(pathOf(wanted.query), server.origin);
  const body = await bodyOf(ours);
  const bodyPath = join(plan.scratchFolder, `${wanted.id}.jsonl`);
  writeFileSync(bodyPath, body);
  const bareServers = await startBareServers(bodyPath);
  try {
    const figures: [string, URL, number[]][] = [['logstrata', ours, []]];
    for (const { origin, transport } of bareServers) {
      const bare = new URL('/', origin);
      if (!body.equals(await bodyOf(bare))) throw new Error('the bare transport sends other bytes');
      figures.push([`bare ${transport}`, bare, []]);
    }
    for (let turn = 0; turn < plan.turns; turn++) {
      for (let i = 0; i < figures.length; i++) {
        const [, url, rates] = figures[(i + turn) % figures.length]!;
        const { requests, bodyBytes, seconds } = await driveRequests(url, wanted.connections, plan.seconds);
        if (bodyBytes !== requests * body.length) throw new Error(`${url.href} sent bodies of other lengths`);
        rates.push((wanted.unit === 'bytes/s' ? bodyBytes : requests) / seconds);
      }
    }
    return compareLine({
      id: wanted.id,
      title: wanted.title,
      set: 'web',
      unit: wanted.unit,
      isLowerBetter: false,
      ours: 'logstrata',
      figures: Object.fromEntries(figures.map(([name, , rates]) => [name, spreadOf(rates)])),
      answer: {
        rows: countLines(body),
        bytes: body.length,
        digest: createHash('sha256').update(body).digest('hex').slice(0, 32),
      },
      target: wanted.target,
    });
  } finally {
    for (const bareServer of bareServers) await bareServer.stop();
    rmSync(bodyPath, { force: true });
  }
}
