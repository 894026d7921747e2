import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Directory, WritableFile } from '../../engine/store/disk/directory.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { itUnless, notLinux } from '../needs.js';

const scratch: string[] = [];

async function freshReal(): Promise<Directory> {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-directory-'));
  scratch.push(folder);
  return openRealDirectory(folder);
}

afterAll(async () => {
  for (const folder of scratch) await rm(folder, { recursive: true, force: true });
});

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

async function put(directory: Directory, path: string, text: string): Promise<void> {
  const file = await directory.create(path);
  await file.write(0, bytesOf(text));
  await file.sync();
  await file.close();
}

async function get(directory: Directory, path: string): Promise<string> {
  const file = await directory.openRead(path);
  try {
    return textOf(await file.read(0, await file.size()));
  } finally {
    await file.close();
  }
}

const implementations: readonly [string, () => Promise<Directory>][] = [
  ['real', freshReal],
  ['memory', async () => new MemoryDirectory()],
];

describe.each(implementations)('%s directory', (_name, fresh) => {
  it('lists names in sorted order, and none for a missing folder', async () => {
    const directory = await fresh();
    await directory.makeDirectory('a/b/c');
    await put(directory, 'a/z', '1');
    await put(directory, 'a/A', '1');
    expect(await directory.list('a')).toEqual(['A', 'b', 'z']);
    expect(await directory.list('')).toEqual(['a']);
    expect(await directory.list('a/b')).toEqual(['c']);
    expect(await directory.list('missing/too')).toEqual([]);
    await directory.makeDirectory('a/b/c');
  });

  it('creates only files that do not exist, and opens only files that do', async () => {
    const directory = await fresh();
    await put(directory, 'f', 'one');
    await expect(directory.create('f')).rejects.toMatchObject({ code: 'exists' });
    await expect(directory.create('no/f')).rejects.toMatchObject({ code: 'not_found' });
    await expect(directory.openRead('g')).rejects.toMatchObject({ code: 'not_found' });
    await expect(directory.openWrite('g')).rejects.toMatchObject({ code: 'not_found' });
    await expect(directory.size('g')).rejects.toMatchObject({ code: 'not_found' });
    await expect(directory.syncDirectory('g')).rejects.toMatchObject({ code: 'not_found' });
    expect(await directory.size('f')).toBe(3);
    const { sizeBytes, freeBytes } = (await directory.diskSpace())!;
    expect(freeBytes).toBeGreaterThanOrEqual(0);
    expect(freeBytes).toBeLessThanOrEqual(sizeBytes);
    await directory.makeDirectory('folder');
    await expect(directory.openRead('folder')).rejects.toMatchObject({ code: 'io' });
    await expect(directory.openWrite('folder')).rejects.toMatchObject({ code: 'io' });
    await expect(directory.makeDirectory('f')).rejects.toMatchObject({ code: 'exists' });
  });

  it('writes at any position, fills gaps with zeros, truncates, and reads fewer bytes than asked only at the end', async () => {
    const directory = await fresh();
    const file = await directory.create('f');
    await file.write(4, bytesOf('tail'));
    await file.write(0, bytesOf('ab'));
    await file.sync();
    expect(await get(directory, 'f')).toBe('ab\0\0tail');
    await file.truncate(3);
    await file.write(5, bytesOf('x'));
    await file.close();
    expect(await get(directory, 'f')).toBe('ab\0\0\0x');
    const reader = await directory.openRead('f');
    expect(textOf(await reader.read(4, 100))).toBe('\0x');
    expect((await reader.read(100, 5)).length).toBe(0);
    expect((await reader.read(0, 4)).byteOffset % 8).toBe(0);
    expect(textOf(await reader.read(5, 2 ** 40))).toBe('x');
    await reader.close();
    await reader.close();
    await expect(reader.read(0, 1)).rejects.toMatchObject({ code: 'closed' });
    const again = await directory.openWrite('f');
    await again.write(0, bytesOf('AB'));
    await again.close();
    expect(await get(directory, 'f')).toBe('AB\0\0\0x');
  });

  it('links exclusively, which gives the same content a second name', async () => {
    const directory = await fresh();
    await put(directory, 'tmp', 'content');
    await directory.link('tmp', 'one');
    await expect(directory.link('tmp', 'one')).rejects.toMatchObject({ code: 'exists' });
    await expect(directory.link('gone', 'two')).rejects.toMatchObject({ code: 'not_found' });
    await directory.remove('tmp');
    expect(await get(directory, 'one')).toBe('content');
    expect(await directory.list('')).toEqual(['one']);
  });

  it('renames files over files, and folders', async () => {
    const directory = await fresh();
    await put(directory, 'a', 'new');
    await put(directory, 'b', 'old');
    await directory.rename('a', 'b');
    expect(await get(directory, 'b')).toBe('new');
    await directory.makeDirectory('d/e');
    await directory.rename('b', 'd/e/f');
    await directory.rename('d', 'moved');
    expect(await get(directory, 'moved/e/f')).toBe('new');
    await expect(directory.rename('gone', 'x')).rejects.toMatchObject({ code: 'not_found' });
    await directory.makeDirectory('full/x');
    await expect(directory.rename('moved', 'full')).rejects.toMatchObject({ code: 'exists' });
  });

  it('removes files and folders, and ignores missing ones', async () => {
    const directory = await fresh();
    await directory.makeDirectory('a/b');
    await put(directory, 'a/b/f', '1');
    await directory.remove('a/b/gone');
    await directory.remove('gone/too');
    const open = await directory.openRead('a/b/f');
    await directory.remove('a/b/f');
    expect(textOf(await open.read(0, 1))).toBe('1');
    await open.close();
    await directory.removeDirectory('a');
    await directory.removeDirectory('a');
    expect(await directory.list('')).toEqual([]);
  });

  it('refuses a path that leads out of the folder as a programming error', async () => {
    const directory = await fresh();
    for (const path of ['../x', 'a/../../x', '/etc/passwd', 'a//b', 'a/./b']) {
      await expect(directory.openRead(path)).rejects.toThrow('not a plain relative path');
    }
  });
});

