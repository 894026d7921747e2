import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifestVersion } from '../../engine/storage/manifest-format.js';
import { recordsOf, run, workFolder } from '../cli/process.js';

const agent = `fields:
  - { name: time, timestamp: {} }
  - { name: n, type: int }
  - { name: took, type: float }
  - { name: text }
file: { path: 'logs/app\\.log', format: json }
`;

const versions = readdirSync(import.meta.dirname).filter((name) => name.startsWith('version-'));

/** A copy of a frozen store, in a folder with its agent. */
function thawed(version: string): string {
  const folder = workFolder();
  cpSync(join(import.meta.dirname, version, 'app'), join(folder, 'data/store/app'), { recursive: true });
  writeFileSync(join(folder, 'agents/app.yaml'), agent);
  return folder;
}

async function all(folder: string, words: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await run(folder, ['query', 'app', ...words, '--limit', '1000']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

it('there is a store of every format version', () => {
  const wanted = Array.from({ length: manifestVersion }, (_, i) => `version-${i + 1}`);
  expect(versions.sort()).toEqual(wanted);
});

describe.each(versions)('a store of %s', (version) => {
  const answer = readFileSync(join(import.meta.dirname, version, 'answer.jsonl'), 'utf8');

  it('answers as it did, and is whole', async () => {
    const folder = thawed(version);
    expect(answer.split('\n')).toHaveLength(81);
    expect(await all(folder)).toBe(answer);
    const found = recordsOf(await all(folder, ['text__like=OF RECORD 1', 'n__lt=15']));
    expect(found.map(({ n }) => n)).toEqual([1, 11, 12, 13, 14]);
    const verified = await run(folder, ['verify', 'app', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ records: 80, damages: [] });
    expect(verified.code).toBe(0);
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
