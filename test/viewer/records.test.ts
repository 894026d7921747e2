import { expect, it } from 'vitest';
import { fc } from '../cases.js';
import {
  LineSplitter,
  EventStreamReader,
  type StreamEvent,
} from '../../server/viewer/state/record-stream.js';
import {
  cursorBefore,
  cursorBehind,
  cursorOfHour,
  firstCursor,
  isBehind,
  isCursor,
  isSameRecord,
  ownCursor,
  hourOfCursor,
  withLongIntegersQuoted,
  isJsonTree,
  prettyJson,
  shownText,
  readRecordLine,
} from '../../server/viewer/state/record.js';
import {
  markMatches,
  textNeedle,
  durationText,
  readDuration,
  readTime,
  timeText,
} from '../../server/viewer/state/texts.js';

const text = fc.string({ unit: 'grapheme' });
const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
const value = fc.oneof(
  text,
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((x) => !Number.isInteger(x) || Number.isSafeInteger(x)),
  fc.maxSafeInteger(),
  fc.boolean(),
);
const fields = fc.dictionary(name, fc.option(value), { noNullPrototype: true });

it('reads records like JSON.parse, field by field', () => {
  fc.assert(
    fc.property(fields, fc.constantFrom(0, 1), (record, indent) => {
      const line = JSON.stringify({ _cursor: '079bd70000000019', ...record }, null, indent).replaceAll(
        '\n',
        ' ',
      );
      const read = readRecordLine(line);
      expect(Object.fromEntries(read.values)).toEqual(JSON.parse(JSON.stringify(record)));
      expect([...read.values.keys()]).toEqual(Object.keys(record));
      expect(read).toMatchObject({ cursor: '079bd70000000019', line });
    }),
  );
});

it('keeps every digit of a 64-bit integer', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (integer) => {
      const { values } = readRecordLine(`{"_cursor":"0000000000000001","n":${integer}}`);
      expect(String(values.get('n'))).toBe(String(integer));
    }),
  );
  const { values } = readRecordLine('{"_cursor":"0000000000000001","n":9007199254740993}');
  expect(values.get('n')).toBe(9007199254740993n);
});

it('keeps the digits of long integers at any place in JSON', () => {
  const json =
    '{"a":[9007199254740993,-9223372036854775808,12,1.5e300,0.12345678901234567],"b":"9007199254740993 \\" 1"}';
  expect(JSON.parse(withLongIntegersQuoted(json))).toEqual({
    a: ['9007199254740993', '-9223372036854775808', 12, 1.5e300, 0.12345678901234567],
    b: '9007199254740993 " 1',
  });
  // JavaScript prints integers with these digits only between 10^15 and 10^21.
  const short = fc.array(
    fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true, max: 1e14, min: -1e13 }), fc.boolean()),
  );
  fc.assert(
    fc.property(short, (values) => {
      const written = JSON.stringify(values);
      expect(withLongIntegersQuoted(written)).toBe(written);
    }),
  );
});

it.each([
  ['{"_cursor":"0000000000000001","a":{}}', /no value that is no list and no object at character 35/],
  ['{"_cursor":"0000000000000001","a":"x', /no end of a string/],
  ['{"_cursor":"0000000000000001" "a":1}', /no "}"/],
  ['{"a":1}', /no "_cursor"/],
  ['null', /no "{"/],
])('reports the mistake in %s', (line, expected) => {
  expect(() => readRecordLine(line)).toThrow(expected);
});

it('reads a line of one repeated character in linear time', () => {
  for (const character of ['"', '\\', '{', ',', '9', ' '])
    expect(() =>
      readRecordLine(`{"_cursor":"0000000000000001","a":${character.repeat(1_000_000)}`),
    ).toThrow();
});

