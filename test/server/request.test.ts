import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { formatCursor } from '../../engine/core/cursor.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { Query } from '../../engine/scan/query.js';
import { ProblemError } from '../../server/http/problem.js';
import { parseAgentPath, parseQueryRequest } from '../../server/http/query-request.js';
import { anyText } from '../model/any-text.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'seconds', type: 'float' },
  { name: 'message', type: 'string' },
  { name: 'odd_', type: 'int' },
]);
const [time, status, seconds, message, odd] = [0, 1, 2, 3, 4];
const now = Date.UTC(2026, 0, 15, 12);
const context = { schema, now, timezone: 'UTC', limitMax: 5000, limitDefault: 100 };

function parse(rawQuery: string): Query {
  return parseQueryRequest(rawQuery, context);
}

function problem(rawQuery: string): ProblemError {
  return thrown(() => parse(rawQuery));
}

function thrown(work: () => unknown): ProblemError {
  try {
    work();
  } catch (error) {
    if (error instanceof ProblemError) return error;
    throw error;
  }
  throw new Error('no problem was found');
}

const none = { limit: 100, after: undefined, before: undefined, predicates: [] };

describe('limit, after, before', () => {
  it.each([
    ['', none],
    ['&', none],
    ['limit=0', { ...none, limit: 0 }],
    ['limit=5000', { ...none, limit: 5000 }],
    ['limit=007', { ...none, limit: 7 }],
    ['li%6Dit=7', { ...none, limit: 7 }],
    ['_=1699999999', none],
    ['_', none],
    ['_=1&_=2', none],
    ['after=000001000000000a', { ...none, after: { partition: 1, ordinal: 10 } }],
    ['before=ffffffffffffffff', { ...none, before: { partition: 2 ** 24 - 1, ordinal: 2 ** 40 - 1 } }],
    [
      'after=0000000000000000&before=0000000000000001',
      { ...none, after: { partition: 0, ordinal: 0 }, before: { partition: 0, ordinal: 1 } },
    ],
  ])('accepts %j', (rawQuery, expected) => {
    expect(parse(rawQuery)).toEqual(expected);
  });

  it.each([
    ['limit=+5'],
    ['limit=%2B5'],
    ['limit=-1'],
    ['limit=-0'],
    ['limit=1e2'],
    ['limit='],
    ['limit'],
    ['limit=%205'],
    ['limit=5.0'],
    ['limit=0x10'],
    ['limit=5001'],
    ['limit=99999999999999999999999'],
    ['limit=٣'],
    ['limit=NaN'],
  ])('refuses %j and names limit', (rawQuery) => {
    expect(problem(rawQuery)).toMatchObject({ status: 400, parameter: 'limit' });
  });

  it.each([
    ['after=', 'after'],
    ['after=123', 'after'],
    ['after=000001000000000A', 'after'],
    ['after=000001000000000g', 'after'],
    ['before=0000010000000000a', 'before'],
    ['before=+00001000000000a', 'before'],
    ['before=000001000000000a%0A', 'before'],
  ])('refuses %j as a cursor', (rawQuery, parameter) => {
    expect(problem(rawQuery)).toMatchObject({ status: 400, parameter });
    expect(problem(rawQuery).detail).toContain('16 lowercase hexadecimal digits');
  });

  it.each([
    ['limit=1&limit=1', 'limit'],
    ['after=0000000000000000&after=0000000000000000', 'after'],
    ['before=0000000000000000&%62efore=0000000000000000', 'before'],
  ])('refuses %j, given twice', (rawQuery, parameter) => {
    expect(problem(rawQuery)).toMatchObject({ status: 400, parameter });
    expect(problem(rawQuery).detail).toContain('twice');
  });
});

