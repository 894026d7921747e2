import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { parseCursor } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import type { RepairReport } from '../../../engine/maintenance/repair.js';
import { rowGroupRowsMax } from '../../../engine/core/limits.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import type { Value } from '../../model/dataset.js';
import {
  answer,
  append,
  backupFolderOn,
  load,
  noon,
  openCompacting,
  openOn,
  openToRead,
  schema,
} from './memory-archive.js';

const hourMs = 3_600_000;

function rows(count: number, hours: number, name: string): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - 1 - Math.floor(((count - i) * hours * hourMs) / count)),
    BigInt(i),
    null,
    `${name} ${i}`,
  ]);
}

const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);
const cursorOf = (line: string): string => line.slice(12, 28);

async function listFiles(directory: MemoryDirectory, folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const name of await directory.list(folder)) {
    const path = `${folder}/${name}`;
    if (/^(dt=.*|hot|rejected|quarantine)$/.test(name)) files.push(...(await listFiles(directory, path)));
    else if (name !== 'building') files.push(path);
  }
  return files;
}

async function overwrite(
  directory: MemoryDirectory,
  path: string,
  from: number,
  to = from + 64,
): Promise<void> {
  const file = await directory.openWrite(path);
  const sizeBytes = await directory.size(path);
  const first = Math.floor(from * sizeBytes);
  await file.write(
    first,
    new Uint8Array(Math.min(sizeBytes, to <= 1 ? Math.floor(to * sizeBytes) : first + 64) - first).fill(0xa5),
  );
  await file.sync();
  await file.close();
}

async function repairOn(directory: MemoryDirectory, yes = true): Promise<RepairReport> {
  const archive = await openOn(directory);
  try {
    return await archive.repair('web', { adopt: () => Promise.resolve(yes) });
  } finally {
    await archive.close();
  }
}

/** A store with sealed and hot records of several hours. Returns all of its lines. */
async function made(
  directory: MemoryDirectory,
  fill: (store: AgentStore) => Promise<void>,
): Promise<string[]> {
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  await fill(store);
  const lines = linesOf(await answer(store));
  await archive.close();
  return lines;
}

async function several(store: AgentStore): Promise<void> {
  await load(store, rows(300, 50, 'first'));
  await load(store, rows(200, 50, 'second'));
  await append(store, rows(20, 3, 'hot'), 'live');
}

/** The lines returned after a repair; checks that the archive is undamaged and gives new ordinals to new records. */
async function afterRepair(directory: MemoryDirectory): Promise<string[]> {
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  const lines = linesOf(await answer(store));
  expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [], records: lines.length });
  await load(store, rows(60, 50, 'later'));
  await append(store, rows(10, 2, 'live'), 'live');
  const more = linesOf(await answer(store));
  expect(more).toHaveLength(lines.length + 70);
  const before = new Set(lines);
  expect(more.filter((line) => before.has(line))).toEqual(lines);
  await archive.close();
  return lines;
}

