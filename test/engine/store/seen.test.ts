import { expect, it } from 'vitest';
import type { AgentStore, Query, SeenState } from '../../../engine/index.js';
import { parseCursor } from '../../../engine/core/cursor.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, append, load, noon, openOn, openToRead, schema } from './memory-archive.js';

const hourMs = 3_600_000;
const all: Query = { limit: Number.MAX_SAFE_INTEGER, predicates: [] };

async function linesSeen(store: AgentStore, seen: SeenState, query: Query = all): Promise<string> {
  let text = '';
  for await (const piece of (await store.scanSeen(query, seen)).lines) text += Buffer.from(piece).toString();
  return text;
}

it('a scan of an earlier state gives its records, after a position too, however the archive has changed since', async () => {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  const add = (from: number, count: number, hoursAgo: number, how: 'live' | 'load'): Promise<unknown> => {
    const rows = Array.from({ length: count }, (_, i) => [
      BigInt(noon - hoursAgo * hourMs),
      BigInt(from + i),
      null,
      `record ${from + i}`,
    ]);
    return how === 'live' ? append(store, rows, 'live') : load(store, rows);
  };
  await add(0, 20, 0, 'live');
  await add(20, 20, 5, 'load');
  const seen = await store.seen();
  const before = await answer(store);
  await add(40, 10, 0, 'live');
  await add(50, 10, 3, 'load');
  await store.compact();
  const reader = await openToRead(directory);
  for (const from of [store, await reader.agent('web', schema)]) {
    expect(await linesSeen(from, seen)).toBe(before);
    const lines = before.split('\n');
    const after = parseCursor(lines[24]!.slice(12, 28))!;
    expect(await linesSeen(from, seen, { ...all, after })).toBe(lines.slice(25).join('\n'));
    const predicates = [{ kind: 'int', field: 1, op: 'gte', value: 15n }] as const;
    const wanted = lines.filter((line) => line !== '' && JSON.parse(line).status >= 15);
    expect(await linesSeen(from, seen, { ...all, predicates })).toBe(wanted.map((l) => `${l}\n`).join(''));
  }
  await archive.redefine('web', makeSchema(schema.fields.slice(0, 2)), undefined);
  await expect(linesSeen(store, seen)).rejects.toMatchObject({ code: 'conflict' });
  await reader.close();
  await archive.close();
});