describe('filters', () => {
  it.each([
    ['status__eq=200', { kind: 'int', field: status, op: 'eq', value: 200n }],
    ['status__ne=-5', { kind: 'int', field: status, op: 'ne', value: -5n }],
    ['status__gt=9007199254740993', { kind: 'int', field: status, op: 'gt', value: 9007199254740993n }],
    ['status__gte=9223372036854775807', { kind: 'int', field: status, op: 'gte', value: 2n ** 63n - 1n }],
    ['status__lt=-9223372036854775808', { kind: 'int', field: status, op: 'lt', value: -(2n ** 63n) }],
    ['status__lte=00012', { kind: 'int', field: status, op: 'lte', value: 12n }],
    ['odd___eq=3', { kind: 'int', field: odd, op: 'eq', value: 3n }],
    ['seconds__eq=1.5', { kind: 'float', field: seconds, op: 'eq', value: 1.5 }],
    ['seconds__lt=-1E3', { kind: 'float', field: seconds, op: 'lt', value: -1000 }],
    ['seconds__gt=.5', { kind: 'float', field: seconds, op: 'gt', value: 0.5 }],
    ['seconds__ne=-0.0', { kind: 'float', field: seconds, op: 'ne', value: 0 }],
    ['seconds__gte=1e%2B3', { kind: 'float', field: seconds, op: 'gte', value: 1000 }],
    ['time__eq=5', { kind: 'int', field: time, op: 'eq', value: 5n }],
    ['time__lt=1735787045123', { kind: 'int', field: time, op: 'lt', value: 1735787045123n }],
    ['time__since=2025-01-02', { kind: 'int', field: time, op: 'gte', value: BigInt(Date.UTC(2025, 0, 2)) }],
    [
      'time__until=2025-01-02+03%3A04%3A05',
      { kind: 'int', field: time, op: 'lt', value: BigInt(Date.UTC(2025, 0, 2, 3, 4, 5)) },
    ],
    [
      'time__since=2025-01-02T03:04:05+02:00',
      { kind: 'int', field: time, op: 'gte', value: BigInt(Date.UTC(2025, 0, 2, 1, 4, 5)) },
    ],
    [
      'time__since=2025-01-02T03:04:05%2B02:00',
      { kind: 'int', field: time, op: 'gte', value: BigInt(Date.UTC(2025, 0, 2, 1, 4, 5)) },
    ],
    ['time__since=1D12h', { kind: 'int', field: time, op: 'gte', value: BigInt(now - 36 * 3_600_000) }],
    ['message__exact=a+b%2Bc%26d%3D', { kind: 'string', field: message, op: 'exact', value: 'a b+c&d=' }],
    ['message__like=100%25_*', { kind: 'string', field: message, op: 'like', value: '100%_*' }],
    ['message__prefix=a=b', { kind: 'string', field: message, op: 'prefix', value: 'a=b' }],
    ['message__suffix=%C3%89', { kind: 'string', field: message, op: 'suffix', value: 'É' }],
    ['message__like=É%C3%89', { kind: 'string', field: message, op: 'like', value: 'ÉÉ' }],
    ['message__like=', { kind: 'string', field: message, op: 'like', value: '' }],
    ['message__exact=%EF%BB%BFx%00', { kind: 'string', field: message, op: 'exact', value: '\uFEFFx\0' }],
    ['message__exact=%EF%BF%BD', { kind: 'string', field: message, op: 'exact', value: '\uFFFD' }],
    ['message__not_like=x', { kind: 'string', field: message, op: 'not_like', value: 'x' }],
    [
      'status__in=7',
      { kind: 'set', field: status, members: [{ kind: 'int', field: status, op: 'eq', value: 7n }] },
    ],
    ['%6Dessage__like=x', { kind: 'string', field: message, op: 'like', value: 'x' }],
  ])('accepts %j', (rawQuery, expected) => {
    expect(parse(rawQuery)).toEqual({ ...none, predicates: [expected] });
  });

  it('keeps repeated filters, and combines them with all other parameters', () => {
    expect(parse('status__ne=200&limit=7&status__ne=304&after=0000000000000000')).toEqual({
      limit: 7,
      after: { partition: 0, ordinal: 0 },
      before: undefined,
      predicates: [
        { kind: 'int', field: status, op: 'ne', value: 200n },
        { kind: 'int', field: status, op: 'ne', value: 304n },
      ],
    });
  });

  it('combines the values of in to one set for each field, wherever they are in the query string', () => {
    const member = (value: string) => ({ kind: 'string', field: message, op: 'exact', value });
    const statusIs = (value: bigint) => ({ kind: 'int', field: status, op: 'eq', value });
    expect(parse('message__in=a&status__in=1&message__like=x&message__in=b&status__in=2').predicates).toEqual(
      [
        { kind: 'set', field: message, members: [member('a'), member('b')] },
        { kind: 'set', field: status, members: [statusIs(1n), statusIs(2n)] },
        { kind: 'string', field: message, op: 'like', value: 'x' },
      ],
    );
  });

  it.each([
    ['status__eq=', 'status__eq', /decimal integer/],
    ['status__eq=1.0', 'status__eq', /decimal integer/],
    ['status__eq=1e3', 'status__eq', /decimal integer/],
    ['status__eq=+5', 'status__eq', /%2B/],
    ['status__eq=0x1F', 'status__eq', /decimal integer/],
    ['status__eq=9223372036854775808', 'status__eq', /out of the range/],
    ['status__eq=-9223372036854775809', 'status__eq', /out of the range/],
    ['seconds__eq=NaN', 'seconds__eq', /decimal number/],
    ['seconds__eq=Infinity', 'seconds__eq', /decimal number/],
    ['seconds__eq=-Infinity', 'seconds__eq', /decimal number/],
    ['seconds__eq=0x10', 'seconds__eq', /decimal number/],
    ['seconds__eq=1_000', 'seconds__eq', /decimal number/],
    ['seconds__eq=', 'seconds__eq', /decimal number/],
    ['seconds__eq=.', 'seconds__eq', /decimal number/],
    ['seconds__eq=1e400', 'seconds__eq', /out of the range/],
    ['seconds__eq=-1e400', 'seconds__eq', /out of the range/],
    ['seconds__gt=1e-400', 'seconds__gt', /out of the range/],
    ['time__since=2025-02-30', 'time__since', /no day 2025-02-30/],
    ['time__since=1735787045', 'time__since', /no unit/],
    ['time__eq=2025-01-02', 'time__eq', /milliseconds .*: time__since=2025-01-02, time__until=2025-01-02$/],
    [
      'time__gte=2025-01-02',
      'time__gte',
      /milliseconds .*since.*before that time\): time__since=2025-01-02$/,
    ],
    ['time__lt=15m', 'time__lt', /: time__until=15m$/],
    ['time__gt=noon', 'time__gt', /decimal integer/],
    ['time__lte=9223372036854775808', 'time__lte', /out of the range/],
    ['status__exact=5', 'status__exact', /eq, ne, gt, gte, lt, lte/],
    ['seconds__like=5', 'seconds__like', /eq, ne, gt, gte, lt, lte/],
    [
      'message__eq=5',
      'message__eq',
      /exact, like, prefix, suffix, ne, not_like, not_prefix, not_suffix, regex, not_regex, in/,
    ],
    ['time__like=5', 'time__like', /since, until, eq, ne, gt, gte, lt, lte/],
    ['status__since=1d', 'status__since', /eq, ne, gt/],
    ['message__lik=x', 'message__lik', /did you mean "like"/],
    ['message__regexp=x', 'message__regexp', /did you mean "regex"/],
    ['message__matches=a.b', 'message__matches', /: write message__regex=a.b/],
    ['message=~^a', 'message', /write message__regex=\^a/],
    ['message!~a', 'message!~a', /write message__not_regex=a/],
    ['message__~a', 'message__~a', /message__regex=a|message__~a/],
    [
      'message__regex=a(b',
      'message__regex',
      /regular expression in RE2 syntax: at character 4: missing closing \)$/,
    ],
    ['*__not_regex=[z-a]', '*__not_regex', /at character 2: invalid character class range$/],
    ['message__regex=(?=a)', 'message__regex', /at character 1: invalid or unsupported Perl syntax$/],
    [
      `message__regex=${'%C3%A9'.repeat(1001)}`,
      'message__regex',
      /too long: 1001 characters, more than 1000$/,
    ],
    [
      'message__not_regex=(a{1000}b){2}',
      'message__not_regex',
      /too large: with its repetitions written out it has 2002/,
    ],
    ['status__regex=4..', 'status__regex', /eq, ne, gt, gte, lt, lte/],
    ['message__=x', 'message__', /exact, like, prefix, suffix/],
    ['message__LIKE=x', 'message__LIKE', /exact, like, prefix, suffix/],
    ['mesage__like=x', 'mesage__like', /did you mean "message".*time, status, seconds, message/],
    ['Message__like=x', 'Message__like', /did you mean "message"/],
    ['message__like__like=x', 'message__like__like', /unknown field "message__like"/],
    ['_cursor__eq=5', '_cursor__eq', /unknown field "_cursor"/],
    ['__eq=5', '__eq', /unknown field ""/],
    ['limt=5', 'limt', /did you mean "limit"/],
    ['Limit=5', 'Limit', /did you mean "limit"/],
    ['status=200', 'status', /needs an operator: write status__eq=200\. Those of status are eq, ne, gt/],
    ['message=x', 'message', /needs an operator: write message__exact=x\./],
    ['time=2025-01-02', 'time', /needs an operator: write time__<operator>=<value>\. .* since, until/],
    ['status_gte=500', 'status_gte', /unknown parameter "status_gte": write status__gte=500, a filter is/],
    ['status.gte=500', 'status.gte', /: write status__gte=500,/],
    ['status%3E=500', 'status>', /: write status__gte=500,/],
    ['status%3E%3D500', 'status>=500', /: write status__gte=500,/],
    ['status<=500', 'status<', /: write status__lte=500,/],
    ['status>500', 'status>500', /: write status__gt=500,/],
    ['status!=500', 'status!', /: write status__ne=500,/],
    ['status__>=500', 'status__>', /has no operator ">": write status__gte=500\. Its operators are eq/],
    ['time>=2025-01-02', 'time>', /: write time__since=2025-01-02,/],
    ['message_like=x', 'message_like', /: write message__like=x,/],
    ['message!=x', 'message!', /: write message__ne=x,/],
    ['message>=x', 'message>', /unknown parameter "message>" \(did you mean "message"\?\)/],
    ['message__==x', 'message__', /has no operator "": write message__exact=x\./],
    [`status>=${'5'.repeat(300)}`, 'status>', /unknown parameter "status>" \(did you mean "status"\?\)/],
    ['nonsense=5', 'nonsense', /unknown parameter "nonsense".*time, status/],
    ['=5', '', /unknown parameter ""/],
    ['__=1', '__', /unknown field/],
  ])('refuses %j', (rawQuery, parameter, detail) => {
    const found = problem(rawQuery);
    expect(found).toMatchObject({ status: 400, title: 'Bad Request', parameter });
    expect(found.detail).toMatch(detail);
  });

  it('refuses more than 100 filters', () => {
    const hundred = Array.from({ length: 100 }, () => 'status__ne=1').join('&');
    expect(parse(hundred).predicates).toHaveLength(100);
    expect(problem(`${hundred}&status__ne=1`).detail).toContain('more than 100 filters');
  });
});

