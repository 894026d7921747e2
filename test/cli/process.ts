import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';

export const root = join(import.meta.dirname, '../..');
/** The built command line. */
export const main = join(root, 'dist/program/server/main.js');

export interface Finished {
  /** Exit code; null if a signal ended the process. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves once the process has ended and its output was read. */
  readonly finished: Promise<Finished>;
  /** The standard output so far. */
  output(): string;
  /** Resolves once standard output or standard error has shown `text`; fails if the process ends before. */
  shows(text: string): Promise<void>;
}

function spawnCommand(
  folder: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Running {
  if (!existsSync(main))
    throw new Error('the command line is not built: run "npm run build" first ("npm test" does)');
  const child = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { ...process.env, ...environment },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined);
  const finished = once(child, 'close').then(([code, signal]: unknown[]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr,
  }));
  const shows = async (text: string): Promise<void> => {
    while (!`${stdout}\n${stderr}`.includes(text)) {
      if (child.exitCode !== null || child.signalCode !== null) {
        const { code } = await finished;
        throw new Error(`ended with ${code} before it showed "${text}":\n${stdout}\n${stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return { child, finished, shows, output: () => stdout };
}

/** Starts the built command line in `folder`. It is killed when the test ends, if it still runs. */
export function start(
  folder: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Running {
  const running = spawnCommand(folder, args, environment);
  onTestFinished(async () => {
    if (running.child.exitCode === null && running.child.signalCode === null) running.child.kill('SIGKILL');
    await running.finished;
  });
  return running;
}

/** Runs the built command line to its end. */
export function run(
  folder: string,
  args: readonly string[],
  input: string | Buffer = '',
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const { child, finished } = spawnCommand(folder, args, environment);
  child.stdin.end(input);
  return finished;
}

/** A new folder with the shipped agents and samples, as a new user has it. */
export function workFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'agents'));
  for (const name of ['nginx.yaml', 'app.yaml'])
    cpSync(join(root, 'agents', name), join(folder, 'agents', name));
  cpSync(join(root, 'data/samples'), join(folder, 'data/samples'), { recursive: true });
  return folder;
}

/** Ports that are asked for by number are searched from here up to those that the system assigns. */
const firstPort = 10_000;

/** The lowest port that the system assigns to connections and to servers on any port. */
function firstGivenPort(): number {
  const range = '/proc/sys/net/ipv4/ip_local_port_range';
  const first = existsSync(range) ? Number.parseInt(readFileSync(range, 'utf8')) : 0;
  return first > firstPort ? first : 32_768;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}

/**
 * Keeps other processes that ask for a port from getting this one until this process ends, also while no server uses it. Linux has names
 * for that which last as long as the process. Elsewhere it is only improbable that two processes get the same port.
 */
async function isReserved(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const holder = createServer().listen(`\0logstrata-test-port-${port}`).unref();
  return new Promise((resolve) =>
    holder.once('error', () => resolve(false)).once('listening', () => resolve(true)),
  );
}

/** A free port of this machine that nobody else gets by chance, before it is used or while a server restarts on it. */
export async function freePort(): Promise<number> {
  const end = firstGivenPort();
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * (end - firstPort));
    if ((await isReserved(port)) && (await isFree(port))) return port;
  }
}

/**
 * Sends a request on a connection of its own, because the server may close one that was idle for seconds just when it is used again. Does
 * not use `fetch`, which in Node 20 sometimes never settles if the server is killed at the wrong moment, with no connection left.
 */
export function fetchAlone(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  posted?: string,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const method = posted === undefined ? 'GET' : 'POST';
    const asked = request(url, { agent: false, headers, method }, (answer) => {
      const { statusCode: status = 0, headersDistinct } = answer;
      const lines = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      );
      resolve(new Response(Readable.toWeb(answer) as ReadableStream, { status, headers: lines }));
    });
    asked.on('error', reject).end(posted);
  });
}

/** The records of an answer in JSON Lines. */
export function recordsOf(text: string): Record<string, string | number | null>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, string | number | null>);
}
