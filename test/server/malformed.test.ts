import { beforeAll, describe, expect, it } from 'vitest';
import { malformedSections } from './malformed-cases.js';
import type { MalformedCase } from './malformed-cases.js';
import { describeOnTransports, startTestServer } from './running.js';
import { piece, ScriptedStore } from './scripted-store.js';
import { parseResponses, Wire } from './wire.js';

/** The outcome of a case. */
interface Outcome {
  readonly statuses: readonly number[];
  /** Which of its requests began a query: `first`, `next`. */
  readonly begun: readonly string[];
}

const allCases = malformedSections.flatMap(({ cases }) => cases);

it('there are more than a hundred cases', () => {
  expect(new Set(allCases.map(({ bytes }) => bytes)).size).toBeGreaterThan(700);
});

describeOnTransports('on %s', (transport) => {
  const outcomes = new Map<MalformedCase, Outcome>();

  // All cases run at once, because requests without an answer are closed only at the time limit of the head.
  beforeAll(async () => {
    const begun = new Set<number>();
    const store = new ScriptedStore(({ limit }) => {
      begun.add(limit);
      return [piece(limit)];
    });
    const server = await startTestServer(transport, store, { limitMax: 1_000_000, queriesMax: 1000 });
    try {
      await Promise.all(allCases.map((each, i) => tell(server.address, each, i, begun, outcomes)));
    } finally {
      await server.close({ timeoutMs: 0 });
    }
  }, 60_000);

  describe.each(malformedSections)('RFC 9112, section $section:', ({ cases }) => {
    it.each(cases)('$what', (each) => {
      const verdict = typeof each.verdict === 'string' ? each.verdict : each.verdict[transport];
      const { statuses, begun } = outcomes.get(each)!;
      if (verdict === 'refused') {
        expect(begun).toEqual([]);
        expect(statuses.length).toBeLessThan(2);
        for (const status of statuses) expect(status).toBeGreaterThanOrEqual(400);
        return;
      }
      const hasNext = each.bytes.includes('{next}');
      expect(statuses).toEqual(hasNext ? [200, 200] : [200]);
      expect(begun).toEqual(hasNext ? ['first', 'next'] : ['first']);
    });
  });
});

/** Sends the bytes of a case, whose queries are identified by their limits, and waits until the server closes the connection. */
async function tell(
  address: string,
  each: MalformedCase,
  number: number,
  begun: ReadonlySet<number>,
  outcomes: Map<MalformedCase, Outcome>,
): Promise<void> {
  const limits = { first: 2 * number + 1, next: 2 * number + 2 };
  const target = (limit: number): string => `/api/query/nginx?limit=${limit}`;
  const next = `GET ${target(limits.next)} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const wire = await Wire.open(address);
  wire.send(each.bytes.replaceAll('{target}', target(limits.first)).replaceAll('{next}', next));
  await wire.closed();
  const statuses = parseResponses(wire.bytes, each.bytes.startsWith('HEAD')).map(({ status }) => status);
  const names = Object.entries(limits).filter(([, limit]) => begun.has(limit));
  outcomes.set(each, { statuses, begun: names.map(([name]) => name) });
}
