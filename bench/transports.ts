import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../server/cli/options.js';
import { driveRequests } from './http/client.js';
import { ServerProcess } from './http/server-process.js';
import { spreadOf } from './spread.js';

const usage = `Usage: npm run --silent bench:transports -- [options]

Times the HTTP side alone: our server on each transport over a store that answers at once from memory, beside bare servers that send
the same bytes; then heads of 16 kB of one repeated character. Requests a second, bytes a second, and the server's own processor time,
medians of turns.

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

/** Lines of 500 bytes, like those of a web server. */
function jsonLines(bytes: number): Buffer {
  const line = `{"_cursor":"0000000000000001","message":"${'x'.repeat(456)}"}\n`;
  return Buffer.from(line.repeat(Math.max(1, Math.round(bytes / line.length))));
}

/** The requests of a turn. */
interface Work {
  readonly path: string;
  readonly connections: number;
  /** Size of the body that each response must have. */
  readonly bytes: number;
  /** Header lines of the request, each with its line end. */
  readonly headers: string;
}

interface Measured {
  readonly name: string;
  readonly server: ServerProcess;
  readonly rates: number[];
  readonly cpus: number[];
}

/** Starts a server of `kind` on each transport that is available. */
async function startSides(kind: 'bare' | 'route', file: string): Promise<Measured[]> {
  const script = kind === 'bare' ? 'dist/bench/http/bare-server.js' : 'dist/bench/http/memory-server.js';
  const sides: Measured[] = [];
  for (const transport of ['uws', 'node']) {
    const name = `${kind} ${transport}`;
    if (!name.includes(options.only)) continue;
    const server = await ServerProcess.start(join(packageRoot(), script), [transport, file]).catch(
      (error: unknown) => process.stderr.write(`${name}: ${String(error)}\n`),
    );
    if (server instanceof ServerProcess) sides.push({ name, server, rates: [], cpus: [] });
  }
  return sides;
}

/** Runs a turn of a side; the result is added unless it is a warm-up. */
async function takeTurn(side: Measured, work: Work, seconds: number, isWarmUp: boolean): Promise<void> {
  const { name, server, rates, cpus } = side;
  const before = server.busyMs;
  const url = new URL(name.startsWith('bare') ? '/0' : work.path, server.origin);
  const got = await driveRequests([url], work.connections, seconds, work.headers);
  if (got.bodyBytes !== got.requests * work.bytes) throw new Error('a body of another length');
  if (isWarmUp) return;
  rates.push((work.connections > 1 ? got.requests : got.bodyBytes / 1e6) / got.seconds);
  cpus.push(((server.busyMs - before) / got.requests) * 1e3);
}

async function measureBodies(): Promise<void> {
  const cases = [
    { name: 'short', body: jsonLines(options.small), connections: 64, path: '/api/query/web?limit=100' },
    { name: 'long', body: jsonLines(200_000_000), connections: 1, path: '/api/query/web?limit=400000' },
  ];
  for (const { name, body, connections, path } of cases) {
    const file = join(folder, name);
    writeFileSync(file, body);
    const sides = [...(await startSides('bare', file)), ...(await startSides('route', file))];
    const work = { connections, path, bytes: body.length, headers: '' };
    for (let turn = 0; turn <= options.turns; turn++)
      for (const side of sides) await takeTurn(side, work, options.seconds, turn === 0);
    process.stdout.write(`\n${body.length} bytes, ${connections} connections\n\n`);
    const unit = connections > 1 ? 'requests/s' : 'MB/s';
    process.stdout.write(`| server | ${unit} | CPU µs a request |\n|---|---|---|\n`);
    for (const side of sides) {
      const [rate, cpu] = [spreadOf(side.rates).median, spreadOf(side.cpus).median];
      process.stdout.write(`| ${side.name} | ${rate.toFixed(0)} | ${cpu.toFixed(1)} |\n`);
      await side.server.stop();
    }
  }
}

/** What the header is filled with: characters that a parser may process again and again. */
const repeated = {
  nothing: '',
  blanks: ' ',
  tabs: '\t',
  colons: ':',
  semicolons: ';',
  commas: ',',
  quotes: '"',
  letters: 'x',
};
const headerBytes = 16_000;

/**
 * Measures requests with a header of one repeated character: it must not cost our route more than a bare server, beyond the usual cost of a
 * request.
 */
async function measureHeads(): Promise<void> {
  const file = join(folder, 'head');
  const body = jsonLines(500);
  writeFileSync(file, body);
  const sides = [...(await startSides('bare', file)), ...(await startSides('route', file))];
  process.stdout.write(`\n${headerBytes} bytes of a header, CPU µs a request\n\n`);
  process.stdout.write(`| header of | ${sides.map(({ name }) => name).join(' | ')} |\n`);
  process.stdout.write(`|---|${sides.map(() => '---|').join('')}\n`);
  for (const [name, character] of Object.entries(repeated)) {
    const headers = character === '' ? '' : `X: a${character.repeat(headerBytes)}b\r\n`;
    const work = { connections: 8, path: '/api/query/web?limit=1', bytes: body.length, headers };
    for (const side of sides) side.cpus.length = 0;
    for (let turn = 0; turn <= options.turns; turn++)
      for (const side of sides) await takeTurn(side, work, options.seconds / 4, turn === 0);
    const medians = sides.map(({ cpus }) => spreadOf(cpus).median.toFixed(1));
    process.stdout.write(`| ${name} | ${medians.join(' | ')} |\n`);
  }
  for (const { server } of sides) await server.stop();
}

const options = readOptions(process.argv.slice(2));
const folder = mkdtempSync(join(tmpdir(), 'logstrata-bench-'));
try {
  await measureBodies();
  await measureHeads();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
