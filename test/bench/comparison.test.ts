import { describe, expect, it } from 'vitest';
import { AnswerReader, quoteLongIntegers } from '../../bench/answer-digest.js';
import { ResponseReader } from '../../bench/http/response-reader.js';
import type { SetColumn } from '../../bench/question.js';
import { compareLine } from '../../bench/result.js';
import { spreadOf } from '../../bench/spread.js';

const columns: SetColumn[] = [
  { name: 'id', source: 'id', kind: 'int', nullable: false },
  { name: 'text', source: 'text', kind: 'text', nullable: true },
];

function digest(...pieces: (string | Uint8Array)[]): string {
  const reader = new AnswerReader(columns);
  for (const piece of pieces) reader.take(piece);
  const { rows, digest } = reader.end();
  return `${rows} ${digest}`;
}

describe('comparing answers', () => {
  const line = '{"_cursor":"a","id":1,"text":"é"}\n';

  it('ignores cursors, piece boundaries, escapes and the order of keys', () => {
    const same = digest(line);
    expect(digest('{"text":"\\u00e9","id":1,"_cursor":77}')).toBe(same);
    const bytes = Buffer.from(line);
    expect(digest(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toBe(same);
  });

  it('detects a different value, order, count, or last digit of a long integer', () => {
    const a = '{"id":1,"text":null}\n';
    const b = '{"id":2,"text":null}\n';
    const said = [digest(a), digest(b), digest(a, b), digest(b, a), digest(a, a), digest(a, a, a)];
    expect(new Set(said).size).toBe(said.length);
    const long = (id: string): string => digest(`{"id":${id},"text":null}\n`);
    expect(long('9007199254740993')).not.toBe(long('9007199254740992'));
  });

  it('throws if a field is missing', () => {
    expect(() => digest('{"id":1}\n')).toThrow('the answer lacks the field text');
  });

  it('quotes only numbers that JSON.parse would round', () => {
    expect(quoteLongIntegers('{"a":-123456789012345678,"b":1795046110529,"c":0.1234567890123456789}')).toBe(
      '{"a":"-123456789012345678","b":1795046110529,"c":0.1234567890123456789}',
    );
  });
});

describe('summarising', () => {
  it('returns medians and quartiles', () => {
    expect(spreadOf([5, 1, 3, 2, 4])).toEqual({ median: 3, min: 1, max: 5, lower: 2, upper: 4, count: 5 });
    expect(spreadOf([2, 1])).toMatchObject({ median: 1.5, count: 2 });
    expect(() => spreadOf([])).toThrow(RangeError);
  });

  const lineOf = (isLowerBetter: boolean, figures: Record<string, number>) =>
    compareLine({
      id: 'x',
      title: 'x',
      set: 'web',
      unit: 'ms',
      isLowerBetter,
      ours: 'logstrata',
      figures: Object.fromEntries(Object.entries(figures).map(([side, value]) => [side, spreadOf([value])])),
    });

  it('compares with the best peer, and never with another store of Logstrata', () => {
    const figures = { logstrata: 10, 'logstrata-zstd': 1, duckdb: 40, sqlite: 20 };
    expect(lineOf(true, figures).best).toEqual({ side: 'sqlite', advantage: 2 });
    expect(lineOf(false, figures).best).toEqual({ side: 'duckdb', advantage: 0.25 });
    expect(lineOf(true, { logstrata: 10 }).best).toBeNull();
  });

  it('lists peers with indexes next to the best one', () => {
    const line = lineOf(true, { logstrata: 10, duckdb: 40, 'clickhouse-indexed': 20, 'sqlite-indexed': 5 });
    expect(line.best).toEqual({ side: 'duckdb', advantage: 4 });
    expect(line.indexed).toEqual([
      { side: 'sqlite-indexed', advantage: 0.5 },
      { side: 'clickhouse-indexed', advantage: 2 },
    ]);
  });
});

describe('reading responses', () => {
  const count = (pieces: readonly string[]): [number, number] => {
    const reader = new ResponseReader();
    for (const piece of pieces) reader.take(Buffer.from(piece, 'latin1'));
    return [reader.responses, reader.bodyBytes];
  };
  const fixed = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
  const chunked =
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n';
  const empty = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

  it('counts responses and bodies, however the pieces are cut', () => {
    const all = fixed + chunked + empty + fixed;
    for (let cut = 1; cut < all.length; cut++) {
      expect(count([all.slice(0, cut), all.slice(cut)])).toEqual([4, 25]);
    }
    expect(count([...all])).toEqual([4, 25]);
  });

  it('does not count incomplete responses', () => {
    expect(count([fixed.slice(0, -1)])).toEqual([0, 4]);
    expect(count([chunked.slice(0, -2)])).toEqual([0, 15]);
  });

  it('throws for another status', () => {
    expect(() => count(['HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n'])).toThrow('429');
  });
});
