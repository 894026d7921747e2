#!/usr/bin/env node
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../server/cli/package-root.js';
import { driveRequests } from './http/client.js';
import { ServerProcess } from './http/server-process.js';
import { spreadOf } from './spread.js';

const usage = `Usage: npm run --silent bench:transports -- [options]

Times the HTTP side alone: our server on each transport over a store that answers at once from memory, beside bare servers that send
the same bytes. Requests a second, bytes a second, and the server's own processor time, medians of turns.

  --seconds N     of one turn (default 2)
  --turns N       of each server (default 5)
  --only TEXT     only servers with TEXT in their name
  --small BYTES   of the short answer (default 50000)
`;

interface Options {
  seconds: number;
  turns: number;
  only: string;
  small: number;
}

function fail(message: string): never {
  process.stderr.write(`transports: ${message}\n\n${usage}`);
  process.exit(2);
}

function readOptions(args: readonly string[]): Options {
  const options: Options = { seconds: 2, turns: 5, only: '', small: 50_000 };
  for (let i = 0; i < args.length; i += 2) {
    const value = args[i + 1] ?? fail(`${args[i]} needs a value`);
    if (args[i] === '--only') options.only = value;
    else if (args[i] === '--seconds') options.seconds = Number(value);
    else if (args[i] === '--turns') options.turns = Number(value);
    else if (args[i] === '--small') options.small = Number(value);
    else fail(`unknown option ${args[i]}`);
  }
  const { seconds, turns, small } = options;
  if (!(seconds > 0 && Number.isInteger(turns) && turns > 0 && small > 0)) fail('numbers must be above 0');
  return options;
}

/** Lines of 500 bytes, as those of a web server. */
function jsonLines(bytes: number): Buffer {
  const line = `{"_cursor":"0000000000000001","message":"${'x'.repeat(456)}"}\n`;
  return Buffer.from(line.repeat(Math.max(1, Math.round(bytes / line.length))));
}

interface Measured {
  readonly name: string;
  readonly server: ServerProcess;
  readonly rates: number[];
  readonly cpus: number[];
}

const options = readOptions(process.argv.slice(2));
const folder = mkdtempSync(join(tmpdir(), 'logstrata-bench-'));
const cases = [
  { name: 'short', body: jsonLines(options.small), connections: 64, path: '/api/query/web?limit=100' },
  { name: 'long', body: jsonLines(200_000_000), connections: 1, path: '/api/query/web?limit=400000' },
];
try {
  for (const { name, body, connections, path } of cases) {
    const file = join(folder, name);
    writeFileSync(file, body);
    const sides: Measured[] = [];
    for (const [kind, script] of [
      ['bare', 'dist/bench/http/bare-server.js'],
      ['route', 'dist/bench/http/memory-server.js'],
    ] as const) {
      for (const transport of ['uws', 'node']) {
        const side = `${kind} ${transport}`;
        if (!side.includes(options.only)) continue;
        const server = await ServerProcess.start(join(packageRoot(), script), [transport, file]).catch(
          (error: unknown) => process.stderr.write(`${side}: ${String(error)}\n`),
        );
        if (server instanceof ServerProcess) sides.push({ name: side, server, rates: [], cpus: [] });
      }
    }
    for (let turn = 0; turn <= options.turns; turn++) {
      for (const { name, server, rates, cpus } of sides) {
        const before = server.cpuSeconds;
        const url = new URL(name.startsWith('bare') ? '/0' : path, server.origin);
        const got = await driveRequests([url], connections, options.seconds);
        if (got.bodyBytes !== got.requests * body.length) throw new Error('a body of another length');
        // The first turn warms up.
        if (turn === 0) continue;
        rates.push((connections > 1 ? got.requests : got.bodyBytes / 1e6) / got.seconds);
        cpus.push(((server.cpuSeconds - before) / got.requests) * 1e6);
      }
    }
    process.stdout.write(`\n${body.length} bytes, ${connections} connections\n\n`);
    process.stdout.write(
      `| server | ${connections > 1 ? 'requests/s' : 'MB/s'} | CPU µs a request |\n|---|---|---|\n`,
    );
    for (const side of sides) {
      process.stdout.write(
        `| ${side.name} | ${spreadOf(side.rates).median.toFixed(0)} | ${spreadOf(side.cpus).median.toFixed(1)} |\n`,
      );
      await side.server.stop();
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
