import { appendFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { follow, lines, type LogLine } from './followed-folder.js';

it('tells once a minute which lines were rejected and which values unreadable, with counts, reason and an example', async () => {
  const followed = await follow();
  const path = followed.path('web.log');
  const told = (): LogLine[] => followed.log.filter(({ message }) => message.startsWith('lines of logs'));
  // Dashes stand for no value.
  const dashes = '2026-11-20T10:00:00Z - no number\n'.repeat(3);
  writeFileSync(path, `${lines(0, 1)}${dashes}`);
  await followed.collect();
  expect(told()).toEqual([]);
  const nonsense = 'no\u001brecord'.repeat(40);
  appendFileSync(path, `${dashes}${nonsense}\nnone\ntoday twelve text\nnow 1 text\n`);
  await followed.collect();
  expect(told()).toEqual([
    {
      level: 'warn',
      facts: {
        agent: 'app',
        rejected: 2,
        unreadable: 6,
        nulBytes: 0,
        file: path,
        offset: `${lines(0, 1)}${dashes.repeat(2)}`.length,
      },
      message:
        `lines of logs: 2 rejected, such as "${nonsense.slice(0, 200).replaceAll('\u001b', '\\u001b')}" and more ` +
        '(does not match the pattern); ' +
        '6 values unreadable and null, such as "twelve" for n, which is int',
    },
  ]);
  for (let second = 0; second < 59; second++) {
    followed.pass(1000);
    appendFileSync(path, `nothing\nno number${second} here\n`);
    await followed.collect();
  }
  expect(told().length).toBe(1);
  followed.pass(1000);
  // Nothing more is written, and yet all of it is told.
  await followed.collect();
  expect(told()[1]).toMatchObject({ facts: { rejected: 59, unreadable: 2 * 59 } });
  appendFileSync(path, 'bad\n');
  await followed.collect();
  expect(told().length).toBe(2);
  await followed.collector.close();
  expect(told()[2]).toMatchObject({ facts: { rejected: 1, file: path } });
});