it('formats JSON in lines like JSON.stringify, and keeps numbers as they are written', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (json) => {
      expect(prettyJson(JSON.stringify(json))).toBe(JSON.stringify(json, null, 2));
    }),
  );
  expect(prettyJson('{"id":12345678901234567890,"x":1.50}')).toBe(
    '{\n  "id": 12345678901234567890,\n  "x": 1.50\n}',
  );
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  expect(prettyJson(deep)).toBe(deep);
  expect(['{"a":1}', '[1]', '1', '"x"', '{"a":', 'plain'].map(isJsonTree)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

/** A text in pieces that end anywhere. */
const pieces = fc
  .tuple(fc.array(fc.nat(400), { maxLength: 20 }), fc.constant(0))
  .map(([cuts]) => (whole: string): string[] => {
    const ends = [...new Set([0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length])];
    const sorted = ends.sort((a, b) => a - b);
    return sorted.slice(1).map((end, i) => whole.slice(sorted[i], end));
  });

it('splits text into the same lines for any division into pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-c]{0,5}$/)), pieces, (lines, cut) => {
      const splitter = new LineSplitter();
      const whole = lines.map((line, i) => `${line}${i % 2 === 0 ? '\n' : '\r\n'}`).join('');
      expect(cut(whole).flatMap((piece) => splitter.push(piece))).toEqual(lines);
      expect(splitter.isInside).toBe(false);
    }),
  );
});

it('reads the events of a stream for any division into pieces', () => {
  const stream =
    ': hello\n\nid: 01\ndata: {"a":1}\n\nid: 02\ndata:x\ndata: y\n\n: alive\n\nevent: behind\ndata: {}\n\nevent: lost\n\ndata\n\nid: 03\ndata: unfinished';
  const events: StreamEvent[] = [
    { type: 'message', data: '{"a":1}', id: '01' },
    { type: 'message', data: 'x\ny', id: '02' },
    { type: 'behind', data: '{}', id: '02' },
    { type: 'message', data: '', id: '02' },
  ];
  fc.assert(
    fc.property(pieces, (cut) => {
      const reader = new EventStreamReader();
      expect(cut(stream).flatMap((piece) => reader.push(piece))).toEqual(events);
    }),
  );
});

it('reads a stream without a line end in linear time', () => {
  const reader = new EventStreamReader();
  for (let i = 0; i < 20_000; i += 1) expect(reader.push('data: '.repeat(50))).toEqual([]);
  expect(reader.push('\n\n')).toHaveLength(1);
});

it('counts positions beyond the precision of a double', () => {
  expect(cursorBehind('079bd700000000ff')).toBe('079bd70000000100');
  expect(cursorBefore('079bd70000000000')).toBe('079bd6ffffffffff');
  expect(cursorBefore('0000000000000000')).toBe('0000000000000000');
  expect(cursorBehind('ffffffffffffffff')).toBe('ffffffffffffffff');
  expect(hourOfCursor('079bd70000000019')).toBe(Date.UTC(2026, 10, 19, 23));
  expect(cursorOfHour(Date.UTC(2026, 10, 19, 23, 59), firstCursor)).toBe('079bd70000000000');
});

it('reads cursors of several agents', () => {
  const cursor = '1f0c22ab.2.079bd70000000019.079bd600000000ff.0000000000000000';
  expect(ownCursor(cursor)).toBe('079bd600000000ff');
  expect(hourOfCursor(cursor)).toBe(Date.UTC(2026, 10, 19, 22));
  expect(cursorBehind(cursor)).toBe('1f0c22ab.2.079bd70000000019.079bd60000000100.0000000000000000');
  expect(cursorBefore(cursor)).toBe('1f0c22ab.2.079bd70000000019.079bd600000000fe.0000000000000000');
  expect(cursorOfHour(Date.UTC(2026, 10, 19, 23), cursor)).toBe(
    '1f0c22ab.2.079bd70000000000.079bd70000000000.079bd70000000000',
  );
  // The positions of other agents may change, and among its neighbours a record has the cursor of its own agent.
  expect(isSameRecord(cursor, '1f0c22ab.2.079bd70000000020.079bd600000000ff.0000000000000001')).toBe(true);
  expect(isSameRecord(cursor, '1f0c22ab.1.079bd600000000ff.079bd600000000ff.0000000000000000')).toBe(false);
  expect(isSameRecord(cursor, '079bd600000000ff')).toBe(true);
  expect(isSameRecord(cursor, '2.079bd600000000ff')).toBe(true);
  expect(isSameRecord('1.079bd600000000ff', '2.079bd600000000ff')).toBe(false);
  for (const text of [cursor, '079bd600000000ff', '2.079bd600000000ff']) expect(isCursor(text)).toBe(true);
  for (const text of ['', '079bd6', 'x.079bd600000000ff', `${cursor}.`, '1f0c22ab.079bd600000000ff'])
    expect(isCursor(text)).toBe(false);
});