describe('verify --repair', () => {
  it('changes nothing in an undamaged archive', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, several);
    const before = await listFiles(directory, 'web');
    expect(await repairOn(directory)).toMatchObject({
      changed: false,
      manifest: 'whole',
      lost: [],
      records: 520,
    });
    expect(await listFiles(directory, 'web')).toEqual(before);
    expect(await afterRepair(directory)).toEqual(lines);
  });

  it('rebuilds a lost manifest from the files under the same cursors, and continues at ordinals that were never given', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, several);
    const given = new Set(lines.map(cursorOf));
    for (const name of await directory.list('web'))
      if (name.startsWith('manifest-')) await directory.remove(`web/${name}`);
    const report = await repairOn(directory);
    expect(report).toMatchObject({
      changed: true,
      manifest: 'rebuilt',
      basedOn: null,
      lost: [],
      records: 520,
    });
    expect(report.adopted.length).toBeGreaterThan(3);
    expect(await afterRepair(directory)).toEqual(lines);
    const reader = await openToRead(directory);
    for (const line of linesOf(await answer(await reader.agent('web', schema)))) {
      const { ordinal } = parseCursor(cursorOf(line))!;
      expect(ordinal > 2 ** 32).toBe(!given.has(cursorOf(line)));
    }
    await reader.close();
  });

  it('adopts a file that no manifest lists only on demand, and deletes none of them', async () => {
    const directory = new MemoryDirectory();
    await made(directory, several);
    for (const name of await directory.list('web'))
      if (name.startsWith('manifest-')) await directory.remove(`web/${name}`);
    const archive = await openOn(directory);
    const refuse = () => Promise.reject(new LogstrataError('invalid', 'nobody to ask'));
    const before = await listFiles(directory, 'web');
    await expect(archive.repair('web', { adopt: refuse })).rejects.toThrow('nobody to ask');
    await archive.close();
    expect(await listFiles(directory, 'web')).toEqual(before);

    const report = await repairOn(directory, false);
    expect(report).toMatchObject({ adopted: [], records: 0 });
    expect(report.quarantined).toHaveLength(before.length);
    expect(await afterRepair(directory)).toEqual([]);
    const aside = (await listFiles(directory, 'web')).filter((file) => file.startsWith('web/quarantine/'));
    expect(aside).toHaveLength(before.length);
  });

  it('continues from the previous manifest if the newest is damaged, with all records that were stored after it', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, several);
    const newest = (await directory.list('web')).filter((name) => name.startsWith('manifest-')).at(-1)!;
    await overwrite(directory, `web/${newest}`, 0.5);
    const report = await repairOn(directory);
    expect(report).toMatchObject({ manifest: 'rebuilt', basedOn: Number(newest.slice(9)) - 1, lost: [] });
    expect(report.quarantined.map(({ file }) => file)).toEqual([newest]);
    expect(await afterRepair(directory)).toEqual(lines);
  });

  it('is needed if the newest manifest is lost: nothing is answered, written or removed before it', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, several);
    let archive = await openOn(directory);
    await load(await archive.agent('web', schema), rows(1000, 3, 'loaded last'));
    const all = linesOf(await answer(await archive.agent('web')));
    await archive.close();
    expect(all).toHaveLength(lines.length + 1000);
    const manifests = (await directory.list('web')).filter((name) => name.startsWith('manifest-'));
    expect(manifests).toHaveLength(2);
    await directory.remove(`web/${manifests[1]!}`);
    const left = await listFiles(directory, 'web');
    const advice = /has lost its newest manifest: .* run `logstrata verify web --repair` to adopt/;
    archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    await expect(answer(store)).rejects.toThrow(advice);
    await expect(load(store, rows(10, 1, 'after'))).rejects.toThrow();
    const { damages } = await archive.verify('web');
    expect(damages).toMatchObject([
      { file: 'web', records: null, reason: expect.stringMatching(advice) as string },
    ]);
    await archive.close();
    const reader = await openToRead(directory);
    await expect(answer(await reader.agent('web', schema))).rejects.toThrow(advice);
    await reader.close();
    expect(await listFiles(directory, 'web')).toEqual(left);
    const report = await repairOn(directory);
    expect(report).toMatchObject({ manifest: 'rebuilt', basedOn: Number(manifests[0]!.slice(9)), lost: [] });
    expect(report.adopted.length).toBeGreaterThan(0);
    expect(await afterRepair(directory)).toEqual(all);
  });

  it('is not needed for a copy, which has one manifest, also if a crash leaves files once it is written to', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, several);
    const archive = await openOn(directory);
    const copy = new MemoryDirectory();
    await (await archive.agent('web', schema)).backup(backupFolderOn(copy));
    await archive.close();
    const manifestsOf = async (): Promise<number> =>
      (await copy.list('web')).filter((name) => name.startsWith('manifest-')).length;
    expect(await manifestsOf()).toBe(1);
    const reader = await openToRead(copy);
    expect(await reader.verify('web')).toMatchObject({ damages: [], records: lines.length });
    await reader.close();
    const first = await openOn(copy);
    await first.agent('web', schema);
    await first.close();
    expect(await manifestsOf()).toBe(2);
    const segment = (await listFiles(copy, 'web')).find((file) => file.startsWith('web/dt='))!;
    const unnamed = segment.replace(/[^/]*$/, '0123456789ab-00000.parquet');
    await copy.link(segment, unnamed);
    const second = await openOn(copy);
    expect(linesOf(await answer(await second.agent('web', schema)))).toEqual(lines);
    await second.close();
    expect(await listFiles(copy, 'web')).not.toContain(unnamed);
  });

  it('counts records once that lie both in a segment and in the segment that it was merged into', async () => {
    const directory = new MemoryDirectory();
    const archive = await openCompacting(directory);
    const store = await archive.agent('web', schema);
    for (let i = 0; i < 3; i++) await load(store, rows(40, 5, `load ${i}`));
    await archive.compactNext();
    const lines = linesOf(await answer(store));
    // Power is lost before the merged segments are renamed.
    const left = directory.crash('kept');
    for (const file of await listFiles(left, 'web'))
      if (file.endsWith('.left')) await left.rename(file, file.slice(0, -'.left'.length));
    expect((await listFiles(left, 'web')).filter((file) => file.endsWith('.parquet'))).toHaveLength(4);
    for (const name of await left.list('web'))
      if (name.startsWith('manifest-')) await left.remove(`web/${name}`);
    expect(await repairOn(left)).toMatchObject({ lost: [], records: 120 });
    expect(await afterRepair(left)).toEqual(lines);
  });

  it.each([
    { half: 'first', from: 0.1, to: 0.5 },
    { half: 'second', from: 0.5, to: 1 },
  ])(
    'keeps the intact row groups of a segment whose $half half is overwritten, and reports the others as lost',
    async ({ from, to }) => {
      const directory = new MemoryDirectory();
      const lines = await made(directory, async (store) => {
        await load(store, rows(3 * rowGroupRowsMax, 3, 'many'), 20_000);
      });
      const [file] = (await listFiles(directory, 'web')).filter((name) => name.endsWith('.parquet'));
      await overwrite(directory, file!, from, to);
      const report = await repairOn(directory);
      const lost = report.lost.reduce((sum, { records }) => sum + records!, 0);
      expect(lost).toBe(2 * rowGroupRowsMax);
      expect(report.records).toBe(rowGroupRowsMax);
      expect(report.quarantined).toMatchObject([{ file: file!.slice(4) }]);
      // The row groups stand in the order of their positions.
      const [whole, gone] =
        to === 1
          ? [lines.slice(0, rowGroupRowsMax), lines.slice(rowGroupRowsMax)]
          : [lines.slice(lost), lines.slice(0, lost)];
      expect(report.lost[0]!.first).toBe(cursorOf(gone[0]!));
      expect(report.lost.at(-1)!.last).toBe(cursorOf(gone.at(-1)!));
      // Compared as one text: a difference between so many lines is not worth listing.
      expect((await afterRepair(directory)).join('\n') === whole.join('\n')).toBe(true);
    },
    60_000,
  );

  it('puts aside a segment that is missing or unreadable, with and without its manifest', async () => {
    for (const manifestIsLost of [false, true]) {
      const directory = new MemoryDirectory();
      const lines = await made(directory, several);
      const segments = (await listFiles(directory, 'web')).filter((name) => name.endsWith('.parquet'));
      // Both its header and its footer are lost, with everything else.
      await overwrite(directory, segments[0]!, 0, 1);
      if (!manifestIsLost) await directory.remove(segments[1]!);
      for (const name of await directory.list('web'))
        if (manifestIsLost && name.startsWith('manifest-')) await directory.remove(`web/${name}`);
      const report = await repairOn(directory);
      expect(report.quarantined.map(({ file }) => `web/${file}`)).toEqual([segments[0]]);
      if (manifestIsLost) {
        expect(report.lost).toMatchObject([{ records: null, untilMs: report.lost[0]!.fromMs + 24 * hourMs }]);
      } else {
        const gone = report.lost.reduce((sum, { records }) => sum + records!, 0);
        expect(gone + report.records).toBe(lines.length);
      }
      const left = await afterRepair(directory);
      expect(left).toHaveLength(report.records);
      expect(lines.filter((line) => left.includes(line))).toEqual(left);
    }
  });

  it('keeps the intact batches of a damaged hot file', async () => {
    const directory = new MemoryDirectory();
    const lines = await made(directory, async (store) => {
      for (let i = 0; i < 5; i++) await append(store, rows(30, 1, `batch ${i}`), 'live');
    });
    const [file] = (await listFiles(directory, 'web')).filter((name) => name.endsWith('.arrows'));
    await overwrite(directory, file!, 0.5);
    const report = await repairOn(directory);
    expect(report).toMatchObject({ records: 120, lost: [{ records: 30, first: cursorOf(lines[60]!) }] });
    const left = await afterRepair(directory);
    expect(left).toEqual([...lines.slice(0, 60), ...lines.slice(90)]);
  });

  it('can be run again after a crash at any step, with the same outcome', async () => {
    const whole = new MemoryDirectory();
    const lines = await made(whole, several);
    const segments = (await listFiles(whole, 'web')).filter((name) => name.endsWith('.parquet'));
    await overwrite(whole, segments[0]!, 0.5, 1);
    const newest = (await whole.list('web')).filter((name) => name.startsWith('manifest-')).at(-1)!;
    await overwrite(whole, `web/${newest}`, 0.5);
    const modes: CrashMode[] = ['lost', 'kept', { seed: 1 }];
    let expected: string[] | undefined;
    for (let step = 1; step < 60; step += 2) {
      const directory = whole.crash('kept', { crashAtOperation: step });
      const failure = await repairOn(directory).catch((error: unknown) => error);
      if (failure instanceof Error && !(failure instanceof LogstrataError)) throw failure;
      const left = directory.crash(modes[step % modes.length]!);
      await repairOn(left);
      const reader = await openOn(left);
      const found = linesOf(await answer(await reader.agent('web', schema)));
      await reader.close();
      expected ??= found;
      expect(found).toEqual(expected);
      expect(lines.filter((line) => found.includes(line))).toEqual(found);
    }
    expect(expected!.length).toBeGreaterThan(200);
  });
});
