import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { CountBoundError } from '../../engine/index.js';
import { makeSchema } from '../../engine/core/schema.js';
import {
  countCsv,
  countJson,
  countProblem,
  parseCountRequest,
  type CountRequest,
} from '../../server/http/count-request.js';
import { ProblemError } from '../../server/http/problem.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'seen', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'level', type: 'string' },
  { name: 'took', type: 'float' },
]);
const now = Date.UTC(2026, 10, 24, 12);
const parse = (query: string): CountRequest =>
  parseCountRequest(query, { schema, now, timezone: 'Europe/Oslo' });

function problemOf(query: string): ProblemError {
  try {
    parse(query);
  } catch (error) {
    if (error instanceof ProblemError) return error;
    throw error;
  }
  throw new Error(`${query} is understood`);
}

describe('a request for a count', () => {
  it('is the number of records selected by filters and cursors if "by" is missing', () => {
    const { query, time, value, format } = parse('status__gte=500&time__since=1h&after=072a5f0000000123&_=1');
    expect(query).toMatchObject({
      after: { partition: 0x072a5f, ordinal: 0x123 },
      time: undefined,
      values: undefined,
    });
    expect(query.predicates).toHaveLength(2);
    expect([time, value, format]).toEqual([undefined, undefined, 'json']);
  });

  it('groups by at most one time with a step and one other field', () => {
    const { query, time, value, format } = parse('by=level&by=seen:1d&zone=UTC&top=3&format=csv');
    expect(query.values).toEqual({ field: 3, top: 3 });
    expect(query.time!.field).toBe(1);
    expect(query.time!.buckets.bucketOf(now)).toEqual({
      from: Date.UTC(2026, 10, 24),
      until: Date.UTC(2026, 10, 25),
    });
    expect(time).toMatchObject({ field: { name: 'seen' }, step: '1d', zone: 'UTC' });
    expect(value).toMatchObject({ field: { name: 'level' } });
    expect(format).toBe('csv');
    // The defaults are the server's zone, and ten values.
    const plain = parse('by=time:1d&by=status').query;
    expect(plain.time!.buckets.bucketOf(now).from).toBe(Date.UTC(2026, 10, 23, 23));
    expect(plain.values!.top).toBe(10);
  });

  it.each([
    ['limit=3', 'limit', 'takes by, of, fn, top, zone, format, after, before'],
    ['by=time', 'by', 'write by=time:1h'],
    ['by=level:1h', 'by', 'is of type string and has no steps'],
    ['by=levle', 'by', 'did you mean "level"?'],
    ['by=', 'by', 'unknown field ""'],
    ['by=time:', 'by', 'is not a step'],
    ['by=time:36h', 'by', 'not a whole number of days'],
    ['by=time:1h&by=seen:1h', 'by', 'by only one time'],
    ['by=level&by=status', 'by', 'by only one field'],
    ['by=level&top=0', 'top', 'from 1 to 1000'],
    ['by=level&top=1001', 'top', 'from 1 to 1000'],
    ['by=level&top=1e1', 'top', 'from 1 to 1000'],
    ['top=3', 'top', 'name the field'],
    ['by=time:1h&top=3', 'top', 'name the field'],
    ['by=level&top=3&top=4', 'top', 'given twice'],
    ['by=time:1h&zone=Europe/Nowhere', 'zone', 'Europe/Nowhere'],
    ['by=level&zone=UTC', 'zone', 'time buckets'],
    ['format=xml', 'format', 'json or csv'],
    ['after=12', 'after', 'must be a cursor'],
    ['of=status', 'of', 'add fn=avg,p99'],
    ['of=level', 'of', 'add fn=distinct'],
    ['fn=avg', 'fn', 'name the field with "of"'],
    ['of=stats&fn=avg', 'of', 'did you mean "status"?'],
    ['of=status&fn=p98', 'fn', 'can be sum, avg, min, max, p50, p90, p95, p99, distinct, not "p98"'],
    ['of=status&fn=', 'fn', 'not ""'],
    ['of=status,level&fn=avg,distinct', 'fn', 'field "level" is of type string and has no "avg"'],
    ['of=a,b,c,d,e&fn=avg', 'of', 'unknown field "a"'],
    ['of=status,level,time,seen,took&fn=distinct', 'of', 'more than 4'],
    ['status__gte=x', 'status__gte', 'a decimal integer'],
  ])('is refused with a problem that names the parameter: %s', (query, parameter, detail) => {
    const problem = problemOf(query);
    expect(problem).toMatchObject({ status: 400, parameter });
    expect(problem.detail).toContain(detail);
  });

  it('asks for numbers of up to four fields, in lists or one by one', () => {
    const wanted = { fields: [2, 4], functions: ['avg', 'p99'] };
    for (const query of ['of=status,took&fn=avg,p99', 'of=status&fn=avg&of=took&fn=p99&fn=avg&of=status'])
      expect(parse(query).query.numbers).toEqual(wanted);
    expect(parse('by=level').query.numbers).toBeUndefined();
  });

  it('never fails except with a problem', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'by=',
        'by=time:',
        'top=',
        'zone=',
        'format=',
        'after=',
        'of=',
        'fn=',
        'status,took',
        'avg,p99',
        '&',
        '%',
        '1h',
        '1d',
        'Europe/Oslo',
        'level',
      ),
      fc.string({ maxLength: 4 }),
      fc.integer({ min: 1, max: 5000 }).map((length) => '9'.repeat(length)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        try {
          parse(pieces.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(ProblemError);
        }
      }),
      { numRuns: caseCount(1000) },
    );
  });

  it('that exceeds a limit is refused with a suggestion', () => {
    const hours = 720;
    const buckets = countProblem(new CountBoundError('buckets', 'too many', hours * 3_600_000));
    expect(buckets).toMatchObject({ status: 400, parameter: 'by' });
    expect((buckets as ProblemError).detail).toContain('such as 15m');
    expect(countProblem(new CountBoundError('cells', 'too many'))).toMatchObject({
      status: 400,
      parameter: 'top',
    });
    expect(countProblem(new CountBoundError('values', 'too many'))).toMatchObject({
      status: 400,
      parameter: 'by',
    });
    expect(countProblem(new CountBoundError('numbers', 'too many'))).toMatchObject({
      status: 400,
      parameter: 'of',
    });
    const other = new Error('other');
    expect(countProblem(other)).toBe(other);
  });
});

