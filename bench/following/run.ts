import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { packageRoot } from '../../server/cli/options.js';
import { Child } from '../child.js';
import { ServerProcess } from '../http/server-process.js';
import { numberOf, figureBenchmark, type MeasuredLine } from '../runner.js';
import type { ClientsFigures, ClientsTask, LagFigures } from './clients.js';
import { connectedLine } from './connected-line.js';
import type { WriterFigures, WriterTask } from './writer.js';

const usage = `Usage: npm run bench -- following [options]

Clients that follow a log which gains 10,000 lines a second: a thousand of them the lines of a filter, 50 a second, and twenty all lines.
Says what was lost or repeated, through a server that is stopped and killed and connections that break, how late records came, and what
memory it took.

  --tiny          a few clients and lines: whether it works, not how fast
  --seconds N     how long lines are written (default: 60); the second half of it with restarts
  --out PATH      result, without ending (default: bench/results/following)
`;

/** The sizes of a run. */
interface Sizes {
  readonly some: number;
  readonly all: number;
  readonly linesPerSecond: number;
  /** One line in `step` matches the filter. */
  readonly step: number;
  readonly seconds: number;
  /** Seconds that the server runs before the clients start. */
  readonly aloneSeconds: number;
}

const full: Sizes = {
  some: 1000,
  all: 20,
  linesPerSecond: 10_000,
  step: 200,
  seconds: 60,
  aloneSeconds: 10,
};
const tiny: Sizes = { some: 20, all: 2, linesPerSecond: 200, step: 10, seconds: 3, aloneSeconds: 0.5 };

/** Milliseconds within which the last record must arrive after it was written. */
const catchUpMs = 120_000;
const sampleMs = 250;

const agentFile = `fields:
  - { name: time, type: time }
  - { name: n, type: int }
  - { name: matches, type: int }
  - { name: sent, type: int }
  - name: message
file:
  path: '../logs/app\\.log'
  format: json
`;

/** The largest resident set of a server until a promise settles. */
async function largestMemory(server: () => ServerProcess, until: Promise<unknown>): Promise<number> {
  let isOver = false;
  const settle = (): void => {
    isOver = true;
  };
  until.then(settle, settle);
  let largest = 0;
  while (!isOver) {
    const bytes = server().residentBytes;
    if (bytes > largest) largest = bytes;
    await delay(sampleMs);
  }
  return largest;
}

interface Measured {
  readonly clients: ClientsFigures;
  readonly lines: number;
  readonly aloneBytes: number;
  readonly followedBytes: number;
  /** CPU seconds of the server per second, in the time without restarts. */
  readonly cores: number;
  readonly restarts: number;
}

async function measure(folder: string, sizes: Sizes): Promise<Measured> {
  const { some, all, linesPerSecond, step, seconds, aloneSeconds } = sizes;
  for (const name of ['agents', 'logs']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'agents/app.yaml'), agentFile);
  const log = join(folder, 'logs/app.log');
  writeFileSync(log, '');
  const main = join(packageRoot(), 'dist/program/server/main.js');
  const start = (listen: string): Promise<ServerProcess> =>
    ServerProcess.start(main, ['serve', '--listen', listen, '--console', 'off'], folder);
  let server = await start('127.0.0.1:0');
  const { host } = new URL(server.origin);
  const writerTask: WriterTask = { log, linesPerSecond, seconds: seconds + aloneSeconds, step };
  const writer = new Child<WriterFigures>('following/writer', writerTask);
  let clients: Child<ClientsFigures> | undefined;
  try {
    const aloneBytes = await largestMemory(() => server, delay(aloneSeconds * 1000));
    const calmMs = (seconds / 2) * 1000;
    const records = Math.floor(linesPerSecond * (seconds + aloneSeconds));
    const signals = ['SIGKILL', 'SIGTERM'] as const;
    // The last record that matches the filter comes before the last of all.
    const clientsTask: ClientsTask = {
      url: `${server.origin}/api/query/app`,
      some,
      all,
      step,
      records: records - step,
      calmMs,
      breakMs: 1000,
      timeoutMs: seconds * 1000 + catchUpMs,
      restarts: signals.length,
    };
    clients = new Child<ClientsFigures>('following/clients', clientsTask);
    const cpuBefore = server.cpuSeconds;
    const followedBytes = await largestMemory(() => server, delay(calmMs));
    const cores = (server.cpuSeconds - cpuBefore) / (calmMs / 1000);
    for (const [i, signal] of signals.entries()) {
      await delay((seconds * 1000) / 8);
      await clients.prints(connectedLine(i + 1));
      await server.stop(signal);
      server = await start(host);
    }
    const { lines } = await writer.figures();
    return {
      clients: await clients.figures(),
      lines,
      aloneBytes,
      followedBytes,
      cores,
      restarts: signals.length,
    };
  } finally {
    writer.stop();
    clients?.stop();
    await server.stop();
  }
}

function lagLine(
  when: string,
  target: string,
  { records, medianMs, p99Ms, maxMs }: LagFigures,
): MeasuredLine {
  return {
    what: `from the line to the client, ${when}`,
    target,
    figure: `median ${medianMs} ms, p99 ${p99Ms} ms, longest ${maxMs} ms, of ${formatCount(records)} records`,
    values: { records, medianMs, p99Ms, maxMs },
  };
}

function linesOf({ clients, aloneBytes, followedBytes, cores, restarts }: Measured): MeasuredLine[] {
  const { lost, repeated, unfinished, connections, behind, lagging } = clients;
  const moreBytes = Math.max(0, followedBytes - aloneBytes);
  return [
    {
      what: `lost, repeated, not at the end, through ${restarts} restarts and ${formatCount(connections)} connections`,
      target: '0, 0, 0',
      figure: `${lost}, ${repeated}, ${unfinished}`,
      values: { lost, repeated, unfinished, connections },
    },
    {
      what: 'cut off as too slow, told of records behind',
      target: '',
      figure: `${lagging}, ${behind}`,
      values: { lagging, behind },
    },
    lagLine('without restarts', 'p99 ≤ 1 s', clients.calm),
    lagLine('with restarts, their time included', '', clients.later),
    {
      what: 'memory more than without clients',
      target: '≤ 300 MB',
      figure: `${formatBytes(moreBytes)} (${formatBytes(aloneBytes)} before)`,
      values: { aloneBytes, followedBytes },
    },
    {
      what: 'processor of the server, collecting included',
      target: '',
      figure: `${cores.toFixed(2)} cores`,
      values: { cores },
    },
  ];
}

export const benchmark = figureBenchmark({
  name: 'following',
  usage,
  texts: ['seconds'],
  measure: async (values, isSmall, { folder }) => {
    const usual = isSmall ? tiny : full;
    const sizes = { ...usual, seconds: numberOf(values, 'seconds', usual.seconds, { max: 3600 }) };
    const { some, all, linesPerSecond, step } = sizes;
    const about =
      `${formatCount(some)} clients of ${linesPerSecond / step} records a second each, ${all} of all ${formatCount(linesPerSecond)}, ` +
      'on the same machine';
    return { about, settings: sizes, lines: linesOf(await measure(folder, sizes)) };
  },
});
