import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { DamageError, LogstrataError } from '../../engine/errors.js';
import { batchFromRows } from '../../engine/columns/rows.js';
import { makeSchema } from '../../engine/schema.js';
import { columnValue } from '../../engine/columns/column.js';
import { decodeBatch, encodeBatch } from '../../engine/storage/batch-codec.js';
import { encodeFrame } from '../../engine/storage/frame.js';
import type { ChannelOperations } from '../../engine/storage/writer-channel.js';
import { connectToWriter, lockForWriting, type WriterLink } from '../../engine/storage/writer-link.js';
import { lockAddress } from '../../engine/storage/writer-lock.js';

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

// On Linux the socket file of the other systems can be tried too.
const platforms: readonly NodeJS.Platform[] =
  process.platform === 'linux' ? ['linux', 'darwin'] : [process.platform];

describe.each(platforms)('the writer lock as on %s', (platform) => {
  it('is held by one, by whatever path the folder is named, and free after its release', async () => {
    const folder = await freshFolder();
    const alias = `${folder}-alias`;
    scratch.push(alias);
    await symlink(folder, alias);
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
    expect(await connectToWriter(folder, platform)).toBeUndefined();
    const next = await lockForWriting(folder, 'load', platform);
    expect(next).toBeDefined();
    await next!.release();
  });

  it.runIf(existsSync('/dev/full'))(
    'can be connected to once a full disk has room for its secret',
    async () => {
      const folder = await freshFolder();
      await symlink('/dev/full', join(folder, '.writer.tmp'));
      const lock = await lockForWriting(folder, 'serve', platform);
      lock!.serve({});
      expect(existsSync(join(folder, '.writer'))).toBe(false);
      await rm(join(folder, '.writer.tmp'));
      const link = await connectToWriter(folder, platform);
      expect(link!.holder).toEqual({ role: 'serve', pid: process.pid });
      await link!.close();
      await lock!.release();
    },
  );

  it('vanishes with a process that is killed', async () => {
    const folder = await freshFolder();
    const { address } = await lockAddress(folder, platform);
    const holder = join(folder, 'holder.mjs');
    const listening = `import { createServer } from 'node:net';
      createServer().listen({ path: ${JSON.stringify(address)} }, () => process.send('listening'));`;
    await writeFile(holder, listening);
    const child = fork(holder);
    await new Promise((resolve) => child.once('message', resolve));
    expect(await lockForWriting(folder, 'load', platform)).toBeUndefined();
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    const lock = await lockForWriting(folder, 'load', platform);
    expect(lock).toBeDefined();
    await lock!.release();
  });
});

it.runIf(existsSync('/proc/net/unix'))('is held at the address that every Node gives it', async () => {
  const folder = await freshFolder();
  const lock = await lockForWriting(folder, 'serve');
  const { dev, ino } = await stat(folder, { bigint: true });
  // The system shows zeros as @: with the first byte these are all 108 that there are, none of them filled up by Node.
  const name = `@${`logstrata-${dev}-${ino}`.padEnd(107, '-')}`;
  const names = (await readFile('/proc/net/unix', 'latin1'))
    .split('\n')
    .map((line) => line.split(' ').at(-1));
  expect(names.filter((shown) => shown?.includes(`logstrata-${dev}-${ino}-`))).toContain(name);
  await lock!.release();
});

it('says what is wrong with a folder that can not be locked', async () => {
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

  it('carries errors with their code, and tells bugs from them', async () => {
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

  it('releases what a process held when it disappears, after what it asked for is done', async () => {
    const events: string[] = [];
    let finish: (() => void) | undefined;
    const { connectOne, end } = await serving({
      hold: (_args, _payload, connection) => {
        connection.onClose(() => void events.push('released'));
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
        connection.onClose(() => void events.push('late released'));
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

  it('tells those who ask on that the writer has gone', async () => {
    const folder = await freshFolder();
    const lock = await lockForWriting(folder, 'serve');
    lock!.serve({ ask: () => Promise.resolve(1) });
    const link = await connectToWriter(folder);
    expect(await link!.request('ask', {})).toBe(1);
    await lock!.release();
    await expect(link!.request('ask', {})).rejects.toMatchObject({ code: 'closed' });
    expect(link!.alive).toBe(false);
  });

  it('stops by ending idle connections first, which may hold what the others wait for', async () => {
    let release: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isWaiting = false;
    const { connectOne, stop, end } = await serving({
      hold: (_args, _payload, connection) => {
        connection.onClose(() => release!());
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
    const { address } = await lockAddress(folder);
    return new Promise((resolve) => {
      const socket = connect({ path: address }, () => resolve(socket));
    });
  }

  async function closedBy(socket: Socket): Promise<Buffer> {
    const pieces: Buffer[] = [];
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('close', resolve));
    return Buffer.concat(pieces);
  }

  it('cuts off garbage, oversized frames and strangers, and goes on with the others', async () => {
    let asked = 0;
    const { folder, connectOne, end } = await serving({
      ask: () => Promise.resolve(++asked),
    });
    const good = await connectOne();
    const bounds = { jsonBytesMax: 2 ** 32, payloadBytesMax: 2 ** 32 };
    const hello = { version: 2, nonce: 'x', proof: '0'.repeat(64) };
    const nothing = new Uint8Array(0);
    const attacks: Uint8Array[] = [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      new Uint8Array(100).fill(255),
      Buffer.from([5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]),
      encodeFrame([1], nothing, bounds),
      encodeFrame({ id: 1, operation: 'ask', args: {} }, nothing, bounds),
      encodeFrame({ id: 1, operation: 'hello', args: hello }, nothing, bounds),
      encodeFrame({ id: 1, operation: 'hello', args: { ...hello, version: 99 } }, nothing, bounds),
      encodeFrame({ id: 1, operation: 'hello', args: 'x'.repeat(5000) }, nothing, bounds),
      Buffer.from([2, 0, 0, 0, 255, 255, 255, 127]),
    ];
    for (const attack of attacks) {
      const socket = await rawSocket(folder);
      const closing = closedBy(socket);
      for (let at = 0; at < attack.length; at += 3) socket.write(attack.subarray(at, at + 3));
      expect((await closing).toString()).not.toContain('"result"');
    }
    expect(asked).toBe(0);
    expect(await good.request('ask', {})).toBe(1);
    await end();
  });

  it('refuses to send what the other side would not take', async () => {
    const { connectOne, end } = await serving({ ask: () => Promise.resolve('ok') });
    const link = await connectOne();
    const huge = new Uint8Array(256 * 1024 * 1024 + 1);
    await expect(link.request('ask', {}, huge)).rejects.toMatchObject({ code: 'limit' });
    expect(await link.request('ask', {})).toBe('ok');
    await end();
  });

  it('does not trust a process that has taken the address without being able to read the folder', async () => {
    const folder = await freshFolder();
    const lock = await lockForWriting(folder, 'serve');
    const secret = join(folder, '.writer');
    expect((await stat(secret)).mode & 0o007).toBe(0);
    await writeFile(secret, JSON.stringify({ role: 'serve', pid: 1, secret: 'another' }));
    await expect(connectToWriter(folder)).rejects.toMatchObject({ code: 'locked' });
    await lock!.release();
  });
});
