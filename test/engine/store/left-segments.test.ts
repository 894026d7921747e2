import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openSegment } from '../../../engine/store/disk/real-directory.js';
import { OpenFiles } from '../../../engine/store/disk/open-files.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { Value } from '../../model/dataset.js';
import { answer, load, noon, openCompacting, openToRead, schema } from './memory-archive.js';

function rows(from: number, count: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - (from + i) * 1000),
    BigInt(from + i),
    null,
    'line',
  ]);
}

/** The files in the folders of days, and those of them that a pattern for Parquet files matches. */
async function filesOf(directory: MemoryDirectory): Promise<{ found: string[]; left: string[] }> {
  const files: string[] = [];
  for (const folder of await directory.list('web'))
    if (folder.startsWith('dt='))
      for (const name of await directory.list(`web/${folder}`)) files.push(`${folder}/${name}`);
  return {
    found: files.filter((file) => file.endsWith('.parquet')),
    left: files.filter((file) => !file.endsWith('.parquet')),
  };
}

it('segments that left the manifest are hidden from other tools, and still read by queries that began before', async () => {
  const directory = new MemoryDirectory();
  const archive = await openCompacting(directory);
  const store = await archive.agent('web', schema);
  for (let i = 0; i < 4; i++) await load(store, rows(i * 50, 50));
  const before = await answer(store);
  const reader = await openToRead(directory);
  const reading = await reader.agent('web', schema);
  const all = { limit: 1_000_000, predicates: [] };
  const begun = await reading.scan(all, { pieceBytes: 2048 });
  const pieces = begun.lines[Symbol.asyncIterator]();
  const texts = [Buffer.from((await pieces.next()).value as Uint8Array).toString()];
  const known = (await filesOf(directory)).found;
  expect(known).toHaveLength(4);

  expect(await archive.compactNext()).toBe(true);
  const after = await filesOf(directory);
  expect(after.found).toHaveLength((await store.stats()).segments);
  expect(after.found).not.toEqual(expect.arrayContaining(known));
  expect(after.left).toEqual(known.map((file) => `${file}.left`));
  for (const file of known) await (await openSegment(directory, `web/${file}`)).close();
  for (let piece = await pieces.next(); piece.done !== true; piece = await pieces.next())
    texts.push(Buffer.from(piece.value).toString());
  expect(texts.join('')).toBe(before);
  expect(await answer(store)).toBe(before);
  await reader.close();
  await archive.close();
  expect((await filesOf(directory)).left).toEqual([]);
  const gone = `web/${known[0]!}`;
  await expect(openSegment(directory, gone)).rejects.toMatchObject({
    code: 'not_found',
    path: expect.stringMatching(/parquet$/) as string,
  });
});

it('hides the records that retention and removals delete from other tools, too', async () => {
  const directory = new MemoryDirectory();
  const archive = await openCompacting(directory);
  const store = await archive.agent('web', schema);
  await load(store, rows(0, 50));
  await store.remove({ kind: 'all' });
  expect((await filesOf(directory)).found).toEqual([]);
  await archive.close();
});

it('threads also open segments that were renamed until their removal, and do so for no other files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-left-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = new OpenFiles();
  const segment = join(folder, '0123456789ab-00000.parquet');
  writeFileSync(segment, 'segment');
  renameSync(segment, `${segment}.left`);
  const bytes = Buffer.alloc(7);
  expect(files.read(segment, 0, bytes)).toBe(7);
  expect(bytes.toString()).toBe('segment');
  const foreign = join(folder, 'sales.parquet');
  writeFileSync(`${foreign}.left`, 'another');
  expect(() => files.read(foreign, 0, bytes)).toThrow(
    expect.objectContaining({ code: 'not_found', path: foreign }) as Error,
  );
  files.close();
});
