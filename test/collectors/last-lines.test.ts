import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { follow, lineOf, lines } from './followed-folder.js';

it('last lines without an end are stored completely if they exceed one commit', async () => {
  const followed = await follow();
  const names = [...'abcdefghij'].map((letter) => followed.path(`${letter}.log`));
  const text = 'x'.repeat(900_000);
  for (const [n, path] of names.entries()) writeFileSync(path, `${lineOf(n)} ${text}`);
  await followed.collect();
  for (const path of names) renameSync(path, `${path}.1`);
  await followed.settle();
  const records = (await followed.records()).sort((a, b) => a.n - b.n);
  expect(records.map(({ n, text: { length } }) => ({ n, length }))).toEqual(
    names.map((_, n) => ({ n, length: `some text of line ${n} ${text}`.length })),
  );
});

it('the rest of a line whose beginning was stored without an end is rejected, even if it could be read as a record', async () => {
  const followed = await follow();
  const path = followed.path('web.log');
  writeFileSync(path, `${lines(0, 1)}${lineOf(1)}`);
  await followed.collect();
  renameSync(path, `${path}.1`);
  await followed.settle();
  expect(await followed.numbers()).toEqual([0, 1]);
  appendFileSync(`${path}.1`, `${lines(7, 8)}${lines(2, 3)}`);
  await followed.settle();
  expect(await followed.numbers()).toEqual([0, 1, 2]);
  expect(followed.collector.status()).toMatchObject({ records: 3, rejected: 1 });
});
