import { arrivalTimes } from './arrivals.js';
import { Random, WeightedIndex } from './random.js';
import type { RecordOptions } from './web-records.js';

const services = ['checkout', 'catalog', 'accounts', 'mailer', 'search'];
const names = ['Zoë', 'Łukasz', 'Björk', 'José', 'Ναταλία', '山田太郎', 'Ольга', 'Renée', 'Müller', 'Siân'];
const cities = ['Tromsø', 'São Paulo', 'Kraków', 'München', '東京', 'Αθήνα', 'Lyon', 'Oslo'];
const levels = ['info', 'debug', 'warn', 'error'];
const levelIndex = new WeightedIndex([78, 14, 6, 2]);

function drawMessage(level: string, random: Random): string {
  const name = random.pick(names);
  const order = 100_000 + random.below(900_000);
  switch (level) {
    case 'error':
      return random.pick([
        `payment of order ${order} declined: card of ${name} expired`,
        `upstream did not answer within 3000 ms, order ${order} is queued again`,
        `cannot write receipt ${order}.pdf: no space left on device`,
      ]);
    case 'warn':
      return random.pick([
        `slow query (${400 + random.below(3000)} ms) for order ${order}`,
        `retry 2 of 3 for ${name}`,
      ]);
    case 'debug':
      return `cache ${random.below(3) === 0 ? 'miss' : 'hit'} for key "cart:${order}"`;
    default:
      return random.pick([
        `order ${order} placed by ${name} in ${random.pick(cities)} ☕`,
        `user ${name} signed in`,
        `receipt of order ${order} sent to ${name}`,
      ]);
  }
}

/**
 * Lines of an application's log as JSON. They have levels, 64-bit ids that a double can't represent, a nested value, and text that is not
 * ASCII. The same options give the same lines.
 */
export function* appRecordLines(options: RecordOptions): Generator<string> {
  const random = new Random(options.seed);
  for (const timeMs of arrivalTimes(
    options.rows,
    options.startMs,
    options.days,
    new Random(options.seed ^ 0x5bd1e995),
  )) {
    const level = levels[levelIndex.draw(random)]!;
    const traceId = (BigInt(random.uint32() >>> 1) << 32n) | BigInt(random.uint32());
    const context = {
      city: random.pick(cities),
      items: 1 + random.below(9),
      tags: [random.pick(services), `v${random.below(4)}`],
    };
    const head = JSON.stringify({
      time: new Date(timeMs).toISOString(),
      level,
      service: random.pick(services),
    });
    // JSON.stringify can't write integers beyond 2^53, so the id is inserted as text.
    const tail = JSON.stringify({
      duration_ms: Math.round(random.exponential(40) * 100) / 100,
      context,
      message: drawMessage(level, random),
    });
    yield `${head.slice(0, -1)},"trace_id":${traceId},${tail.slice(1)}`;
  }
}
