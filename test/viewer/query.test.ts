import { expect, it } from 'vitest';
import { fc } from '../cases.js';
import {
  addressOf,
  readAddress,
  questionOf,
  requestPath,
  shifted,
  spanOf,
  widened,
  plainView,
  type View,
} from '../../server/viewer/state/view.js';
import { typeFacts, unitedFields, usualColumns, type Field } from '../../server/viewer/state/field.js';
import {
  canBeMember,
  conditionList,
  conditionsOf,
  filterParameters,
  gathered,
  takesNone,
  togglePresence,
  toggleUnwanted,
  toggleWanted,
  type Filter,
} from '../../server/viewer/state/filter.js';
import { anyText } from '../model/any-text.js';

const examples: Readonly<Record<Field['type'], string>> = {
  int: '9007199254740993',
  float: '0.25',
  bool: 'true',
  time: '15m',
  string: 'a&b=c+d é%',
};
const fields: readonly Field[] = (['time', 'int', 'float', 'bool', 'string'] as const).map((type) => ({
  name: `a_${type}`,
  type,
}));

const filter: fc.Arbitrary<Filter> = fc.constantFrom(...fields).chain((field) =>
  fc.constantFrom(...typeFacts[field.type].operators).map((operator) => ({
    field: field.name,
    operator,
    values: takesNone(operator)
      ? []
      : operator === 'in' || operator === 'not_in'
        ? [examples[field.type], `${examples[field.type]}0`]
        : [examples[field.type]],
  })),
);
/** Filters as the page has them: single ones, and groups of which one must match. */
const conditions = fc
  .array(fc.array(filter, { minLength: 1, maxLength: 3 }), { maxLength: 4 })
  .map((groups) => conditionsOf(groups.filter((group) => group.length === 1 || group.every(canBeMember))));

it('requests the text and the range in addition to the filters', () => {
  const view: View = { ...plainView, agent: 'a b', text: 'x+y', filters: [] };
  const question = questionOf(view, fields, { sinceMs: -1, untilMs: 5 });
  expect(question.parameters).toEqual([
    ['*__like', 'x+y'],
    ['a_time__since', '1969-12-31T23:59:59.999Z'],
    ['a_time__until', '1970-01-01T00:00:00.005Z'],
  ]);
  expect(requestPath('query', question).startsWith('/api/query/a%20b?')).toBe(true);
});

const level: Field = { name: 'level', type: 'string' };

it('a second value of a field is added to the filter, and another click removes a value', () => {
  const one = toggleWanted([], level, 'error');
  expect(one).toEqual([{ field: 'level', operator: 'exact', values: ['error'] }]);
  const two = toggleWanted(one, level, 'warn');
  expect(filterParameters(two)).toEqual([
    ['level__in', 'error'],
    ['level__in', 'warn'],
  ]);
  expect(toggleWanted(two, level, 'error')).toEqual([
    { field: 'level', operator: 'exact', values: ['warn'] },
  ]);
  // Excluding a value also removes it from the wanted ones.
  expect(filterParameters(toggleUnwanted(two, level, 'warn'))).toEqual([
    ['level__exact', 'error'],
    ['level__ne', 'warn'],
  ]);
  expect(toggleUnwanted(toggleUnwanted([], level, 'debug'), level, 'debug')).toEqual([]);
});

it('joins filters to groups of which one must match, and splits them again', () => {
  const error: Filter = { field: 'level', operator: 'exact', values: ['error'] };
  const slow: Filter = { field: 'duration', operator: 'gt', values: ['1000'] };
  const view: View = {
    ...plainView,
    agent: 'shop',
    filters: [error],
    groups: [[slow, error]],
    text: 'a or b c',
  };
  expect(addressOf(view)).toBe(
    '#/shop?level__exact=error&any=duration__gt%3D1000&any=level__exact%3Derror&text=a+or+b+c',
  );
  expect(questionOf(view, fields, {}).parameters).toEqual([
    ['level__exact', 'error'],
    ['any', 'duration__gt=1000'],
    ['any', 'level__exact=error'],
    ['any2', '*__like=a'],
    ['any2', '*__like=b'],
    ['*__like', 'c'],
  ]);
  const [first, group] = conditionList(view);
  expect(conditionsOf([[...first!, ...group!]])).toEqual({ filters: [], groups: [[error, slow, error]] });
  expect(conditionsOf([[slow], [error], []])).toEqual({ filters: [slow, error], groups: [] });
  // In a group, a set of values is one alternative for each of them, so sets of a field are one set.
  const sets = ['a', 'b'].map((value): Filter => ({ field: 'level', operator: 'in', values: [value] }));
  expect(conditionsOf([sets])).toEqual({
    filters: [{ field: 'level', operator: 'in', values: ['a', 'b'] }],
    groups: [],
  });
});

it('refuses more groups than the route takes, in words', () => {
  const pair = 'a or b ';
  expect(questionOf({ ...plainView, text: pair.repeat(9) }, fields, {}).refusal).toBeUndefined();
  const question = questionOf({ ...plainView, text: pair.repeat(10) }, fields, {});
  expect(() => requestPath('query', question)).toThrow(
    /at most 9 groups joined by “or”, and this one has 10/,
  );
});

