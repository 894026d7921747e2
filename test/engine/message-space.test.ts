import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { leasedMemoryBytes } from '../../engine/core/memory-lease.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { encodeBatchMessage } from '../../engine/store/hot/arrow-batch.js';
import { MessageSpace } from '../../engine/store/hot/hot-segment-file.js';
import { sealedMessageBytes } from '../../engine/store/hot/sealed-message.js';
import { batchFromRows } from '../model/rows.js';
import { datasets, strangeSchema } from '../model/arbitraries.js';

it('lays out the same bytes in reused memory as in new memory', () =>
  fc.assert(
    fc.property(datasets(40), fc.nat(255), fc.string(), (dataset, dirt, meta) => {
      const batch = batchFromRows(
        strangeSchema,
        dataset.records.map(({ values }) => values),
      );
      const cursors = BigInt64Array.from(dataset.records, (_, i) => BigInt(i));
      const fresh = encodeBatchMessage(strangeSchema, batch, cursors, meta, 4096);
      const dirty = (sizeBytes: number) => new Uint8Array(sizeBytes).fill(dirt);
      expect(encodeBatchMessage(strangeSchema, batch, cursors, meta, 4096, dirty)).toEqual(fresh);
      expect(sealedMessageBytes(fresh, 0, 4096)).toBe(fresh.length);
    }),
  ));

it('lends the same memory to one message after another, and never to two at once', async () => {
  const space = new MessageSpace();
  const bufferOf = (sizeBytes: number): Promise<ArrayBufferLike> =>
    space.use((allocate) => Promise.resolve(allocate(sizeBytes).buffer));
  const first = await bufferOf(1000);
  expect(await bufferOf(500)).toBe(first);
  const larger = await bufferOf(2000);
  expect(larger).not.toBe(first);
  expect(await bufferOf(1000)).toBe(larger);

  let end = (): void => {};
  const held = space.use(async (allocate) => {
    const message = allocate(2000).fill(1);
    await new Promise<void>((resolve) => (end = resolve));
    return message;
  });
  const beside = await space.use((allocate) => Promise.resolve(allocate(2000).fill(2).buffer));
  expect(beside).not.toBe(larger);
  end();
  const message = await held;
  expect(message.buffer).toBe(larger);
  expect(message.every((byte) => byte === 1)).toBe(true);

  await expect(space.use(() => Promise.reject(new Error('the disk is full')))).rejects.toThrow(
    'the disk is full',
  );
  expect(await bufferOf(2000)).toBe(beside);
});

it('does not keep the memory of a very large message', async () => {
  const space = new MessageSpace();
  const take = (sizeBytes: number) => space.use((allocate) => Promise.resolve(allocate(sizeBytes).buffer));
  const small = await take(1000);
  const huge = await take(17 * 1024 * 1024);
  expect(await take(1000)).toBe(small);
  expect(await take(17 * 1024 * 1024)).not.toBe(huge);
});

it('lays out a message above a certain size in memory that is leased until the message is written', () =>
  fc.assert(
    fc.asyncProperty(datasets(40), fc.integer({ min: 1000, max: 3000 }), async (dataset, copies) => {
      fc.pre(dataset.records.length > 0);
      const rows = dataset.records.map(({ values }) => values);
      const batch = batchFromRows(strangeSchema, Array.from({ length: copies }, () => rows).flat());
      const cursors = BigInt64Array.from({ length: batch.length }, (_, i) => BigInt(i));
      const before = leasedMemoryBytes();
      const fresh = encodeBatchMessage(strangeSchema, batch, cursors, '{}', 4096);
      expect(fresh.length).toBeGreaterThan(32 * 1024);
      await new MessageSpace().use((allocate) => {
        const message = encodeBatchMessage(strangeSchema, batch, cursors, '{}', 4096, allocate);
        expect(leasedMemoryBytes() - before).toBeGreaterThanOrEqual(message.length);
        expect(sharedMemory().holds(message)).toBe(true);
        expect(Buffer.compare(message, fresh)).toBe(0);
        expect(sealedMessageBytes(message, 0, 4096)).toBe(message.length);
        return Promise.resolve();
      });
      expect(leasedMemoryBytes()).toBe(before);
    }),
    { numRuns: caseCount(20) },
  ));
