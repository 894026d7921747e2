import { execFileSync, fork, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { caseCount } from '../cases.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { lockForWriting } from '../../engine/store/writer/writer-link.js';
import { main, root, run, start, workFolder } from '../cli/process.js';
import { describeUnless, notRoot } from '../needs.js';

const link = join(root, 'dist/engine/store/writer/writer-link.js');

/** Runs a program in a process of its own, which is killed with the test; returns it with its first message. */
async function program(text: string): Promise<{ child: ChildProcess; says: unknown }> {
  const script = join(await temporaryFolder(), 'program.mjs');
  writeFileSync(script, text);
  const child = fork(script);
  onTestFinished(() => void child.kill('SIGKILL'));
  const [says] = (await once(child, 'message')) as [unknown];
  return { child, says };
}

/** Makes a process started by root a process of `nobody`, who may not even be able to read this project. */
const becomeNobody = 'process.setgroups([]); process.setgid(65534); process.setuid(65534);';

describeUnless(notRoot, 'another user of the machine', () => {
  it('can neither take nor block the lock of a folder that it may only read', async () => {
    const folder = workFolder();
    const data = join(folder, 'data/store');
    mkdirSync(data, { recursive: true });
    for (const path of [folder, join(folder, 'data'), data]) chmodSync(path, 0o755);
    // All it can do before and while the lock is held: create every name of ours in the folder, and the name by device and inode.
    const squat = `
      import { createServer } from 'node:net';
      import { mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
      const data = ${JSON.stringify(data)};
      ${becomeNobody}
      const done = [];
      const attempt = (name, act) => { try { act(); done.push(name); } catch { /* as it should be */ } };
      const listen = (path) => new Promise((resolve) => {
        createServer().on('error', () => resolve(false)).listen({ path }, () => resolve(true));
      });
      const { dev, ino } = statSync(data, { bigint: true });
      await listen(('\\0logstrata-' + dev + '-' + ino).padEnd(108, '-'));
      attempt('folder', () => mkdirSync(data + '/.lock'));
      attempt('link', () => symlinkSync('.lock/00000000-serve-1', data + '/.writer'));
      attempt('removal', () => rmSync(data + '/.writer'));
      for (const name of ['.writer', '.lock/00000000-serve-1', '.lock/x'])
        if (await listen(data + '/' + name)) done.push(name);
      process.send(done.join());`;
    expect((await program(squat)).says).toBe('');
    expect(await run(folder, ['load', 'app', 'data/samples/app.log'])).toMatchObject({ code: 0 });
    const server = start(folder, ['serve', '--no-follow', '--listen', '127.0.0.1:0']);
    await server.shows('serving');
    expect((await program(squat)).says).toBe('');
    expect(await run(folder, ['load', 'nginx', 'data/samples/nginx.log'])).toMatchObject({ code: 0 });
  });

  it('is told that it has no access to the writing process, and reads when there is none', async () => {
    const folder = workFolder();
    const data = join(folder, 'data/store');
    mkdirSync(data, { recursive: true });
    for (const path of [folder, join(folder, 'data'), data]) chmodSync(path, 0o755);
    const ask = `
      import { connectToWriter } from ${JSON.stringify(link)};
      ${becomeNobody}
      process.send(await connectToWriter(${JSON.stringify(data)}).then(
        (writer) => writer === undefined ? 'none' : 'connected',
        ({ code, message }) => code + ': ' + message,
      ));`;
    expect((await program(ask)).says).toBe('none');
    const server = start(folder, ['serve', '--no-follow', '--listen', '127.0.0.1:0']);
    await server.shows('serving');
    expect((await program(ask)).says).toContain(
      `locked: process ${server.child.pid} (serve) writes to ${data}`,
    );
    server.child.kill('SIGTERM');
    await server.finished;
    expect((await program(ask)).says).toBe('none');
    // The owner of the data folder may use root's writer, too.
    for (const path of [data, join(data, '.lock')]) chownSync(path, 65_534, 65_534);
    const lock = await lockForWriting(data, 'load');
    expect((await program(ask)).says).toBe('connected');
    await lock!.release();
  });
});

it('the lock is never held by two of many processes that start, end and are killed', async () => {
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  mkdirSync(data);
  const marker = JSON.stringify(join(folder, 'held'));
  // A marker file that only one process can create reveals two holders. One in ten dies while it holds the lock, and leaves its socket.
  const starter = `
    import { openSync, closeSync, unlinkSync } from 'node:fs';
    import { setTimeout as delay } from 'node:timers/promises';
    import { lockForWriting } from ${JSON.stringify(link)};
    for (;;) {
      const lock = await lockForWriting(${JSON.stringify(data)}, 'load');
      if (lock === undefined) { await delay(Math.random() * 3); continue; }
      try { closeSync(openSync(${marker}, 'wx')); } catch { process.send('two hold it'); }
      await delay(Math.random() * 3);
      unlinkSync(${marker});
      if (Math.random() < 0.1) process.kill(process.pid, 'SIGKILL');
      process.send('held');
      await lock.release();
    }`;
  const script = join(folder, 'starter.mjs');
  writeFileSync(script, starter);
  const wanted = caseCount(40, 20_000);
  let held = 0;
  let kills = 0;
  const faults: unknown[] = [];
  const running = new Set<ChildProcess>();
  let isOver = false;
  const begin = (): void => {
    const child = fork(script);
    running.add(child);
    child.on('message', (message) => (message === 'held' ? held++ : faults.push(message)));
    child.on('exit', (code, signal) => {
      running.delete(child);
      if (isOver) return;
      if (signal === 'SIGKILL') kills++;
      else faults.push(`ended with ${code}`);
      begin();
    });
  };
  const end = async (): Promise<void> => {
    isOver = true;
    const ends = [...running].map((child) => once(child, 'exit'));
    for (const child of running) child.kill('SIGKILL');
    await Promise.all(ends);
  };
  onTestFinished(end);
  for (let i = 0; i < 4; i++) begin();
  while (faults.length === 0 && (held < wanted || kills === 0)) await delay(10);
  await end();
  expect(faults).toEqual([]);
  const { says } = await program(`
    import { lockForWriting } from ${JSON.stringify(link)};
    const lock = await lockForWriting(${JSON.stringify(data)}, 'serve');
    process.send(lock === undefined ? 'held' : 'holds');
    await new Promise(() => setInterval(() => {}, 1000));`);
  expect(says).toBe('holds');
  expect(readdirSync(join(data, '.lock'))).toEqual([
    readlinkSync(join(data, '.writer')).slice('.lock/'.length),
  ]);
});

/** Runs a command in another network namespace, as in a container; undefined where that is not allowed. */
const apart = [
  ['unshare', '--net'],
  ['unshare', '--net', '--map-root-user'],
].find(([command, ...args]) => spawnSync(command!, [...args, 'true']).status === 0);

const notApart = apart === undefined ? 'no network namespace may be made here' : null;

describeUnless(notApart, 'a process in another network namespace', () => {
  it('commits through the server that holds the lock of the folder', async () => {
    const folder = workFolder();
    const server = start(folder, ['serve', '--no-follow', '--listen', '127.0.0.1:0']);
    await server.shows('serving');
    const [command, ...args] = apart!;
    const lines = Array.from({ length: 5 }, (_, i) =>
      JSON.stringify({
        time: `2026-11-20T10:00:0${i}Z`,
        level: 'info',
        message: `of another container ${i}`,
      }),
    );
    const load = [...args, process.execPath, main, 'load', 'app', '-'];
    execFileSync(command!, load, {
      cwd: folder,
      input: `${lines.join('\n')}\n`,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const origin = /serving {2}(http:\/\/[^/]+)/.exec(server.output())![1]!;
    const answer = await fetch(`${origin}/api/query/app?message__prefix=of+another&limit=10`);
    expect((await answer.text()).trim().split('\n')).toHaveLength(5);
  });
});
