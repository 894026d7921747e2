import { Random, WeightedIndex } from '../random.js';

const services = ['checkout', 'catalog', 'accounts', 'mailer', 'search', 'payments'];
const hosts = ['web-1', 'web-2', 'web-3', 'batch-1'];
const names = ['Zoë', 'Björk', 'José', 'Renée', 'Müller', 'Siân', 'Lindqvist', 'Moreau'];
const cities = ['Tromsø', 'Lyon', 'Kraków', 'Oslo', 'Porto', 'Gent'];
const levels = ['info', 'debug', 'warn', 'error'];
const usual = new WeightedIndex([780, 150, 55, 15]);
/** Weights of the levels while payments fail. */
const troubled = new WeightedIndex([420, 90, 250, 240]);

/** The options of the generated log of a shop. */
export interface ShopLog {
  readonly records: number;
  readonly startMs: number;
  readonly days: number;
  readonly seed: number;
}

function messageOf(level: string, random: Random): string {
  const order = 100_000 + random.below(900_000);
  const name = random.pick(names);
  switch (level) {
    case 'error':
      return random.pick([
        `payment of order ${order} declined: upstream did not answer within 3000 ms`,
        `cannot write receipt ${order}.pdf: no space left on device`,
        `order ${order} is queued again, the card of ${name} could not be charged`,
      ]);
    case 'warn':
      return random.pick([
        `slow query (${400 + random.below(3000)} ms) for order ${order}`,
        `retry 2 of 3 for ${name}, order ${order}`,
      ]);
    case 'debug':
      return `cache ${random.below(3) === 0 ? 'miss' : 'hit'} for key "cart:${order}"`;
    default:
      return random.pick([
        `order ${order} placed by ${name} in ${random.pick(cities)}`,
        `user ${name} signed in`,
        `receipt of order ${order} sent to ${name}`,
      ]);
  }
}

/** The load and state of an hour: more records by day than at night, and failures on two days out of five. */
function hourOf(timeMs: number): { weight: number; isTroubled: boolean } {
  const hour = Math.floor(timeMs / 3_600_000);
  const ofDay = hour % 24;
  const day = Math.floor(hour / 24);
  return {
    weight: 0.25 + Math.max(0, Math.sin(((ofDay - 5) / 24) * 2 * Math.PI)),
    isTroubled: (day % 5 === 1 && ofDay >= 14 && ofDay < 17) || (day % 5 === 3 && ofDay === 9),
  };
}

/**
 * Lines of a shop's log as JSON, in the order of their times. Several records may have the same millisecond. The same options give the same
 * lines.
 */
export function* shopLines({ records, startMs, days, seed }: ShopLog): Generator<string> {
  const random = new Random(seed);
  const hours = Array.from({ length: days * 24 }, (_, i) => hourOf(startMs + i * 3_600_000));
  const sum = hours.reduce((all, { weight }) => all + weight, 0);
  let made = 0;
  let reached = 0;
  for (const [i, { weight, isTroubled }] of hours.entries()) {
    reached += weight;
    const until = i === hours.length - 1 ? records : Math.round((records * reached) / sum);
    const times = Array.from(
      { length: until - made },
      () => startMs + i * 3_600_000 + 20 * random.below(180_000),
    );
    for (const timeMs of times.sort((a, b) => a - b)) yield lineOf(timeMs, isTroubled, random);
    made = until;
  }
}

function lineOf(timeMs: number, isTroubled: boolean, random: Random): string {
  const level = levels[(isTroubled ? troubled : usual).draw(random)]!;
  const service = isTroubled && level === 'error' ? 'payments' : random.pick(services);
  const traceId = (BigInt(random.uint32() >>> 1) << 32n) | BigInt(random.uint32());
  const context = {
    city: random.pick(cities),
    items: 1 + random.below(9),
    tags: [service, `v${random.below(4)}`],
  };
  const head = JSON.stringify({
    time: new Date(timeMs).toISOString(),
    level,
    service,
    host: random.pick(hosts),
  });
  const tail = JSON.stringify({
    duration: Math.round(random.exponential(40) * 100) / 100,
    context,
    message: messageOf(level, random),
  });
  // JSON.stringify can't write integers beyond 2^53, so the id is inserted as text.
  return `${head.slice(0, -1)},"trace_id":${traceId},${tail.slice(1)}`;
}

/** The file of the agent that reads the lines. */
export const shopAgent = `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: level
  - name: service
  - name: host
  - name: trace_id
    type: int
  - name: duration
    type: float
    description: Time that the work took, in milliseconds
  - name: context
  - name: message
file: { path: 'logs/shop\\.log', format: json }
`;