describe('openRealDirectory', () => {
  it('creates a missing folder on demand, and refuses a file or a relative path', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-directory-'));
    scratch.push(folder);
    await expect(openRealDirectory(join(folder, 'x/y'))).rejects.toMatchObject({ code: 'not_found' });
    const made = await openRealDirectory(`${folder}/x/y/`, { create: true });
    expect(made.location).toBe(join(folder, 'x/y'));
    await put(made, 'f', 'text');
    expect(await get(await openRealDirectory(join(folder, 'x/./y')), 'f')).toBe('text');
    await writeFile(join(folder, 'file'), '');
    await expect(openRealDirectory(join(folder, 'file'))).rejects.toMatchObject({ code: 'invalid' });
    await expect(openRealDirectory(join(folder, 'file/x'), { create: true })).rejects.toMatchObject({
      code: 'io',
    });
    await expect(openRealDirectory('data')).rejects.toMatchObject({ code: 'invalid' });
  });

  it('creates a folder once for all concurrent callers', async () => {
    const directory = await freshReal();
    await Promise.all(Array.from({ length: 20 }, () => directory.makeDirectory('a/b/c/d')));
    expect(await directory.list('a/b/c')).toEqual(['d']);
  });

  itUnless(notLinux, 'fails where no folder can be created', async () => {
    await expect(openRealDirectory('/proc/no/such', { create: true })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('/proc/no'),
    });
  });

  it('says how to resolve a failure of the operating system', async () => {
    const directory = await freshReal();
    await put(directory, 'file', '');
    await expect(directory.openRead('file/below')).rejects.toMatchObject({
      code: 'io',
      message: expect.stringContaining('a part of the path is not a folder'),
    });
  });

  itUnless(notLinux, 'says that the disk is full', async () => {
    const directory = await freshReal();
    await symlink('/dev/full', join(directory.location, 'full'));
    const full = await directory.openWrite('full');
    await expect(full.write(0, bytesOf('x'))).rejects.toMatchObject({
      code: 'disk_full',
      path: join(directory.location, 'full'),
      message: expect.stringContaining('the disk is full'),
    });
    await full.close();
  });
});

async function unsynced(directory: MemoryDirectory): Promise<WritableFile> {
  await directory.makeDirectory('a');
  await put(directory, 'a/f', 'durable');
  await directory.syncDirectory('a');
  const file = await directory.openWrite('a/f');
  await file.write(0, bytesOf('DURABLE and more'));
  await put(directory, 'a/unsynced-name', 'x');
  return file;
}