describe('percent-encoding', () => {
  it.each([
    ['message__like=%', /bad percent-escape "%"/],
    ['message__like=%4', /bad percent-escape "%4"/],
    ['message__like=%zz', /bad percent-escape "%zz"/],
    ['message__like=100%', /bad percent-escape/],
    ['message__like=%C3', /not valid UTF-8/],
    ['message__like=%C3%28', /not valid UTF-8/],
    ['message__like=%C0%AF', /not valid UTF-8/],
    ['message__like=%ED%A0%80', /not valid UTF-8/],
    ['message__like=%F4%90%80%80', /not valid UTF-8/],
    ['message__like=\uFFFD', /not valid UTF-8/],
    ['_=%zz', /bad percent-escape/],
    ['%zz=1', /bad percent-escape/],
  ])('refuses %j', (rawQuery, detail) => {
    expect(problem(rawQuery)).toMatchObject({ status: 400 });
    expect(problem(rawQuery).detail).toMatch(detail);
  });

  it('decodes the output of any encoder', () => {
    const op = fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte');
    const predicate = fc.oneof(
      fc.record({
        kind: fc.constant('int'),
        field: fc.constantFrom(time, status, odd),
        op,
        value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      }),
      fc.record({
        kind: fc.constant('float'),
        field: fc.constant(seconds),
        op,
        value: fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0),
      }),
      fc.record({
        kind: fc.constant('string'),
        field: fc.constant(message),
        op: fc.constantFrom('exact', 'like', 'prefix', 'suffix'),
        value: fc.string({ unit: 'grapheme' }),
      }),
    );
    const position = fc.option(
      fc.record({ partition: fc.nat(2 ** 24 - 1), ordinal: fc.maxSafeNat().map((n) => n % 2 ** 40) }),
      { nil: undefined },
    );
    const query = fc.record({
      limit: fc.nat(5000),
      after: position,
      before: position,
      predicates: fc.array(predicate, { maxLength: 10 }),
    });
    fc.assert(
      fc.property(query, fc.boolean(), (wanted, asForm) => {
        const pairs: [string, string][] = wanted.predicates.map((each) => [
          `${schema.fields[each.field]!.name}__${each.op}`,
          String(each.value),
        ]);
        pairs.push(['limit', String(wanted.limit)]);
        if (wanted.after) pairs.push(['after', formatCursor(wanted.after)]);
        if (wanted.before) pairs.unshift(['before', formatCursor(wanted.before)]);
        const rawQuery = asForm
          ? new URLSearchParams(pairs).toString()
          : pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
        expect(parse(rawQuery)).toEqual(wanted);
      }),
      { numRuns: caseCount(500) },
    );
  });

  it('never fails except with a problem', () => {
    const piece = fc.oneof(
      anyText(),
      fc.constantFrom('time__since=', 'status__eq=', 'limit=', '&', '%', '2025-01-02 ', '1d', '__'),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          parse(pieces.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(ProblemError);
        }
      }),
      { numRuns: caseCount(1000) },
    );
  });
});

