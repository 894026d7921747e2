import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { FarCluster, hasExpected, partitionText, type FarQuestion } from '../../engine/far/far-cluster.js';
import type { FarTransport } from '../../engine/far/far-transport.js';
import { nativeBlock, unsignedColumn } from '../../engine/far/native-format.js';
import { comparePositions, positionToInt64, type Position } from '../../engine/core/cursor.js';

const runs = fc
  .array(fc.record({ gap: fc.nat(3), rows: fc.integer({ min: 1, max: 5 }), hour: fc.nat(1) }), {
    maxLength: 6,
  })
  .map((steps) => {
    let [partition, next] = [1, 1];
    return steps.map(({ gap, rows, hour }) => {
      if (hour > 0) [partition, next] = [partition + 1, 1];
      const firstOrdinal = next + gap;
      next = firstOrdinal + rows;
      return { partition, firstOrdinal, rows };
    });
  });

const position = fc.record({ partition: fc.integer({ min: 0, max: 8 }), ordinal: fc.nat(30) });
const direction = fc.constantFrom('forward' as const, 'backward' as const);

it('an answer must have every expected row in its range, and other rows do not replace a missing one', () => {
  const cases = fc.record({
    runs,
    others: fc.array(position),
    ends: fc.tuple(position, position),
    direction,
    limit: fc.integer({ min: 1, max: 40 }),
    gone: fc.nat(40),
  });
  fc.assert(
    fc.property(cases, ({ runs: expected, others, ends, direction, limit, gone }) => {
      const [from, to] = ends.sort(comparePositions) as [Position, Position];
      const keyOf = ({ partition, ordinal }: Position): string => `${partition} ${ordinal}`;
      const live = expected.flatMap(({ partition, firstOrdinal, rows }) =>
        Array.from({ length: rows }, (_, i) => ({ partition, ordinal: firstOrdinal + i })),
      );
      const isExpected = new Set(live.map(keyOf));
      const all = [...new Map([...live, ...others].map((each) => [keyOf(each), each])).values()]
        .filter((each) => comparePositions(each, from) >= 0 && comparePositions(each, to) <= 0)
        .sort(comparePositions);
      const answerOf = (rows: readonly Position[]): Parameters<typeof hasExpected>[1] => {
        const taken = direction === 'forward' ? rows.slice(0, limit) : rows.slice(-limit);
        return {
          partitions: Uint32Array.from(taken, ({ partition }) => partition),
          ordinals: Float64Array.from(taken, ({ ordinal }) => ordinal),
          isCut: taken.length >= limit,
        };
      };
      const question = { expected, from, to, direction };
      const whole = answerOf(all);
      expect(hasExpected(question, whole)).toBe(true);
      if (all.length === 0) return;
      // A row that the server lacks.
      const lost = all[gone % all.length]!;
      const place = all.indexOf(lost);
      const isBehindCut = direction === 'forward' ? place >= limit : place < all.length - limit;
      const given = answerOf(all.filter((each) => each !== lost));
      expect(hasExpected(question, given)).toBe(isBehindCut || !isExpected.has(keyOf(lost)));
    }),
    { numRuns: caseCount(500) },
  );
});

it.each([
  ['another replica is queried if one lacks a row in the middle', 4, ['a rows', 'a parts', 'b rows']],
  ['the same replica is queried again if it has received the row since', 5, ['a rows', 'a parts', 'a rows']],
])('%s', async (_, partRows, statements) => {
  const copy = {
    unit: '00000000000000aa',
    attempt: '00000000000000bb',
    shard: 0,
    rows: 5,
    bytes: 40,
    checksum: '',
    shippedMs: 0,
    isOnly: true,
  };
  const asked: string[] = [];
  const blockOf = (ordinals: readonly number[]): Uint8Array => {
    const cursors = ordinals.map((ordinal) => positionToInt64({ partition: 7, ordinal }));
    return nativeBlock([unsignedColumn('_cursor', BigUint64Array.from(cursors))], ordinals.length);
  };
  const transport: FarTransport = {
    ask: (url, { sql }) => {
      const isRows = sql.startsWith('SELECT _cursor');
      const isFirst = asked.push(`${url} ${isRows ? 'rows' : 'parts'}`) === 1;
      if (isRows) return Promise.resolve(blockOf(isFirst ? [1, 2, 4, 5] : [1, 2, 3, 4, 5]));
      return Promise.resolve(Buffer.from(`${partitionText(copy)}\t${partRows}\n`));
    },
    close: () => Promise.resolve(),
  };
  const cluster = new FarCluster({ shards: [['a', 'b']], database: 'd', user: '', password: '' }, transport);
  const question: FarQuestion = {
    agent: 'x',
    shard: 0,
    copies: [copy],
    from: { partition: 7, ordinal: 1 },
    to: { partition: 7, ordinal: 5 },
    direction: 'forward',
    // The answer has the maximum length, with or without a missing row.
    limit: 4,
    condition: null,
    schema: { fields: [] },
    expected: [{ partition: 7, firstOrdinal: 1, rows: 5 }],
  };
  const { ordinals } = await cluster.ask(question);
  expect([...ordinals].slice(0, 4)).toEqual([1, 2, 3, 4]);
  expect(asked).toEqual(statements);
  await cluster.close();
});
