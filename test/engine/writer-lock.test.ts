import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { connect as connectHttp, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { caseCount } from '../cases.js';
import { DamageError, LogstrataError } from '../../engine/core/errors.js';
import { batchFromRows } from '../model/rows.js';
import { makeSchema } from '../../engine/core/schema.js';
import { columnValue } from '../../engine/columns/column.js';
import { decodeBatch, encodeBatch } from '../../engine/store/hot/batch-codec.js';
import type { ChannelOperations } from '../../engine/store/writer/writer-channel.js';
import { connectToWriter, lockForWriting, type WriterLink } from '../../engine/store/writer/writer-link.js';
import { root } from '../cli/process.js';

const scratch: string[] = [];

async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-lock-'));
  scratch.push(folder);
  return folder;
}

afterAll(async () => {
  for (const folder of scratch) await rm(folder, { recursive: true, force: true });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5);
}

/** The files in the lock's folder, and the process that is named as the holder. */
function leftIn(folder: string): string[] {
  return [
    ...readdirSync(join(folder, '.lock')),
    ...(readdirSync(folder).includes('.writer') ? ['.writer'] : []),
  ];
}

/** A process that holds the lock until it is killed. */
async function holderIn(folder: string): Promise<ChildProcess> {
  const script = join(await freshFolder(), 'holder.mjs');
  await writeFile(
    script,
    `import { lockForWriting } from ${JSON.stringify(join(root, 'dist/engine/store/writer/writer-link.js'))};
     const lock = await lockForWriting(${JSON.stringify(folder)}, 'serve');
     setInterval(() => {}, 1000);
     process.send(lock === undefined ? 'held' : 'holds');`,
  );
  const child = fork(script);
  expect((await once(child, 'message'))[0]).toBe('holds');
  return child;
}

// The other platforms have no /proc to shorten a long path with.
const platforms: readonly NodeJS.Platform[] =
  process.platform === 'linux' ? ['linux', 'darwin'] : [process.platform];
const places = platforms.flatMap((platform) => [
  { platform, length: 'short', below: '' },
  {
    platform,
    length: 'longer than the address of a socket',
    below: `${'long'.repeat(20)}/${'name'.repeat(20)}`,
  },
]);

describe.each(places)('the writer lock as on $platform, where the path is $length', ({ platform, below }) => {
  it('is held by one process, whatever path names the folder, and free after its release', async () => {
    const base = await freshFolder();
    const folder = join(base, below);
    await mkdir(folder, { recursive: true });
    const alias = `${base}-alias`;
    scratch.push(alias);
    await symlink(folder, alias);
    expect(await connectToWriter(folder, platform)).toBeUndefined();
    const lock = await lockForWriting(folder, 'serve', platform);
    expect(lock).toBeDefined();
    expect(await lockForWriting(folder, 'load', platform)).toBeUndefined();
    expect(await lockForWriting(alias, 'load', platform)).toBeUndefined();
    const other = await lockForWriting(await freshFolder(), 'load', platform);
    expect(other).toBeDefined();
    await other!.release();
    lock!.serve({});
    const link = await connectToWriter(alias, platform);
    expect(link!.holder).toEqual({ role: 'serve', pid: process.pid });
    await link!.close();
    await lock!.release();
    expect(leftIn(folder)).toEqual([]);
    expect(await connectToWriter(folder, platform)).toBeUndefined();
    const next = await lockForWriting(folder, 'load', platform);
    expect(next).toBeDefined();
    await next!.release();
  });
});

it('vanishes with a killed process, and the leftovers are removed', async () => {
  const folder = await freshFolder();
  const child = await holderIn(folder);
  expect(await lockForWriting(folder, 'load')).toBeUndefined();
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  expect(leftIn(folder)).toHaveLength(2);
  expect(await connectToWriter(folder)).toBeUndefined();
  const lock = await lockForWriting(folder, 'load');
  expect(leftIn(folder)).toHaveLength(2);
  await lock!.release();
  expect(leftIn(folder)).toEqual([]);
});