describe('the path', () => {
  it.each([
    ['/api/query/nginx', 'nginx'],
    ['/api/query/Nginx.access-1_a', 'Nginx.access-1_a'],
    ['/api/query/%6Eginx', 'nginx'],
    ['/%61pi/query/nginx', 'nginx'],
  ])('%s addresses %s', (path, agent) => {
    expect(parseAgentPath(path, 'query')).toBe(agent);
  });

  it.each([
    ['/'],
    [''],
    ['/api/query'],
    ['/api/query/'],
    ['/api/query/a/b'],
    ['/api/query/a/'],
    ['/api/query/a%2Fb'],
    ['/api/query/..'],
    ['/api/query/%2e%2e'],
    ['/api/query/.hidden'],
    ['/api/query/a+b'],
    ['/api/query/a%20b'],
    ['/api/query/a%00'],
    ['//api/query/a'],
    ['/API/query/a'],
    ['/api/query/é'],
    [`/api/query/${'a'.repeat(129)}`],
    ['/%zz/query/a'],
    ['/favicon.ico'],
  ])('%s is a 404', (path) => {
    expect(thrown(() => parseAgentPath(path, 'query'))).toMatchObject({ status: 404 });
  });

  it.each([['/api/query/%'], ['/api/query/%zz'], ['/api/query/%C3']])('%s is a 400', (path) => {
    expect(thrown(() => parseAgentPath(path, 'query'))).toMatchObject({ status: 400 });
  });
});
