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
    ['limit=3', 'limit', 'takes by, top, zone, format, after, before'],
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
    ['status__gte=x', 'status__gte', 'a decimal integer'],
  ])('is refused with a problem that names the parameter: %s', (query, parameter, detail) => {
    const problem = problemOf(query);
    expect(problem).toMatchObject({ status: 400, parameter });
    expect(problem.detail).toContain(detail);
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
});