it('is taken by exactly one of several concurrent processes, again and again', async () => {
  const folder = await freshFolder();
  // Leftovers of killed processes: one that held the lock, one that wanted it, and one that had no name yet.
  const child = await holderIn(folder);
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  for (const name of ['00000000-load-1', 'ffffffff-load-2.new'])
    await writeFile(join(folder, '.lock', name), '');
  for (let round = 0; round < caseCount(20, 1000); round++) {
    const taken = await Promise.all(Array.from({ length: 6 }, () => lockForWriting(folder, 'load')));
    const holders = taken.filter((lock) => lock !== undefined);
    expect(holders).toHaveLength(1);
    expect(leftIn(folder)).toHaveLength(2);
    await holders[0]!.release();
    expect(leftIn(folder)).toEqual([]);
  }
});

it('replaces the record that an earlier version wrote about its holder', async () => {
  const folder = await freshFolder();
  await writeFile(join(folder, '.writer'), '{"role":"serve","pid":1,"secret":"x"}');
  expect(await connectToWriter(folder)).toBeUndefined();
  const lock = await lockForWriting(folder, 'serve');
  expect(readlinkSync(join(folder, '.writer'))).toMatch(
    new RegExp(`^\\.lock/[0-9a-f]{8}-serve-${process.pid}$`),
  );
  await lock!.release();
});

it('does not trust a folder in which other users than those who may write to the data can create sockets', async () => {
  const folder = await freshFolder();
  const place = join(folder, '.lock');
  const refused = async (reason: string): Promise<void> => {
    const failure = { code: 'locked', message: expect.stringContaining(reason) as string };
    await expect(lockForWriting(folder, 'load')).rejects.toMatchObject(failure);
    await expect(connectToWriter(folder)).rejects.toMatchObject(failure);
  };
  await symlink(await freshFolder(), place);
  await refused('is not a folder');
  await rm(place);
  await mkdir(place);
  await chmod(place, 0o777);
  await refused('chmod 700');
  await chmod(place, 0o700);
  if (process.getuid?.() === 0) {
    await chown(place, 65_534, 65_534);
    await refused('belongs to user 65534');
    await chown(place, 0, 0);
  }
  await (await lockForWriting(folder, 'load'))!.release();
});

it('takes away the permissions of other users on an existing lock folder', async () => {
  const folder = await freshFolder();
  await (await lockForWriting(folder, 'load'))!.release();
  await chmod(join(folder, '.lock'), 0o755);
  const lock = await lockForWriting(folder, 'serve');
  const [name] = leftIn(folder);
  const modes = [join(folder, '.lock'), join(folder, '.lock', name!)].map(
    (path) => statSync(path).mode & 0o777,
  );
  expect(modes).toEqual([0o700, 0o600]);
  await lock!.release();
});

it('is shared by a group that may write to the data, and by nobody else', async () => {
  const folder = await freshFolder();
  const modeOfLock = async (mode: number): Promise<number> => {
    await chmod(folder, mode);
    await rm(join(folder, '.lock'), { recursive: true, force: true });
    await (await lockForWriting(folder, 'load'))!.release();
    return (await stat(join(folder, '.lock'))).mode & 0o777;
  };
  for (const mode of [0o700, 0o755, 0o750]) expect(await modeOfLock(mode)).toBe(0o700);
  for (const mode of [0o770, 0o775, 0o777]) expect(await modeOfLock(mode)).toBe(0o770);
});

it('says why a folder cannot be locked', async () => {
  const folder = await freshFolder();
  await expect(lockForWriting(join(folder, 'missing'), 'load')).rejects.toMatchObject({ code: 'not_found' });
});

