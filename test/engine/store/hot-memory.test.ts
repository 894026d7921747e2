import { expect, it } from 'vitest';
import { seed } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { batchFromRows } from '../../model/rows.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { HotRows } from '../../../engine/store/reading/hot-rows.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { SpareBuilders, spareBuilders } from '../../../engine/columns/batch-builder.js';
import type { Value } from '../../model/dataset.js';
import { seededRandom } from '../../model/random.js';
import { columnOf } from '../../parquet/segment-sample.js';
import { append, noon, openOn, schema } from './memory-archive.js';
import type { Scan } from '../../../engine/scan/scan.js';

const decoder = new TextDecoder();

/** Enough rows that the columns stay cached. */
const manyRows = 4500;

function rows(count: number, mark: string): Value[][] {
  return Array.from({ length: count }, (_, i) => [BigInt(noon + i), BigInt(i % 7), i / 2, `${mark} ${i}`]);
}

const messageOf = (line: string): string => (JSON.parse(line) as { message: string }).message;

/** An answer that is read piece by piece. */
class Reading {
  private readonly pieces: AsyncIterator<Uint8Array>;
  private text = '';

  constructor(
    scan: Scan,
    private readonly expected: readonly string[],
  ) {
    this.pieces = scan.lines[Symbol.asyncIterator]();
  }

  static async of(store: AgentStore, expected: readonly string[]): Promise<Reading> {
    const scan = await store.scan({ predicates: [], limit: 1_000_000 }, { pieceBytes: 64 * 1024 });
    return new Reading(scan, [...expected]);
  }

  /** Reads a piece. Returns false at the end of the answer, which must have all rows that were there at its beginning. */
  async take(): Promise<boolean> {
    const { done, value } = await this.pieces.next();
    if (done !== true) {
      this.text += decoder.decode(value);
      return true;
    }
    const lines = this.text === '' ? [] : this.text.trimEnd().split('\n');
    expect(lines.map(messageOf)).toEqual(this.expected);
    return false;
  }

  async finish(): Promise<void> {
    while (await this.take());
  }
}

it('reuses the memory of sealed rows once no answer needs them any more', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  await append(store, rows(manyRows, 'first'), 'live');
  const before = spareBuilders.memoryBytes;
  await store.compact();
  const kept = spareBuilders.memoryBytes - before;
  expect(kept).toBeGreaterThan(1024 * 1024);
  await append(store, rows(manyRows, 'second'), 'live');
  expect(spareBuilders.memoryBytes).toBe(before);

  const all = [...rows(manyRows, 'first'), ...rows(manyRows, 'second')].map((row) => String(row[3]));
  const reading = await Reading.of(store, all);
  await reading.take();
  await store.compact();
  expect(spareBuilders.memoryBytes).toBe(before);
  await append(store, rows(manyRows, 'third'), 'live');
  await reading.finish();
  expect(spareBuilders.memoryBytes).toBe(before + kept);
  await archive.close();
});

it(`answers with the rows that were there when a query began, while rows are appended and sealed (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const stored: string[] = [];
  let readings: Reading[] = [];
  for (let step = 0; step < 60; step++) {
    const kind = random();
    if (kind < 0.25) {
      const count = random() < 0.5 ? manyRows : 1 + Math.floor(random() * 100);
      const added = rows(count, `${step}`);
      await append(store, added, 'live');
      stored.push(...added.map((row) => String(row[3])));
    } else if (kind < 0.4) {
      await store.compact();
    } else if (kind < 0.6) {
      readings.push(await Reading.of(store, stored));
    } else {
      const going: Reading[] = [];
      for (const reading of readings) if (await reading.take()) going.push(reading);
      readings = going;
    }
  }
  for (const reading of readings) await reading.finish();
  await archive.close();
});

it('refuses to read rows whose memory was reused', async () => {
  const hot = new HotRows(schema, 'hot/1.arrows');
  hot.append(batchFromRows(schema, rows(10, 'x')), [{ partition: 1, firstOrdinal: 1, rows: 10 }]);
  const open = await hot.rowGroup(schema, 10).open();
  hot.giveBack();
  await expect(columnOf(open, 0)).rejects.toThrow('hot rows are read while a snapshot holds them');
  expect(() => hot.giveBack()).toThrow('given back once');
});

it('keeps a limited number of builders of sealed rows, and only for fields of their types', () => {
  const ints = makeSchema(['a', 'b', 'c'].map((name) => ({ name, type: 'int' })));
  const texts = makeSchema(['a', 'b', 'c'].map((name) => ({ name, type: 'string' })));
  const none = new SpareBuilders(0);
  const batch = batchFromRows(
    ints,
    Array.from({ length: 5000 }, () => [1, 2, 3]),
  );
  const filled = Array.from({ length: 4 }, () => {
    const builder = none.take(ints);
    builder.append(batch);
    return builder;
  });
  const bytes = filled[0]!.memoryBytes;
  const spares = new SpareBuilders(3 * bytes);
  spares.giveBack(none.take(ints));
  expect(spares.memoryBytes).toBe(0);
  for (const builder of filled) spares.giveBack(builder);
  expect(spares.memoryBytes).toBe(3 * bytes);
  expect(filled).not.toContain(spares.take(texts));
  expect(spares.memoryBytes).toBe(3 * bytes);
  const again = [spares.take(ints), spares.take(ints), spares.take(ints)];
  expect(again).toEqual([filled[3], filled[2], filled[1]]);
  expect(again[0]!.rows).toBe(0);
  expect(spares.memoryBytes).toBe(0);
});
