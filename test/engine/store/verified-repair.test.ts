import { beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { RepairReport } from '../../../engine/maintenance/repair.js';
import { batchFromRows, type Value } from '../../model/rows.js';
import type { Directory } from '../../../engine/store/disk/directory.js';
import { readHotSegment } from '../../../engine/store/hot/hot-segment-file.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, append, load, noExtras, noon, openOn, openToRead, schema } from './memory-archive.js';
import type { VerifyReport } from '../../../engine/maintenance/verify.js';

const records = 400;

function row(i: number): Value[] {
  const timeMs = noon - (records - i) * 61_000;
  return [BigInt(timeMs), BigInt(i % 3), i / 4, i % 2 === 0 ? 'GET /' : `line ${i * 7919}`];
}

const rows = Array.from({ length: records }, (_, i) => row(i));

/** Segments, merged and not merged, two hot files of five and two batches, and rejected lines of some of them. */
async function makeStore(): Promise<MemoryDirectory> {
  const directory = new MemoryDirectory();
  const rejected = [{ reason: 'no match', file: 'a.log', offset: 7, line: Buffer.from('what is this') }];
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  await load(store, rows.slice(0, 150));
  await append(store, rows.slice(150, 200), 'live');
  await store.compact();
  await load(store, rows.slice(200, 250));
  await store.append(batchFromRows(schema, rows.slice(250, 280)), { ...noExtras, rejected }, 'live');
  await append(store, rows.slice(280, 300), 'live');
  await archive.close();
  const again = await openOn(directory);
  const later = await again.agent('web', schema);
  for (let i = 300; i < records; i += 20) {
    const extras = { ...noExtras, rejected: i === 340 ? rejected : [] };
    await later.append(batchFromRows(schema, rows.slice(i, i + 20)), extras, 'live');
  }
  await again.close();
  return directory;
}

async function filesOf(directory: Directory): Promise<string[]> {
  const files: string[] = [];
  for (const name of await directory.list('web')) {
    if (name.startsWith('manifest-')) files.push(`web/${name}`);
    else if (/^(dt=.*|hot|rejected)$/.test(name))
      for (const file of await directory.list(`web/${name}`)) files.push(`web/${name}/${file}`);
  }
  return files;
}

async function change(
  directory: Directory,
  path: string,
  to: (bytes: Uint8Array) => Uint8Array,
): Promise<void> {
  const file = await directory.openRead(path);
  const bytes = to((await file.read(0, await file.size())).slice());
  await file.close();
  await directory.remove(path);
  const changed = await directory.create(path);
  await changed.write(0, bytes);
  await changed.close();
}

async function verified(directory: Directory): Promise<VerifyReport> {
  const reader = await openToRead(directory);
  try {
    return await reader.verify('web');
  } finally {
    await reader.close();
  }
}

async function repaired(directory: Directory): Promise<RepairReport> {
  const archive = await openOn(directory);
  try {
    return await archive.repair('web', { adopt: () => Promise.resolve(true), schema });
  } finally {
    await archive.close();
  }
}

/** A sum that is null as soon as one addend is unknown. */
function sumOf(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0);
}

const isHot = (path: string): boolean => path.startsWith('web/hot/');
const manifests = (): string[] => files.filter((path) => path.startsWith('web/manifest-'));

let whole: MemoryDirectory;
let files: string[] = [];
let lines: string[] = [];

async function linesOf(directory: Directory): Promise<string[]> {
  const reader = await openToRead(directory);
  try {
    return (await answer(await reader.agent('web', schema))).split('\n').slice(0, -1);
  } finally {
    await reader.close();
  }
}

beforeAll(async () => {
  whole = await makeStore();
  files = await filesOf(whole);
  lines = await linesOf(whole);
  expect(lines).toHaveLength(records);
  expect(
    files
      .map((file) => file.split('/')[1]!.slice(0, 3))
      .sort()
      .join(' '),
  ).toBe('dt= dt= hot hot man man rej rej');
});