describe('the channel to the writer', () => {
  async function serving(operations: ChannelOperations): Promise<{
    folder: string;
    connectOne: () => Promise<WriterLink>;
    end: () => Promise<void>;
    stop: () => Promise<void>;
  }> {
    const folder = await freshFolder();
    const lock = await lockForWriting(folder, 'serve');
    lock!.serve(operations);
    const links: WriterLink[] = [];
    return {
      folder,
      connectOne: async () => {
        const link = await connectToWriter(folder);
        links.push(link!);
        return link!;
      },
      stop: () => lock!.stopServing(),
      end: async () => {
        for (const link of links) await link.close();
        await lock!.release();
      },
    };
  }

  it('answers many requests of many processes, in any order, with their payloads', async () => {
    const waiting: (() => void)[] = [];
    const { connectOne, end } = await serving({
      sum: (args, payload) => {
        const sum = payload.reduce((total, byte) => total + byte, 0);
        return Promise.resolve({ name: (args as { name: string }).name, sum });
      },
      wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    });
    const links = [await connectOne(), await connectOne(), await connectOne()];
    const slow = links[0]!.request('wait', {});
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        links[i % 3]!.request('sum', { name: `größe ${i}` }, new Uint8Array(i * 100).fill(1)),
      ),
    );
    expect(answers).toEqual(Array.from({ length: 300 }, (_, i) => ({ name: `größe ${i}`, sum: i * 100 })));
    await until(() => waiting.length === 1);
    waiting[0]!();
    expect(await slow).toBeNull();
    await end();
  });

  it('carries batches of records', async () => {
    const schema = makeSchema([{ name: 'message', type: 'string' }]);
    const { connectOne, end } = await serving({
      append: (_args, payload) => {
        const batch = decodeBatch(schema, payload);
        return Promise.resolve([batch.length, columnValue(batch.columns[0]!, batch.length - 1)]);
      },
    });
    const rows = Array.from({ length: 20_000 }, (_, i) => [`line ${i} ${'x'.repeat(100)}`]);
    const link = await connectOne();
    const answer = await link.request('append', {}, encodeBatch(schema, batchFromRows(schema, rows)));
    expect(answer).toEqual([20_000, rows.at(-1)![0]]);
    await end();
  });

  it('carries errors with their code, and distinguishes unexpected errors', async () => {
    const { connectOne, end } = await serving({
      full: () => Promise.reject(new LogstrataError('disk_full', 'no room', { path: '/data', offset: 7 })),
      damaged: () => Promise.reject(new DamageError('bad bytes', { path: 'f' })),
      bug: () => Promise.reject(new TypeError('x is undefined')),
    });
    const link = await connectOne();
    await expect(link.request('full', {})).rejects.toMatchObject({
      code: 'disk_full',
      message: 'no room',
      path: '/data',
      offset: 7,
    });
    await expect(link.request('damaged', {})).rejects.toBeInstanceOf(DamageError);
    await expect(link.request('bug', {})).rejects.toThrow('the process that writes failed: x is undefined');
    await expect(link.request('unknown', {})).rejects.toMatchObject({ code: 'unsupported' });
    await expect(link.request('toString', {})).rejects.toMatchObject({ code: 'unsupported' });
    expect(link.alive).toBe(true);
    await end();
  });

  it('lets requests wait until the writer serves', async () => {
    const folder = await freshFolder();
    const lock = await lockForWriting(folder, 'load');
    const link = await connectToWriter(folder);
    const answer = link!.request('name', {});
    lock!.serve({ name: () => Promise.resolve('ready') });
    expect(await answer).toBe('ready');
    await link!.close();
    await lock!.release();
  });

  it('releases what a process held when it disappears, after its requests are done', async () => {
    const events: string[] = [];
    let finish: (() => void) | undefined;
    const { connectOne, end } = await serving({
      hold: (_args, _payload, connection) => {
        connection.onClose(() => Promise.resolve(void events.push('released')));
        return Promise.resolve('held');
      },
      publish: async () => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        events.push('published');
      },
      late: async (_args, _payload, connection) => {
        await delay(20);
        connection.onClose(() => Promise.resolve(void events.push('late released')));
      },
    });
    const link = await connectOne();
    await link.request('hold', {});
    const failing = [link.request('publish', {}), link.request('late', {})].map((request) =>
      request.catch((error: unknown) => error),
    );
    await until(() => finish !== undefined);
    await link.close();
    for (const failure of failing) expect(await failure).toMatchObject({ code: 'closed' });
    expect(link.alive).toBe(false);
    await expect(link.request('hold', {})).rejects.toMatchObject({ code: 'closed' });
    await delay(40);
    expect(events).toEqual([]);
    finish!();
    await until(() => events.length === 3);
    expect(events).toEqual(['published', 'released', 'late released']);
    await end();
  });

  it('refuses further requests of clients once the writer has gone', async () => {
    const folder = await freshFolder();
    const lock = await lockForWriting(folder, 'serve');
    lock!.serve({ ask: () => Promise.resolve(1) });
    const link = await connectToWriter(folder);
    expect(await link!.request('ask', {})).toBe(1);
    await lock!.release();
    await expect(link!.request('ask', {})).rejects.toMatchObject({ code: 'closed' });
    expect(link!.alive).toBe(false);
  });

  it('stops by ending idle connections first, since they may hold resources that other requests wait for', async () => {
    let release: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isWaiting = false;
    const { connectOne, stop, end } = await serving({
      hold: (_args, _payload, connection) => {
        connection.onClose(() => Promise.resolve(release!()));
        return Promise.resolve(null);
      },
      wait: () => {
        isWaiting = true;
        return held.then(() => 'done');
      },
    });
    const holding = await connectOne();
    const waiting = await connectOne();
    await holding.request('hold', {});
    const answer = waiting.request('wait', {});
    await until(() => isWaiting);
    await stop();
    expect(await answer).toBe('done');
    await end();
  });

  async function rawSocket(folder: string): Promise<Socket> {
    return new Promise((resolve) => {
      const socket = connect({ path: join(folder, '.writer') }, () => resolve(socket));
    });
  }

  async function closedBy(socket: Socket): Promise<Buffer> {
    const pieces: Buffer[] = [];
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('close', resolve));
    return Buffer.concat(pieces);
  }

  it('cuts off garbage and refuses other versions and broken messages, and continues with the others', async () => {
    let asked = 0;
    const { folder, connectOne, end } = await serving({
      ask: () => Promise.resolve(++asked),
    });
    const good = await connectOne();
    for (const attack of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), new Uint8Array(100).fill(255)]) {
      const socket = await rawSocket(folder);
      const closing = closedBy(socket);
      for (let at = 0; at < attack.length; at += 3) socket.write(attack.subarray(at, at + 3));
      expect((await closing).toString()).not.toContain('"result"');
    }
    const requests = [
      { path: '/99/ask', bytes: 2, body: '{}', code: 'unsupported' },
      { path: '/ask', bytes: 2, body: '{}', code: 'unsupported' },
      { path: '/5/ask', bytes: 9, body: '{}', code: 'invalid' },
      { path: '/5/ask', bytes: -1, body: '{}', code: 'invalid' },
      { path: '/5/ask', bytes: 2, body: '{x', code: null },
    ];
    for (const { path, bytes, body, code } of requests) {
      const socket = await rawSocket(folder);
      const session = connectHttp('http://writer', { createConnection: () => socket });
      const lengths = { 'args-bytes': bytes, 'content-length': body.length };
      const stream = session.request({ ':method': 'POST', ':path': path, ...lengths });
      stream.end(body);
      expect(JSON.parse(await text(stream))).toMatchObject({ error: { code } });
      session.destroy();
    }
    const socket = await rawSocket(folder);
    const session = connectHttp('http://writer', { createConnection: () => socket });
    const lengths = { 'args-bytes': 2, 'content-length': 1000 };
    const stream = session.request({ ':method': 'POST', ':path': '/5/ask', ...lengths });
    stream.on('error', () => {});
    stream.write('{} begins a payload');
    stream.close(constants.NGHTTP2_CANCEL);
    await once(stream, 'close');
    session.destroy();
    expect(asked).toBe(0);
    expect(await good.request('ask', {})).toBe(1);
    await end();
  });

  it('refuses to send a message that the other side would not accept', async () => {
    const { connectOne, end } = await serving({ ask: () => Promise.resolve('ok') });
    const link = await connectOne();
    const huge = new Uint8Array(256 * 1024 * 1024 + 1);
    await expect(link.request('ask', {}, huge)).rejects.toMatchObject({ code: 'limit' });
    expect(await link.request('ask', {})).toBe('ok');
    await end();
  });
});