it('requires a value or none, in the words of the route', () => {
  const present = togglePresence([], 'level', 'exists');
  expect(filterParameters(present)).toEqual([['level__exists', 'true']]);
  const absent = togglePresence(present, 'level', 'not_exists');
  expect(filterParameters(absent)).toEqual([['level__exists', 'false']]);
  expect(togglePresence(absent, 'level', 'not_exists')).toEqual([]);
});

it('shows several sets of a field as the one set that the route combines them to', () => {
  const sets: Filter[] = [
    { field: 'level', operator: 'in', values: ['a', 'b'] },
    { field: 'level', operator: 'in', values: ['b', 'c'] },
  ];
  expect(gathered(sets)).toEqual([{ field: 'level', operator: 'in', values: ['a', 'b', 'c'] }]);
});

const range = fc.oneof(
  fc.constant({ kind: 'all' as const }),
  fc.constantFrom('15m', '1d12h').map((length) => ({ kind: 'last' as const, length })),
  fc
    .tuple(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1, max: 1e9 }))
    .map(([sinceMs, length]) => ({ kind: 'between' as const, sinceMs, untilMs: sinceMs + length })),
);
const column = fc.record(
  { name: fc.constantFrom('time', 'a_int', 'message'), width: fc.integer({ min: 40, max: 4000 }) },
  { requiredKeys: ['name'] },
);

it('an address holds the whole view', () => {
  const views = fc.record({
    agent: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,10}$/),
    range,
    text: fc.string({ unit: 'grapheme', minLength: 1 }),
    textField: fc.constant('message'),
    columns: fc.uniqueArray(column, { selector: ({ name }) => name }),
    isWrapped: fc.boolean(),
    split: fc.constantFrom('', 'status'),
    line: fc.constantFrom({ field: 'a:b', fn: 'p95' as const }, { field: 'duration', fn: 'avg' as const }),
    cursor: fc.constant('079bd70000000019'),
    isContext: fc.boolean(),
    isLive: fc.boolean(),
    isNewestFirst: fc.boolean(),
  });
  fc.assert(
    fc.property(views, conditions, (view, { filters, groups }) => {
      expect(readAddress(addressOf({ ...view, filters, groups }))).toEqual({ ...view, filters, groups });
    }),
  );
});

it('accepts any address as a view, and ignores unknown parts', () => {
  fc.assert(
    fc.property(anyText(), (text) => {
      const view = readAddress(`#/${text}`);
      expect(readAddress(addressOf(view))).toEqual(view);
    }),
  );
  expect(readAddress('')).toEqual(plainView);
  expect(readAddress('#/app?status__nonsense=1&record=zz&context=1&columns=a:9,,b:100&last=soon')).toEqual({
    ...plainView,
    agent: 'app',
    columns: [{ name: 'a' }, { name: 'b', width: 100 }],
  });
  expect(readAddress(`#/app?columns=${'x,'.repeat(500_000)}`).columns).toHaveLength(1);
});

it('the fields of several agents are one list', () => {
  const union = unitedFields([
    { agent: 'a', fields: [{ name: 'time', type: 'time' }, level] },
    { agent: 'b', fields: [level, { name: 'at', type: 'time' }, { name: 'size', type: 'int' }] },
  ]);
  expect(union.map(({ name }) => name)).toEqual(['time', 'level', 'at', 'size']);
  expect(union.map(({ lackedBy }) => lackedBy)).toEqual([['b'], [], ['a'], ['a']]);
  // A range is looked for in the time field of each.
  expect(questionOf({ ...plainView, agent: 'a,b' }, union, { sinceMs: 0 }).parameters).toEqual([
    ['any', 'time__since=1970-01-01T00:00:00.000Z'],
    ['any', 'at__since=1970-01-01T00:00:00.000Z'],
  ]);
  const address = '#/a,b?level__exact=error&record=1f0c22ab.2.079bd70000000019.079bd600000000ff';
  expect(addressOf(readAddress(address))).toBe(address);
});

it('ranges resolve to instants, and have neighbours', () => {
  expect(spanOf({ kind: 'last', length: '1h' }, 7_200_000)).toEqual({ sinceMs: 3_600_000 });
  expect(shifted({ sinceMs: 100, untilMs: 150 }, -1)).toEqual({ kind: 'between', sinceMs: 50, untilMs: 100 });
  expect(shifted({ sinceMs: 100, untilMs: 150 }, 1)).toEqual({ kind: 'between', sinceMs: 150, untilMs: 200 });
  expect(widened({ sinceMs: 10_000, untilMs: 20_000 })).toEqual({
    kind: 'between',
    sinceMs: 5000,
    untilMs: 25_000,
  });
});

it('a table begins with the columns of time, severity, source and message', () => {
  const named = (names: string): Field[] =>
    names
      .split(' ')
      .map((name) => ({ name, type: name === 'time' ? 'time' : name === 'status' ? 'int' : 'string' }));
  expect(usualColumns(named('time level service trace context message'))).toEqual([
    'time',
    'level',
    'service',
    'message',
  ]);
  expect(usualColumns(named('time remote_addr method path status message'))).toEqual([
    'time',
    'status',
    'remote_addr',
    'message',
  ]);
  expect(usualColumns(named('time remote_addr method path status user_agent'))).toEqual([
    ...['time', 'status', 'remote_addr', 'path'],
  ]);
  expect(usualColumns([{ name: 'n', type: 'int' }])).toEqual(['n']);
});