/** Verifies, repairs and verifies again: returns the damage found, the records lost, and the state left. */
async function mend(
  directory: Directory,
): Promise<{ found: VerifyReport; report: RepairReport; left: string[] }> {
  const found = await verified(directory);
  const report = await repaired(directory);
  expect((await verified(directory)).damages).toEqual([]);
  const left = await linesOf(directory);
  expect(left).toHaveLength(report.records);
  expect(lines.filter((line) => left.includes(line))).toEqual(left);
  const lost = sumOf(report.lost.map((each) => each.records));
  if (lost !== null) expect(left.length + lost).toBe(records);
  else expect(left.length).toBeLessThan(records + 1);
  // The number of records that cannot be answered now may exceed the number lost for good, and is never smaller.
  const costs = sumOf(found.damages.map((damage) => damage.records));
  if (costs !== null) expect(costs).toBeGreaterThanOrEqual(lost ?? Infinity);
  expect(await repaired(directory)).toMatchObject({ changed: false, records: left.length });
  return { found, report, left };
}

const damages: Record<string, (bytes: Uint8Array, at: number) => Uint8Array> = {
  flip: (bytes, at) => bytes.map((byte, i) => (i === at ? byte ^ 0x10 : byte)),
  zero: (bytes, at) => bytes.fill(0, at, at + 200),
  cut: (bytes, at) => bytes.slice(0, at),
  append: (bytes) => Uint8Array.from([...bytes, 1, 2, 3]),
};

