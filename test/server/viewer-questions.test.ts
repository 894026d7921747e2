import { describe, expect, it } from 'vitest';
import { parseQueryRequest } from '../../server/http/query-request.js';
import { typeFacts, type Field } from '../../server/viewer/state/field.js';
import { filterParameters, negated, type Filter } from '../../server/viewer/state/filter.js';
import { questionOf, requestPath, plainView } from '../../server/viewer/state/view.js';

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

/** The route's parse of a request from the viewer. */
function read(path: string): ReturnType<typeof parseQueryRequest> {
  return parseQueryRequest(path.split('?')[1] ?? '', {
    schema: { fields },
    limitMax: 1000,
    limitDefault: 100,
    now: Date.UTC(2026, 10, 20),
    timezone: 'UTC',
  });
}

describe.each(fields)('a filter of the viewer on $name', ({ name, type }) => {
  it.each(typeFacts[type].operators)('%s is accepted by the route, and so is its negation', (operator) => {
    const one: Filter = { field: name, operator, values: [examples[type]] };
    const opposite = negated(one, type);
    expect(negated(opposite, type)).toEqual(one);
    for (const asked of [one, opposite]) {
      const question = { agent: 'app', parameters: filterParameters([asked]) };
      expect(read(requestPath('query', question)).predicates).toHaveLength(1);
    }
  });
});

it('the route accepts texts and times of any year in the form that the viewer sends', () => {
  const view = { ...plainView, agent: 'app', text: '"x+y %_" -é' };
  const question = questionOf(view, fields, { sinceMs: -1, untilMs: 5 });
  const { predicates, limit } = read(requestPath('query', question, [['limit', '7']]));
  expect(limit).toBe(7);
  expect(predicates).toMatchObject([
    { kind: 'anywhere', op: 'like', isAbsent: false, value: 'x+y %_' },
    { kind: 'anywhere', op: 'like', isAbsent: true, value: 'é' },
    { op: 'gte', value: -1n },
    { op: 'lt', value: 5n },
  ]);
});