describe('an answer', () => {
  const stats = {} as never;
  const both = parse('by=time:1h&by=level&zone=UTC');

  it('has integers with every digit, floats in their shortest form, and escaped texts', () => {
    const counts = {
      count: 9,
      values: {
        top: [
          { value: 9007199254740993n, count: 4 },
          { value: 0.1, count: 2 },
          { value: 'a"\n\u2028', count: 1 },
          { value: true, count: 1 },
        ],
        other: 1,
        nulls: 0,
        distinct: 5,
      },
      stats,
    };
    expect(countJson('nginx', parse('by=status'), counts)).toBe(
      '{"agent":"nginx","count":9,"values":{"field":"status","top":[{"value":9007199254740993,"count":4},' +
        '{"value":0.1,"count":2},{"value":"a\\"\\n\u2028","count":1},{"value":true,"count":1}],"other":1,"nulls":0,"distinct":5}}\n',
    );
  });

  it('has the limits of 64-bit times with every digit, and distinguishes null from the empty string', () => {
    const counts = {
      count: 7,
      time: {
        buckets: [{ from: -(2 ** 63), until: -62_135_596_800_000, count: 5, values: [2, 1] }],
        nulls: 2,
      },
      values: {
        top: [
          { value: '', count: 3 },
          { value: 'a,b', count: 1 },
        ],
        other: 0,
        nulls: 3,
        distinct: 2,
      },
      stats,
    };
    expect(countJson('a', both, counts)).toContain(
      '"time":{"field":"time","step":"1h","zone":"UTC","nulls":2,"buckets":[{"from":-9223372036854775808,"until":-62135596800000,"count":5,"values":[2,1]}]}',
    );
    expect(countCsv(both, counts)).toBe(
      'from,until,count,"","a,b"\r\n-9223372036854775808,-62135596800000,5,2,1\r\n,,2,,\r\n',
    );
    expect(countCsv(parse('by=level'), counts)).toBe('level,count\r\n"",3\r\n"a,b",1\r\n,3\r\n');
    expect(countCsv(parse(''), counts)).toBe('count\r\n7\r\n');
  });

  it('has the numbers of each bucket, value and cell, of which large sums are texts', () => {
    const request = parse('by=time:1h&by=level&zone=UTC&of=status,took&fn=sum,max');
    const [all, some, none] = [
      [
        [9007199254740992n, 9007199254740993n],
        [0.5, -2],
      ],
      [
        [-9007199254740991n, 7n],
        [Infinity, 1e21],
      ],
      [
        [null, null],
        [null, null],
      ],
    ];
    const counts = {
      count: 7,
      approximate: [],
      time: {
        buckets: [
          {
            from: 0,
            until: 3_600_000,
            count: 5,
            values: [3, 1],
            numbers: all!,
            numbersOfValues: [some!, none!],
          },
        ],
        nulls: 2,
      },
      values: {
        top: [
          { value: 'a', count: 3, numbers: some! },
          { value: 'b', count: 1, numbers: none! },
        ],
        other: 0,
        nulls: 3,
        distinct: 2,
      },
      stats,
    };
    const shown = [
      '{"status":{"sum":"9007199254740992","max":9007199254740993},"took":{"sum":0.5,"max":-2}}',
      '{"status":{"sum":-9007199254740991,"max":7},"took":{"sum":null,"max":1e+21}}',
      '{"status":{"sum":null,"max":null},"took":{"sum":null,"max":null}}',
    ];
    expect(countJson('a', request, counts)).toBe(
      '{"agent":"a","count":7,"approximate":[],"time":{"field":"time","step":"1h","zone":"UTC","nulls":2,"buckets":[' +
        `{"from":0,"until":3600000,"count":5,"of":${shown[0]},"values":[3,1],"ofValues":[${shown[1]},${shown[2]}]}]},` +
        `"values":{"field":"level","top":[{"value":"a","count":3,"of":${shown[1]}},{"value":"b","count":1,"of":${shown[2]}}],` +
        '"other":0,"nulls":3,"distinct":2}}\n',
    );
    const titles = ['status_sum', 'status_max', 'took_sum', 'took_max'];
    expect(countCsv(request, counts)).toBe(
      `from,until,count,${titles.join(',')},a,${titles.map((title) => `a_${title}`).join(',')},` +
        `b,${titles.map((title) => `b_${title}`).join(',')}\r\n` +
        '0,3600000,5,9007199254740992,9007199254740993,0.5,-2,3,-9007199254740991,7,,1e+21,1,,,,\r\n' +
        `,,2${','.repeat(14)}\r\n`,
    );
    const ofValues = parse('by=level&of=status,took&fn=sum,max');
    expect(countCsv(ofValues, { ...counts, time: undefined as never })).toBe(
      `level,count,${titles.join(',')}\r\na,3,-9007199254740991,7,,1e+21\r\nb,1,,,,\r\n,3,,,,\r\n`,
    );
    const total = { count: 7, approximate: ['p50' as const], numbers: all!, stats };
    expect(countJson('a', parse('of=status,took&fn=sum,max'), total)).toBe(
      `{"agent":"a","count":7,"of":${shown[0]},"approximate":["p50"]}\n`,
    );
  });
});