describe('verify after a repair', () => {
  it('finds nothing, and reported before the repair at least what the repair lost, whatever is damaged', async () => {
    const damage = fc.record({
      file: fc.nat(files.length - 1),
      kind: fc.constantFrom('gone', ...Object.keys(damages)),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (all) => {
        const directory = whole.crash('kept');
        const isNamed = manifests().some((path) => !all.some(({ file }) => files[file] === path));
        for (const { file, kind, at } of all) {
          const path = files[file]!;
          if (!(await filesOf(directory)).includes(path)) continue;
          if (kind !== 'gone')
            await change(directory, path, (bytes) => damages[kind]!(bytes, Math.floor(at * bytes.length)));
          // If the newest manifest is gone, or a file and every manifest that names it, nothing shows that they existed.
          else if (path !== manifests().at(-1) && (isNamed || manifests().includes(path)))
            await directory.remove(path);
        }
        await mend(directory);
      }),
      { numRuns: caseCount(30, 3000) },
    );
  }, 600_000);

  it('counts the records that a damaged batch of a hot file costs, in every hour that the batch covers', async () => {
    const directory = whole.crash('kept');
    for (const path of files.filter(isHot)) {
      const { batches } = await readHotSegment(directory, path, schema, null);
      const batch = batches.find(({ runs }) => runs.length > 1);
      if (batch === undefined) continue;
      const { offset, bytes: length, runs } = batch;
      await change(directory, path, (bytes) => bytes.fill(0, offset + 100, offset + length));
      const { found, report } = await mend(directory);
      const count = runs.reduce((sum, { rows: each }) => sum + each, 0);
      expect(found.damages).toMatchObject([{ file: path.slice(4), records: count }]);
      expect(found.damages[0]!.positions).toHaveLength(runs.length);
      expect(report.lost).toMatchObject(found.damages[0]!.positions);
      return;
    }
    throw new Error('no batch lies in several hours');
  });

  it('finds nothing if rejected lines that a batch of a hot file names were damaged or missing', async () => {
    for (const path of files.filter((file) => file.startsWith('web/rejected/')))
      for (const kind of ['zero', 'gone']) {
        const directory = whole.crash('kept');
        if (kind === 'gone') await directory.remove(path);
        else await change(directory, path, (bytes) => bytes.fill(0));
        const { found, report } = await mend(directory);
        expect(found.damages).toMatchObject([{ file: path.slice(4), records: 0 }]);
        expect(report).toMatchObject({ lost: [], records });
        expect(report.quarantined.map(({ file }) => file)).toEqual(kind === 'gone' ? [] : [path.slice(4)]);
      }
  });

  it('finds nothing after damage to an older manifest, which loses no records', async () => {
    const directory = whole.crash('kept');
    const [older] = manifests();
    await change(directory, older!, (bytes) => bytes.fill(0));
    const { found, report } = await mend(directory);
    expect(found.damages).toMatchObject([{ file: older!.slice(4), records: 0 }]);
    expect(report).toMatchObject({ changed: true, manifest: 'whole', lost: [], records });
  });

  it.each(['9007199254740992', '1000000000000000', '9999999999999999'])(
    'finds nothing after a manifest had the number %s, which no manifest can have',
    async (number) => {
      const directory = whole.crash('kept');
      const name = `manifest-${number}`;
      await directory.link(manifests().at(-1)!, `web/${name}`);
      await expect(linesOf(directory)).rejects.toThrow('has a number that no manifest can have');
      const { found, report } = await mend(directory);
      expect(found.damages).toMatchObject([{ file: name, records: null }]);
      expect(report).toMatchObject({ changed: true, lost: [], records });
      expect(report.quarantined.map(({ file }) => file)).toContain(name);
    },
  );

  it('finds nothing after an unclosed hot file lost batches that the manifest had counted', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    for (let i = 0; i < 3; i++) await append(store, rows.slice(i * 20, i * 20 + 20), 'live');
    // The manifest counts the batches so far when it stores a schema that adds no hot file.
    const session = await store.beginLoad();
    await session.append(batchFromRows(schema, rows.slice(100, 120)), 0);
    await session.commit({ checkpoints: [], counters: noExtras.counters });
    await append(store, rows.slice(60, 80), 'live');
    const crashed = directory.crash('kept');
    const path = (await filesOf(crashed)).find(isHot)!;
    const { batches } = await readHotSegment(crashed, path, schema, null);
    await change(crashed, path, (bytes) => bytes.slice(0, batches[1]!.offset + 100));
    const found = await verified(crashed);
    expect(found.damages).toMatchObject([{ file: path.slice(4), records: 40 }]);
    const report = await repaired(crashed);
    expect(report).toMatchObject({ records: 40, lost: found.damages[0]!.positions });
    expect((await verified(crashed)).damages).toEqual([]);
  });

  it('does not give the cursors of a lost batch again, although nothing shows what the batch held', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    // The second batch holds the only records of its hour.
    for (const [from, to] of [
      [300, 310],
      [0, 10],
      [320, 330],
    ] as const)
      await append(store, rows.slice(from, to), 'live');
    const given = new Set((await answer(store)).split('\n').map((line) => line.slice(12, 28)));
    const crashed = directory.crash('kept');
    const path = (await filesOf(crashed)).find(isHot)!;
    const { batches } = await readHotSegment(crashed, path, schema, null);
    await change(crashed, path, (bytes) => bytes.fill(0, batches[1]!.offset, batches[1]!.offset + 100));
    expect((await verified(crashed)).damages).toMatchObject([{ records: null }]);
    expect(await repaired(crashed)).toMatchObject({ records: 20, lost: [{ records: null }] });
    const before = await linesOf(crashed);
    const again = await openOn(crashed);
    const later = await again.agent('web', schema);
    await append(later, rows.slice(0, 10), 'live');
    const added = (await answer(later)).split('\n').filter((line) => line !== '' && !before.includes(line));
    expect(added).toHaveLength(10);
    for (const line of added) expect(given.has(line.slice(12, 28))).toBe(false);
    await again.close();
  });
});

describe('an agent with a missing hot file', () => {
  it('is damaged: its queries fail, and verify reports how many records are affected', async () => {
    const directory = whole.crash('kept');
    const path = files.find(isHot)!;
    const { batches } = await readHotSegment(directory, path, schema, null);
    await directory.remove(path);
    await expect(linesOf(directory)).rejects.toMatchObject({ code: 'damaged' });
    const writer = await openOn(directory);
    await expect((await writer.agent('web', schema)).stats()).rejects.toMatchObject({ code: 'damaged' });
    await writer.close();
    const { found } = await mend(directory);
    const count = batches.reduce((sum, { batch }) => sum + batch.length, 0);
    expect(found.damages).toMatchObject([{ file: path.slice(4), records: count }]);
  });
});
