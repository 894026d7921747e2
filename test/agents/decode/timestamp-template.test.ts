import { expect, it } from 'vitest';
import { agent, decodeLines } from './decode-lines.js';

it('a time is composed by a template and read by its format', () => {
  const definition = agent(
    [
      {
        name: 'time',
        type: 'time',
        timestamp: { format: '2006-01-02 15:04:05', timezone: 'Europe/Oslo' },
        template: '{{.date}} {{slice .clock 0 8}}',
      },
      { name: 'half', template: '{{slice .text 1}}' },
    ],
    { format: 'plain', regex: '^(?P<date>[^,]*),(?P<clock>\\S+) (?P<text>.*)$' },
  );
  for (const columnar of [true, false]) {
    const { rows, unreadableValues } = decodeLines(
      definition,
      '2026-11-20,10:00:00.123+x æ1\n2026-11-20,late !\n',
      { columnar },
    );
    expect(rows).toEqual([
      [BigInt(Date.UTC(2026, 10, 20, 9)), '\ufffd1'],
      [null, ''],
    ]);
    expect(unreadableValues).toBe(1);
  }
});
