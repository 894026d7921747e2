import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Replaces old objects by new ones, and prints the largest size of the heap. */
const script = `
import { getHeapStatistics } from 'node:v8';
const live = Array.from({ length: 300_000 }, (_, i) => ({ numbers: [i] }));
gc();
let most = 0;
for (let i = 0; i < 3_000_000; i++) {
  live[(i * 7919) % live.length] = { numbers: [i] };
  if (i % 10_000 === 0) most = Math.max(most, getHeapStatistics().used_heap_size);
}
console.log(most);
`;

/** Garbage is collected when the heap has grown to its limit, not in pieces before, so that the sizes do not depend on the time this takes. */
const collectAtOnce = ['--single-threaded-gc', '--no-incremental-marking', '--expose-gc'];

async function heapBytes(before: string): Promise<number> {
  const args = [...collectAtOnce, '--input-type=module', '--eval', `${before}\n${script}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

test('a heap in which objects are replaced holds less garbage when it grows slowly', async () => {
  const { href } = new URL('../../dist/server/cli/heap-growth.js', import.meta.url);
  const [usual, slow] = await Promise.all([
    heapBytes(''),
    heapBytes(`import { growHeapsSlowly } from '${href}'; growHeapsSlowly();`),
  ]);
  expect(slow).toBeLessThan(0.85 * usual);
});
