import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { farCondition } from '../../engine/far/far-condition.js';
import { preparePredicates } from '../../engine/scan/predicate.js';
import type { Predicate } from '../../engine/scan/query.js';
import { questionText } from '../../engine/far/far-cluster.js';
import { quotedName, textLiteral } from '../../engine/far/far-sql.js';
import { datasets, predicates, strangeSchema, strangeText } from '../model/arbitraries.js';
import { anyText } from '../model/any-text.js';

const literal = /'(?:[A-Za-z0-9 _./:=,-]|\\x[0-9A-F]{2})*'/g;

/** SQL without its literals: only our own words, names, numbers and operators are left. */
const skeleton =
  /^(?:SELECT|FROM|WHERE|AND|OR|NOT|ORDER BY|DESC|LIMIT|FORMAT Native|IN|isNotNull|isNull|ifNull|positionCaseInsensitive|position|startsWith|endsWith|lower|toInt64|toUInt64|reinterpretAsFloat64|unhex|_cursor|_attempt|`[a-z_.0-9A-Z-]+`|[\d ',.*()<>=!])*$/;

function conditionOf(predicate: Predicate): string | null {
  const prepared = preparePredicates({ limit: 1, predicates: [predicate] }, strangeSchema);
  return farCondition(prepared, strangeSchema, strangeSchema);
}

describe('SQL for the far tier', () => {
  it('contains texts as literals that no character can end', () => {
    fc.assert(
      fc.property(fc.oneof(strangeText(60), anyText()), (text) => {
        const bytes = Buffer.from(text);
        const written = textLiteral(bytes);
        expect(written.replaceAll(literal, '')).toBe('');
        const read = written
          .slice(1, -1)
          .replaceAll(/\\x([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
        expect(Buffer.from(read, 'latin1').equals(bytes)).toBe(true);
      }),
      { numRuns: caseCount(2000) },
    );
  });

  it('consists of our own words and literals, whatever the query', () => {
    const cases = datasets(20).chain((dataset) =>
      fc.array(predicates(dataset), { minLength: 1, maxLength: 4 }),
    );
    fc.assert(
      fc.property(cases, (drawn) => {
        const prepared = preparePredicates({ limit: 1, predicates: drawn }, strangeSchema);
        const condition = farCondition(prepared, strangeSchema, strangeSchema);
        const settings = { shards: [['http://a']], database: 'logs', user: '', password: '' };
        const sql = questionText(settings, {
          agent: 'web-1.x',
          shard: 0,
          copies: [],
          from: { partition: 1, ordinal: 1 },
          to: { partition: 2 ** 24 - 1, ordinal: 2 ** 40 - 1 },
          direction: 'backward',
          limit: 10,
          condition,
          schema: strangeSchema,
        });
        expect(sql.replaceAll(literal, "'")).toMatch(skeleton);
      }),
      { numRuns: caseCount(1000) },
    );
  });

  it('quotes names', () => {
    expect(quotedName('a`b\\c')).toBe('`a\\`b\\\\c`');
  });

  it('selects at least the matching rows, also for texts whose case the server cannot fold', () => {
    const field = 4;
    const like = (value: string) => conditionOf({ kind: 'string', field, op: 'like', value });
    expect(like('error')).toBe("(positionCaseInsensitive(`message__string`, 'error') > 0)");
    expect(like('task')).toContain("position(`message__string`, '\\xC5\\xBF') > 0");
    expect(like('größe=1')).toBe("(positionCaseInsensitive(`message__string`, 'e=1') > 0)");
    expect(like('ÄÖ')).toBe('isNotNull(`message__string`)');
    const notLike = conditionOf({ kind: 'string', field, op: 'not_like', value: 'ÄÖ' });
    expect(notLike).toBe("NOT (position(`message__string`, '\\xC3\\x84\\xC3\\x96') > 0)");
  });

  it('lets rows without any text pass if the empty text must be absent', () => {
    const absent = { kind: 'anywhere', op: 'like', isAbsent: true, value: '' } as const;
    expect(conditionOf(absent)).toBe('(isNull(`method__string`) AND isNull(`message__string`))');
  });

  it('recognises conditions that cannot be true', () => {
    expect(conditionOf({ kind: 'int', field: 1, op: 'gt', value: 2n ** 63n - 1n })).toBe('0');
    const stored = { fields: [{ name: 'time', type: 'time' as const }] };
    const prepared = preparePredicates(
      { limit: 1, predicates: [{ kind: 'int', field: 1, op: 'ne', value: 1n }] },
      strangeSchema,
    );
    expect(farCondition(prepared, strangeSchema, stored)).toBe('0');
  });
});
