import { describe, expect, it } from 'vitest';
import { isLong, isWhole } from '../../cases.js';
import type { Archive } from '../../../engine/archive/archive.js';
import { isLogstrataError } from '../../../engine/core/errors.js';
import { batchFromRows } from '../../model/rows.js';
import type { Predicate } from '../../../engine/scan/query.js';
import type { Directory } from '../../../engine/store/disk/directory.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, append, load, noExtras, noon, openOn, openToRead, schema } from './memory-archive.js';

function row(i: number): [bigint, bigint, number, string] {
  return [
    BigInt(noon - (40 - i) * 600_000),
    BigInt(i % 3),
    i / 4,
    i % 2 === 0 ? 'GET /' : `unusual line ${i * 7919}`,
  ];
}

/** Two sealed segments, two hot files and rejected lines, closed as by an orderly end of the process. */
async function smallStore(): Promise<MemoryDirectory> {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  const rows = Array.from({ length: 40 }, (_, i) => row(i));
  await load(store, rows.slice(0, 15));
  await append(store, rows.slice(15, 20), 'live');
  await store.compact();
  await load(store, rows.slice(20, 25));
  const rejected = [{ reason: 'no match', file: 'a.log', offset: 7, line: Buffer.from('what is this') }];
  await store.append(batchFromRows(schema, rows.slice(25, 30)), { ...noExtras, rejected }, 'live');
  await append(store, rows.slice(30, 35), 'live');
  await archive.close();
  const again = await openOn(directory);
  await append(await again.agent('web', schema), rows.slice(35), 'live');
  await again.close();
  return directory;
}

async function files(directory: Directory, folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await directory.list(folder)) {
    const path = folder === '' ? name : `${folder}/${name}`;
    const size = await directory.size(path).catch(() => undefined);
    if (size === undefined) found.push(...(await files(directory, path)));
    else found.push(path);
  }
  return found;
}

const questions: readonly { readonly limit: number; readonly predicates: readonly Predicate[] }[] = [
  { limit: 1000, predicates: [] },
  { limit: 3, predicates: [] },
  { limit: 1000, predicates: [{ kind: 'string', field: 3, op: 'like', value: 'line 7919' }] },
  { limit: 1000, predicates: [{ kind: 'int', field: 1, op: 'eq', value: 2n }] },
];

async function answers(directory: Directory): Promise<(string | 'failed')[]> {
  let archive: Archive | undefined;
  try {
    archive = await openToRead(directory);
    const store = await archive.agent('web');
    const given: string[] = [];
    for (const question of questions) {
      given.push(
        await answer(store, question).catch((error: unknown) => {
          if (!isLogstrataError(error)) throw error;
          return 'failed';
        }),
      );
    }
    return given;
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    return questions.map(() => 'failed');
  } finally {
    await archive?.close();
  }
}

async function damagesFound(directory: Directory): Promise<number> {
  const archive = await openToRead(directory);
  try {
    return (await (await archive.agent('web', schema)).verify()).damages.length;
  } finally {
    await archive.close();
  }
}

async function flip(directory: Directory, path: string, at: number, bit: number): Promise<void> {
  const reader = await directory.openRead(path);
  const byte = (await reader.read(at, 1))[0]!;
  await reader.close();
  const writer = await directory.openWrite(path);
  await writer.write(at, Uint8Array.of(byte ^ (1 << bit)));
  await writer.close();
}

describe('a damaged store', () => {
  it('returns the right answer or an error whichever byte is flipped, and verify finds the damage', async () => {
    const directory = await smallStore();
    const right = await answers(directory);
    expect(right).not.toContain('failed');
    expect(await damagesFound(directory)).toBe(0);
    const paths = await files(directory, '');
    expect(paths.filter((path) => path.endsWith('.parquet'))).toHaveLength(2);
    expect(paths.filter((path) => path.endsWith('.arrows'))).toHaveLength(2);
    expect(paths.filter((path) => path.endsWith('.jsonl'))).toHaveLength(1);
    let flips = 0;
    for (const path of paths) {
      const size = await directory.size(path);
      // The header of a segment, its first 2048 bytes, has one checksum, and no answer depends on it.
      const isHeader = (at: number): boolean => path.endsWith('.parquet') && at < 2048;
      const stride = (at: number): number => (isLong ? 1 : isHeader(at) ? 55 : isWhole ? 5 : 25);
      for (let at = flips % 5; at < size; at += stride(at), flips++) {
        const bit = (at * 5 + flips) % 8;
        await flip(directory, path, at, bit);
        const given = await answers(directory);
        const wrong = given.filter((text, i) => text !== 'failed' && text !== right[i]);
        expect(wrong, `${path}, byte ${at}, bit ${bit}`).toEqual([]);
        expect(await damagesFound(directory), `${path}, byte ${at}, bit ${bit}`).toBeGreaterThan(0);
        await flip(directory, path, at, bit);
      }
    }
    expect(await answers(directory)).toEqual(right);
  });

  it('fails or answers completely whichever file is cut short or missing', async () => {
    const directory = await smallStore();
    const right = await answers(directory);
    for (const path of await files(directory, '')) {
      const bytes = await readAll(directory, path);
      for (const length of [0, 1, bytes.length >> 1, bytes.length - 1]) {
        const writer = await directory.openWrite(path);
        await writer.truncate(length);
        await writer.close();
        for (const [i, given] of (await answers(directory)).entries()) {
          if (given !== 'failed') expect(given, `${path} cut to ${length}`).toBe(right[i]);
        }
        expect(await damagesFound(directory), `${path} cut to ${length}`).toBeGreaterThan(0);
        const restorer = await directory.openWrite(path);
        await restorer.write(0, bytes);
        await restorer.close();
      }
    }
  });
});

async function readAll(directory: Directory, path: string): Promise<Uint8Array> {
  const file = await directory.openRead(path);
  const bytes = await file.read(0, await file.size());
  await file.close();
  return bytes;
}
