import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { packageRoot } from '../../server/cli/options.js';
import { generateLines } from '../generated-lines.js';
import { ServerProcess } from '../http/server-process.js';

const main = join(packageRoot(), 'dist/program/server/main.js');

/** The records of an agent. */
export interface StoredLog {
  readonly agent: string;
  /** Content of the agent's file. */
  readonly yaml: string;
  readonly lines: Iterable<string>;
}

/** Records of an application over thirty days. */
export function appLog(records: number): StoredLog {
  const options = { rows: records, days: 30, seed: 1, startMs: Date.UTC(2026, 9, 20) };
  const yaml = readFileSync(join(packageRoot(), 'bench/agents/app.yaml'), 'utf8');
  return { agent: 'app', yaml, lines: generateLines('app', options)! };
}

/** Stores records in a folder, unless there are records of the agent already. */
export async function makeStore(folder: string, { agent, yaml, lines }: StoredLog): Promise<void> {
  if (existsSync(join(folder, 'data/store', agent))) return;
  mkdirSync(join(folder, 'agents'), { recursive: true });
  writeFileSync(join(folder, `agents/${agent}.yaml`), yaml);
  const load = spawn(process.execPath, [main, 'load', agent, '-'], {
    cwd: folder,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const ended = once(load, 'exit');
  await pipeline(Readable.from(inPieces(lines)), load.stdin);
  const [code] = await ended;
  if (code !== 0) throw new Error(`loading ended with ${String(code)}`);
}

/** Joins lines to larger pieces: writing them one by one would take a million writes. */
function* inPieces(lines: Iterable<string>): Generator<string> {
  let piece: string[] = [];
  for (const line of lines) {
    piece.push(line);
    if (piece.length < 1000) continue;
    yield `${piece.join('\n')}\n`;
    piece = [];
  }
  if (piece.length > 0) yield `${piece.join('\n')}\n`;
}

/** Starts a server with a console on a store. By default it follows no logs. */
export function serveStore(
  folder: string,
  more: readonly string[] = ['--no-follow'],
): Promise<ServerProcess> {
  const args = ['serve', ...more, '--listen', '127.0.0.1:0', '--console', '127.0.0.1:0'];
  return ServerProcess.start(main, args, folder);
}

/** Makes a token for a store, so that its server asks for tokens. */
export function askForToken(folder: string): void {
  const made = spawnSync(process.execPath, [main, 'token', 'new', '--name', 'viewer'], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (made.status !== 0) throw new Error(made.stderr);
}
