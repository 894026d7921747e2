import { execFileSync, fork, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectInFolder, listenInFolder, type FolderSocket } from '../../engine/storage/folder-socket.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { main, start, workFolder } from '../cli/process.js';

/** Those that only look whether somebody listens leave without a word. */
function greet(connection: Socket): void {
  connection.on('error', () => {});
  connection.end('here');
}

async function listenAt(folder: string): Promise<FolderSocket> {
  const socket = await listenInFolder(folder, greet);
  if (socket === null || socket === 'held') throw new Error(`the socket is ${String(socket)}`);
  return socket;
}

async function answerIn(folder: string): Promise<string | undefined> {
  const connection = await connectInFolder(folder);
  if (connection === undefined) return undefined;
  let text = '';
  for await (const piece of connection) text += String(piece);
  return text;
}

describe.runIf(process.platform === 'linux')('the socket in a data folder', () => {
  it.each([
    ['short', ''],
    ['longer than an address', `${'long'.repeat(20)}/${'name'.repeat(20)}`],
  ])('is held by one and gone when that closes it, where the path is %s', async (_, below) => {
    const folder = join(await temporaryFolder(), below);
    await mkdir(folder, { recursive: true });
    expect(await answerIn(folder)).toBeUndefined();
    const socket = await listenAt(folder);
    expect(await answerIn(folder)).toBe('here');
    expect(await listenInFolder(folder, () => {})).toBe('held');
    expect(await answerIn(folder)).toBe('here');
    expect(readdirSync(folder)).toEqual(['.writer.sock']);
    await socket.close();
    expect(readdirSync(folder)).toEqual([]);
    await (await listenAt(folder)).close();
  });

  it('is taken by exactly one of those that find it left by a process that was killed', async () => {
    const folder = await temporaryFolder();
    const script = join(await temporaryFolder(), 'holder.mjs');
    const path = JSON.stringify(join(folder, '.writer.sock'));
    await writeFile(
      script,
      `import { createServer } from 'node:net';
       createServer((socket) => socket.on('error', () => {})).listen({ path: ${path} }, () => process.send('listening'));`,
    );
    const child = fork(script);
    await new Promise((resolve) => child.once('message', resolve));
    expect(await listenInFolder(folder, () => {})).toBe('held');
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    expect(existsSync(join(folder, '.writer.sock'))).toBe(true);
    expect(await answerIn(folder)).toBeUndefined();
    const taken = await Promise.all(Array.from({ length: 8 }, () => listenInFolder(folder, greet)));
    const holders = taken.filter((socket) => socket !== 'held' && socket !== null);
    expect(holders).toHaveLength(1);
    expect(taken.filter((socket) => socket === 'held')).toHaveLength(7);
    expect(await answerIn(folder)).toBe('here');
    expect(readdirSync(folder)).toEqual(['.writer.sock']);
    await holders[0]!.close();
  });

  it('is done without where there is no folder to make it in', async () => {
    const folder = await temporaryFolder();
    rmSync(folder, { recursive: true });
    expect(await listenInFolder(folder, () => {})).toBeNull();
    expect(await connectInFolder(folder)).toBeUndefined();
  });
});

/** What puts a command into another network namespace, as a container is in; null where that is not allowed. */
const apart = [
  ['unshare', '--net'],
  ['unshare', '--net', '--map-root-user'],
].find(([program, ...args]) => spawnSync(program!, [...args, 'true']).status === 0);

describe.runIf(apart !== undefined)('a process in another network namespace', () => {
  it('commits through the server that has the folder', async () => {
    const folder = workFolder();
    const server = start(folder, ['serve', '--listen', '127.0.0.1:0']);
    await server.shows('serving');
    const [program, ...args] = apart!;
    const lines = Array.from({ length: 5 }, (_, i) =>
      JSON.stringify({
        time: `2026-11-20T10:00:0${i}Z`,
        level: 'info',
        message: `of another container ${i}`,
      }),
    );
    const load = [...args, process.execPath, main, 'load', 'app', '-'];
    execFileSync(program!, load, {
      cwd: folder,
      input: `${lines.join('\n')}\n`,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const origin = /http:\/\/[^/]+/.exec(server.output())![0];
    const answer = await fetch(`${origin}/api/query/app?message__prefix=of+another&limit=10`);
    expect((await answer.text()).trim().split('\n')).toHaveLength(5);
  });
});
