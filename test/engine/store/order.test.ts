import { describe, expect, it } from 'vitest';
import { formatCursor } from '../../../engine/core/cursor.js';
import { lateRowsMax, rowGroupRowsMax } from '../../../engine/core/limits.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import type { Value } from '../../model/dataset.js';
import { seededRandom, between } from '../../model/random.js';
import { answer, load, noon, openOn, schema } from './memory-archive.js';
import { ModelStore } from './model-store.js';
import { expectEqual } from '../../expect-equal.js';

const day = 86_400_000;
const start = noon - 2 * day;
/** More rows than a load holds back to sort slightly late rows. */
const count = 2.5 * rowGroupRowsMax;

/** Row `i` of a log whose rows are 1.5 s apart, so that they cover more than two days; every three rows share a time. */
function row(i: number, timeMs = start + Math.floor(i / 3) * 4500): Value[] {
  return [BigInt(timeMs), BigInt(i), null, i % 5 === 0 ? null : `row ${i}`];
}

/** The cursor and number of each row that the archive should return, according to a model. */
function expected(commits: readonly (readonly Value[][])[]): string[] {
  const model = new ModelStore(schema);
  for (const rows of commits) model.load(rows, noon);
  return model.records.map(({ position, values }) => `${formatCursor(position)} ${String(values[1])}`);
}

function told(lines: string): string[] {
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => {
      const record = JSON.parse(line) as { _cursor: string; status: number };
      return `${record._cursor} ${record.status}`;
    });
}

/** Loads the commits, and checks the answer and the files. Returns the statistics of the store. */
async function loadAndCompare(
  commits: readonly (readonly Value[][])[],
  batchRows = 1000,
): Promise<{ segments: number; rowGroups: number }> {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory, () => noon, new WorkerPool(0));
  const store = await archive.agent('web', schema);
  for (const rows of commits) await load(store, rows, batchRows);
  const { segments, rowGroups } = await store.stats();
  const wanted = expected(commits);
  expectEqual(told(await answer(store)), wanted);
  expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
  expect(await directory.list('web/building').catch(() => [])).toEqual([]);
  await store.compact();
  expectEqual(told(await answer(store)), wanted);
  await archive.close();
  return { segments, rowGroups };
}

const ordered = Array.from({ length: count }, (_, i) => row(i));

describe('rows of one load', () => {
  it('that come slightly late are put in their place', async () => {
    const random = seededRandom(11);
    const rows = ordered.map((_, i) =>
      row(i, start + Math.floor(i / 3) * 4500 - between(random, 0, 900_000)),
    );
    const { segments } = await loadAndCompare([rows]);
    expect(segments).toBe(3);
  });

  it('of which a few come far too late get segments of their own, ordered among the others by their positions', async () => {
    const random = seededRandom(12);
    const rows: Value[][] = [];
    for (let i = 0; i < count; i++) {
      rows.push(row(i));
      // Many share the time of rows that were written long before, and some are earlier than all of them.
      if (i > count - 3000 && i % 3 === 0) {
        const back = between(random, -2000, count - rowGroupRowsMax);
        rows.push(row(count + i, start + Math.floor(back / 3) * 4500));
      }
    }
    const { segments } = await loadAndCompare([rows, [row(1), row(count / 2)]]);
    expect(segments).toBeGreaterThan(3 + 2);
  });

  it('of which many come late are all sorted, including those that were already written', async () => {
    const late = Array.from({ length: lateRowsMax * 3 }, (_, i) => row(count + i, start + i * 2000));
    const half = ordered.slice(0, 2.2 * rowGroupRowsMax);
    const { segments } = await loadAndCompare([[...half, ...late, ...ordered.slice(half.length)]]);
    expect(segments).toBe(3);
  });

  it('that come in order are written while later ones are still being read', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory, () => noon, new WorkerPool(0));
    const store = await archive.agent('web', schema);
    const unit = await store.beginLoad();
    const { batchFromRows } = await import('../../model/rows.js');
    for (let i = 0; i < count; i += 4096) {
      await unit.append(batchFromRows(schema, ordered.slice(i, i + 4096)), 0);
    }
    const [building] = await directory.list('web/building');
    const files = await directory.list(`web/building/${building}`);
    expect(files.filter((name) => name.endsWith('.parquet')).length).toBeGreaterThan(0);
    await unit.abort();
    expect(await answer(store)).toBe('');
    expect(await directory.list('web/building').catch(() => [])).toEqual([]);
    await archive.close();
  });
});