it('tells which records of several agents are behind others by their cursors', () => {
  const agents = 3;
  fc.assert(
    fc.property(fc.array(fc.nat(agents - 1), { maxLength: 40 }), (order) => {
      const counts = Array.from({ length: agents }, () => 0);
      const cursors = order.map((agent) => {
        counts[agent]! += 1;
        const positions = counts.map((count) => count.toString(16).padStart(16, '0'));
        return `1f0c22ab.${agent + 1}.${positions.join('.')}`;
      });
      for (const [i, cursor] of cursors.entries()) {
        expect(isBehind(cursor, firstCursor)).toBe(true);
        for (const [j, other] of cursors.entries()) expect(isBehind(cursor, other)).toBe(i > j);
      }
    }),
  );
});

it('shows a text without the escape codes of terminal colours', () => {
  expect(shownText('\u001b[1;31merror\u001b[0m: no \u001b[38;5;208mspace\u001b[K')).toBe('error: no space');
  expect(shownText('\u001b[31')).toBe('\u001b[31');
  expect(shownText('a [31m b')).toBe('a [31m b');
});

it('shows controls of the text direction as codes, as they could show a text in another order', () => {
  expect(shownText('\u202egnp.exe \u2066x\u2069')).toBe('\\u202egnp.exe \\u2066x\\u2069');
  expect(shownText('مرحبا')).toBe('مرحبا');
});

it('marks the searched text regardless of case, and keeps all of the text', () => {
  expect(markMatches('No Space, no space', [textNeedle('NO SPACE')])).toEqual([
    { text: 'No Space', isMatch: true },
    { text: ', ', isMatch: false },
    { text: 'no space', isMatch: true },
  ]);
  fc.assert(
    fc.property(text, fc.array(text), (whole, needles) => {
      const parts = markMatches(whole, needles.map(textNeedle));
      expect(parts.map((part) => part.text).join('')).toBe(whole);
    }),
  );
  expect(
    markMatches('a'.repeat(10_000), [textNeedle('a')]).filter(({ isMatch }) => isMatch).length,
  ).toBeLessThan(1000);
});

it('reads times in the form in which it shows them, in both zones', () => {
  // Not in an hour that occurs twice in the zone of this machine.
  const time = fc.integer({ min: Date.UTC(1, 0, 1), max: Date.UTC(9999, 11, 30) });
  fc.assert(
    fc.property(time, (timeMs) => {
      expect(readTime(timeText(timeMs, 'utc'), 'utc')).toBe(timeMs);
    }),
  );
  const summer = new Date(2026, 5, 15, 10, 30, 5, 7).getTime();
  expect(timeText(summer, 'local')).toBe('2026-06-15 10:30:05.007');
  expect(readTime('2026-06-15 10:30:05.007', 'local')).toBe(summer);
  expect(readTime('2026-11-18', 'utc')).toBe(Date.UTC(2026, 10, 18));
  expect(readTime(' 2026-11-18T10:00 ', 'utc')).toBe(Date.UTC(2026, 10, 18, 10));
  for (const wrong of ['2026-02-30', '2026-11-18 24:00', '2026-11-18 10:60', 'yesterday', '', '1795015592'])
    expect(readTime(wrong, 'utc')).toBeUndefined();
});

it('reads durations', () => {
  expect(readDuration('1d 12h')).toBe(36 * 3_600_000);
  expect(readDuration('90S')).toBe(90_000);
  for (const wrong of ['', '0m', '15', 'h', '1y', '1h1', '9'.repeat(100_000)])
    expect(readDuration(wrong)).toBeUndefined();
  expect(durationText(36 * 3_600_000)).toBe('1d 12h');
  expect(durationText(90_061_000)).toBe('1d 1h');
});