describe('MemoryDirectory in a crash', () => {
  it('keeps synced data, and loses, keeps or tears the rest', async () => {
    const lost = new MemoryDirectory();
    const file = await unsynced(lost);
    const after = lost.crash('lost');
    expect(await get(after, 'a/f')).toBe('durable');
    expect(await after.list('a')).toEqual(['f']);
    await expect(file.write(0, bytesOf('x'))).rejects.toMatchObject({ code: 'closed' });
    await expect(lost.list('a')).rejects.toMatchObject({ code: 'closed' });

    const kept = new MemoryDirectory();
    await unsynced(kept);
    const afterKept = kept.crash('kept');
    expect(await get(afterKept, 'a/f')).toBe('DURABLE and more');
    expect(await afterKept.list('a')).toEqual(['f', 'unsynced-name']);

    const outcomes = new Set<string>();
    for (let seed = 0; seed < 60; seed++) {
      const torn = new MemoryDirectory();
      await unsynced(torn);
      const result = torn.crash({ seed });
      outcomes.add(`${await get(result, 'a/f')}|${(await result.list('a')).length}`);
    }
    expect(outcomes).toContain('durable|1');
    expect(outcomes).toContain('DURABLE and more|2');
    expect(outcomes.size).toBeGreaterThan(6);
    for (const outcome of outcomes) expect(outcome).toMatch(/^[dD]/);
  });

  it('hides a synced file whose name was not synced, and keeps a rename atomic', async () => {
    for (let seed = 0; seed < 30; seed++) {
      const directory = new MemoryDirectory();
      await directory.makeDirectory('a');
      await directory.makeDirectory('b');
      await put(directory, 'a/f', 'x');
      await directory.syncDirectory('a');
      await directory.rename('a/f', 'b/f');
      const after = directory.crash({ seed });
      const places = [...(await after.list('a')), ...(await after.list('b'))];
      expect(places).toEqual(['f']);
    }
  });

  it('crashes at the planned operation, and counts the operations', async () => {
    const counting = new MemoryDirectory();
    await unsynced(counting);
    expect(counting.mutations).toBe(9);
    expect(counting.counts.get('write')).toBe(3);
    expect(counting.counts.get('sync')).toBe(2);
    for (let step = 1; step <= counting.mutations; step++) {
      const directory = new MemoryDirectory({ crashAtOperation: step });
      await expect(unsynced(directory)).rejects.toMatchObject({ code: 'closed' });
      expect(directory.crashed).toBe(true);
      expect(directory.mutations).toBe(step);
      const after = directory.crash('lost');
      expect(await after.list('a')).toEqual(step > 5 ? ['f'] : []);
    }
  });

  it('fails once at the planned operation, with a torn write or with a sync that loses data', async () => {
    const directory = new MemoryDirectory();
    const file = await directory.create('f');
    await file.write(0, bytesOf('kept'));
    await file.sync();
    await directory.syncDirectory('');
    directory.setFaults({ failAtOperation: directory.mutations + 2 });
    await file.write(4, bytesOf(' lost'));
    await expect(file.sync()).rejects.toMatchObject({ code: 'io' });
    expect(await get(directory, 'f')).toBe('kept');
    await file.write(4, bytesOf('!'));
    await file.sync();
    directory.setFaults({ failAtOperation: directory.mutations + 1, seed: 3 });
    await expect(file.write(5, bytesOf('0123456789'))).rejects.toMatchObject({ code: 'io' });
    expect('kept!0123456789'.startsWith(await get(directory, 'f'))).toBe(true);
    expect(await get(directory.crash('lost'), 'f')).toBe('kept!');
  });

  it('runs out of space in the middle of a write', async () => {
    const directory = new MemoryDirectory({ freeBytes: 6 });
    const file = await directory.create('f');
    await file.write(0, bytesOf('1234'));
    await expect(file.write(4, bytesOf('5678'))).rejects.toMatchObject({ code: 'disk_full' });
    expect(await get(directory, 'f')).toBe('123456');
    expect(directory.bytesWritten).toBe(6);
  });
});
