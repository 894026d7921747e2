import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LoadFilesOptions, UntimedFile } from '../../../agents/load/load.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { archiveAt, definitionOf, lines, load, recordsOf, rejectedOf } from './archive.js';
import { temporaryFolder } from './temporary.js';

async function numbersOf(store: AgentStore): Promise<(number | null)[]> {
  return (await recordsOf(store)).map(({ n }) => n);
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

async function loadOne(
  store: AgentStore,
  path: string,
  options: Partial<LoadFilesOptions> = {},
): Promise<string> {
  const summary = await load(store, [path], options);
  const [file] = summary.files;
  expect(file).toMatchObject({ outcome: 'loaded', error: null });
  return file!.load!;
}

describe('a load that was removed', () => {
  it('is gone, also after compaction, and its file can be loaded again under other cursors', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', definitionOf().schema);
    const [a, b] = [join(folder, 'app_a.log'), join(folder, 'app_b.log')];
    await writeFile(a, lines(0, 9000));
    await writeFile(b, lines(4000, 8000));
    const first = await loadOne(store, a);
    const second = await loadOne(store, b);
    expect(await store.loads()).toMatchObject([
      { id: first, records: 9000, paths: [a] },
      { id: second, records: 4000, paths: [b] },
    ]);
    await store.compact();
    const cursors = (await recordsOf(store)).map(({ _cursor }) => _cursor);
    expect(await store.previewRemoval({ kind: 'load', id: first })).toMatchObject({
      records: 9000,
      paths: [a],
    });
    expect(await store.remove({ kind: 'load', id: first })).toMatchObject({ records: 9000 });
    expect(await numbersOf(store)).toEqual(range(4000, 8000));
    // Removed records are not lost, and are not restored automatically.
    expect(await store.lostLoads()).toEqual([]);
    expect(await load(store, [b])).toMatchObject({ known: 1, restored: 0 });
    await expect(store.remove({ kind: 'load', id: first })).rejects.toThrow('has no load');

    const again = await loadOne(store, a);
    expect(again).not.toBe(first);
    const now = await recordsOf(store);
    expect(now).toHaveLength(13_000);
    const kept = new Set(cursors);
    expect(now.filter(({ _cursor }) => !kept.has(_cursor))).toHaveLength(9000);
    expect(await store.verify()).toMatchObject({ damages: [], records: 13_000 });
  });

  it('of a file that has grown can be loaded again from the end of the load before', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', definitionOf().schema);
    const path = join(folder, 'app_a.log');
    await writeFile(path, lines(0, 50));
    const first = await loadOne(store, path);
    await appendFile(path, lines(50, 80));
    const second = await loadOne(store, path);
    await store.remove({ kind: 'load', id: second });
    expect(await numbersOf(store)).toEqual(range(0, 50));
    const third = await loadOne(store, path);
    expect(await numbersOf(store)).toEqual(range(0, 80));
    // A later part of the file is stored, so the file stays known.
    await store.remove({ kind: 'load', id: first });
    expect(await numbersOf(store)).toEqual(range(50, 80));
    expect(await load(store, [path])).toMatchObject({ known: 1, loaded: 0 });
    expect(await store.loads()).toMatchObject([{ id: third, records: 30 }]);
  });

  it('takes its rejected lines along, and no others', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', definitionOf().schema);
    const [a, b] = [join(folder, 'app_a.log'), join(folder, 'app_b.log')];
    await writeFile(a, `${lines(0, 5)}what\n`);
    await writeFile(b, `${lines(5, 9)}no\n`);
    const first = await loadOne(store, a);
    await loadOne(store, b);
    expect(await store.remove({ kind: 'load', id: first })).toMatchObject({ records: 5, rejectedLines: 1 });
    expect((await store.rejectedFiles()).reduce((sum, { lines: count }) => sum + count, 0)).toBe(1);
    expect(await store.remove({ kind: 'all' })).toMatchObject({ records: 4, rejectedLines: 1 });
    expect(await store.rejectedFiles()).toEqual([]);
    expect(await load(store, [a, b])).toMatchObject({ loaded: 2, records: 9 });
    expect(await rejectedOf(folder)).not.toHaveLength(0);
  });

  it('is forgotten if a time range removed all of it, and otherwise keeps its remaining records', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', definitionOf().schema);
    const [a, b] = [join(folder, 'app_a.log'), join(folder, 'app_b.log')];
    await writeFile(a, lines(0, 100));
    await writeFile(b, lines(50, 8000));
    await loadOne(store, a);
    await loadOne(store, b);
    const startMs = Date.UTC(2026, 10, 20);
    await store.remove({ kind: 'times', sinceMs: startMs, untilMs: startMs + 100_000 });
    expect(await numbersOf(store)).toEqual(range(100, 8000));
    expect(await store.lostLoads()).toEqual([]);
    expect(await load(store, [b])).toMatchObject({ known: 1 });
    expect(await load(store, [a])).toMatchObject({ loaded: 1, records: 100 });
    // The remaining records of the hour that the range touched belong to it too.
    expect(await store.loads()).toMatchObject([{ records: 8000 - 100 }, { records: 100 }]);
  });
});

describe('a file without a readable time', () => {
  it('is stored on demand', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', definitionOf().schema);
    const [bad, good] = [join(folder, 'app_a.log'), join(folder, 'app_b.log')];
    await writeFile(bad, 'yesterday 1 x\ntoday 2 y\n');
    await writeFile(good, `${lines(0, 1)}yesterday 3 z\n`);
    const asked: UntimedFile[] = [];
    const accept = (answer: boolean) => (file: UntimedFile) => {
      asked.push(file);
      return Promise.resolve(answer);
    };
    const refused = await load(store, [bad, good], { acceptUntimed: accept(false) });
    expect(refused).toMatchObject({ loaded: 1, failed: 1, exitCode: 1 });
    expect(refused.files[0]!.error!.message).toContain('none of the 2 records of');
    expect(asked).toEqual([{ path: bad, records: 2, field: 'time', example: 'yesterday' }]);
    expect(await load(store, [bad], { acceptUntimed: accept(true) })).toMatchObject({
      loaded: 1,
      records: 2,
    });
    expect(await recordsOf(store)).toHaveLength(4);
  });
});
