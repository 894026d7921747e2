import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifestVersion } from '../../engine/store/manifest/manifest-format.js';
import { run } from '../cli/here.js';
import { recordsOf, workFolder } from '../cli/process.js';

const agent = `fields:
  - { name: time, timestamp: {} }
  - { name: n, type: int }
  - { name: took, type: float }
  - { name: text }
file: { path: 'logs/app\\.log', format: json }
`;

const versions = readdirSync(import.meta.dirname).filter((name) => name.startsWith('version-'));

/** A copy of a frozen store, in a folder with its agent. */
function thawed(version: string, definition = agent): string {
  const folder = workFolder();
  cpSync(join(import.meta.dirname, version, 'app'), join(folder, 'data/store/app'), { recursive: true });
  writeFileSync(join(folder, 'agents/app.yaml'), definition);
  return folder;
}

async function all(folder: string, words: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await run(folder, ['query', 'app', ...words, '--limit', '5000']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

it('there is a frozen store of the current version', () => {
  expect(versions).toEqual([`version-${manifestVersion}`]);
});

describe.each(versions)('a store of %s', (version) => {
  const answer = readFileSync(join(import.meta.dirname, version, 'answer.jsonl'), 'utf8');

  it('gives the same answers as before, and has no damage', async () => {
    const folder = thawed(version);
    expect(answer.split('\n')).toHaveLength(81);
    expect(await all(folder)).toBe(answer);
    const found = recordsOf(await all(folder, ['text__like=OF RECORD 1', 'n__lt=15']));
    expect(found.map(({ n }) => n)).toEqual([1, 11, 12, 13, 14]);
    const verified = await run(folder, ['verify', 'app', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ records: 80, damages: [] });
    expect(verified.code).toBe(0);
  });

  it('recognises the file that was loaded into it, and loads only its new lines', async () => {
    const folder = thawed(version);
    const log = join(folder, 'renamed.log');
    writeFileSync(log, readFileSync(join(import.meta.dirname, 'loaded.jsonl')));
    const again = await run(folder, ['load', 'app', log]);
    expect(again.stdout + again.stderr).toContain('already stored');
    appendFileSync(log, '{"time":"2026-11-20T02:00:00.000Z","n":80}\n');
    expect((await run(folder, ['load', 'app', log])).code).toBe(0);
    expect(recordsOf(await all(folder)).map(({ n }) => n)).toEqual([
      ...recordsOf(answer).map(({ n }) => n),
      80,
    ]);
  });

  it('can be added to, compacted and repaired, with the same cursors', async () => {
    const folder = thawed(version);
    const time = '2026-11-20T02:00:00.000Z';
    const added = await run(folder, ['load', 'app', '-'], `{"time":"${time}","n":80}\n`);
    expect(added.code).toBe(0);
    const compacted = await run(folder, ['compact', 'app', '--codec', 'zstd', '--json']);
    expect(compacted.code).toBe(0);
    const [records, before] = [recordsOf(await all(folder)), recordsOf(answer)];
    expect(records.slice(0, 80)).toEqual(before);
    expect(records[80]).toMatchObject({ n: 80, time: Date.parse(time), text: null });
    const newest = readdirSync(join(folder, 'data/store/app')).filter((name) => name.startsWith('manifest-'));
    const manifest = readFileSync(join(folder, 'data/store/app', newest.sort().at(-1)!), 'utf8');
    expect(manifest).toMatch(new RegExp(`^logstrata-manifest ${manifestVersion} `));
    expect(existsSync(join(folder, 'data/store/app/rejected'))).toBe(true);
    const repaired = await run(folder, ['verify', 'app', '--repair', '--yes']);
    expect(repaired.code).toBe(0);
    expect(recordsOf(await all(folder))).toEqual(records);
  });
});

it.each(versions)(
  'a store of %s is complete after its manifests and the footers of its segments are lost',
  async (version) => {
    const folder = thawed(version);
    const store = join(folder, 'data/store/app');
    for (const name of readdirSync(store, { recursive: true, encoding: 'utf8' })) {
      if (name.startsWith('manifest-')) rmSync(join(store, name));
      if (!name.endsWith('.parquet')) continue;
      const bytes = readFileSync(join(store, name));
      const footerBytes = bytes.readUInt32LE(bytes.length - 8) + 8;
      writeFileSync(join(store, name), bytes.fill(0, bytes.length - footerBytes));
    }
    const repaired = await run(folder, ['verify', 'app', '--repair', '--yes']);
    expect(repaired.stdout).not.toContain('LOST');
    expect(repaired.code).toBe(0);
    expect(await all(folder)).toBe(readFileSync(join(import.meta.dirname, version, 'answer.jsonl'), 'utf8'));
  },
);

describe.each([
  { name: 'loads', tells: "25 records; to restore them: logstrata load app '/var/log/shop/a.log'" },
  { name: `version-${manifestVersion}`, tells: '25 lost records came from no known load' },
])('a store of $name that has lost a day', ({ name, tells }) => {
  it('restores exactly those records from the file that was loaded into it, if it knows which they are', async () => {
    const folder = thawed(name);
    const answer = await all(folder);
    const store = join(folder, 'data/store/app');
    const [day] = readdirSync(store)
      .filter((file) => file.startsWith('dt='))
      .sort();
    rmSync(join(store, day!), { recursive: true });
    const repaired = await run(folder, ['verify', 'app', '--repair', '--yes']);
    expect(repaired.stdout).toContain(tells);
    expect(repaired.code).toBe(1);
    const left = await all(folder);
    expect([answer, left].map((text) => text.split('\n').length)).toEqual([81, 56]);
    const log = join(folder, 'renamed.log');
    writeFileSync(log, readFileSync(join(import.meta.dirname, 'loaded.jsonl')));
    const knows = name === 'loads';
    expect((await run(folder, ['load', 'app', log])).code).toBe(0);
    expect(await all(folder)).toBe(knows ? answer : left);
  });
});

describe('a store with columns of every kind, gram filters, both codecs and a field that has changed its type', () => {
  const place = join(import.meta.dirname, 'columns');
  const right = readFileSync(join(place, 'answer.sha256'), 'utf8').trim();
  const opened = (): string => thawed('columns', readFileSync(join(place, 'agent.yaml'), 'utf8'));
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

  it('gives the same answers as before, and has no damage', async () => {
    const folder = opened();
    expect(hash(await all(folder))).toBe(right);
    const counts: Record<string, number> = {
      'id__like=8183502C8EFA': 1,
      // In the records, the first letter of the second word is the Kelvin sign.
      'message__like=elvin k ': 252,
      'path__exact=/items/259': 3,
      // An integer in the older segments.
      'code__prefix=1': 96,
    };
    const found: Record<string, number> = {};
    for (const filter of Object.keys(counts)) found[filter] = recordsOf(await all(folder, [filter])).length;
    expect(found).toEqual(counts);
    const explained = await run(folder, ['query', 'app', 'id__like=abcdef012345', '--explain']);
    expect(explained.stderr + explained.stdout).toMatch(/ruled out by grams +3\n/);
    const verified = await run(folder, ['verify', 'app', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ records: 1020, damages: [], unnamedFiles: [] });
  });

  it('gives the same answers after compaction, and after its manifest is rebuilt', async () => {
    const folder = opened();
    expect((await run(folder, ['compact', 'app', '--codec', 'zstd'])).code).toBe(0);
    expect(hash(await all(folder))).toBe(right);
    const lost = opened();
    const store = join(lost, 'data/store/app');
    for (const name of readdirSync(store)) if (name.startsWith('manifest-')) rmSync(join(store, name));
    expect((await run(lost, ['verify', 'app', '--repair', '--yes'])).code).toBe(0);
    expect(hash(await all(lost))).toBe(right);
  });
});
