import { createHash } from 'node:crypto';

/** One record of an agent as its own query answers it. */
export interface ListedRecord {
  readonly _cursor: string;
  readonly [field: string]: unknown;
}

/** An agent as lists: all records of the state in the order of their cursors. */
export interface ListedAgent {
  readonly name: string;
  readonly fields: readonly string[];
  /** The field that its clock is of; undefined without one. */
  readonly time: string | undefined;
  readonly records: readonly ListedRecord[];
  readonly matches: (record: ListedRecord) => boolean;
}

export interface ListedQuery {
  readonly limit: number;
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly fields?: readonly string[] | undefined;
}

/** A record among those of all agents. */
interface Placed {
  readonly agent: number;
  readonly record: ListedRecord;
  readonly hour: string;
  readonly clock: number;
}

const hourMs = 3_600_000;
export const beginning = '0'.repeat(16);

function compare(a: Placed, b: Placed): number {
  if (a.hour !== b.hour) return a.hour < b.hour ? -1 : 1;
  if (a.clock !== b.clock) return a.clock - b.clock;
  if (a.agent !== b.agent) return a.agent - b.agent;
  return a.record._cursor < b.record._cursor ? -1 : 1;
}

/** All records with their clocks, in the order of the merge. */
export function placed(agents: readonly ListedAgent[]): Placed[] {
  const all = agents.flatMap(({ time, records }, agent) => {
    const latest = new Map<string, number>();
    return records.map((record): Placed => {
      const hour = record._cursor.slice(0, 6);
      const own = time === undefined ? null : (record[time] as number | null);
      const clock = Math.max(latest.get(hour) ?? parseInt(hour, 16) * hourMs, own ?? 0);
      latest.set(hour, clock);
      return { agent, record, hour, clock };
    });
  });
  return all.sort(compare);
}

interface Cut {
  readonly agent: number | undefined;
  readonly positions: readonly string[];
}

function cutOf(cursor: string, count: number): Cut {
  if (cursor === beginning) return { agent: undefined, positions: Array<string>(count).fill(beginning) };
  const [, number, ...positions] = cursor.split('.');
  return { agent: Number(number) - 1, positions };
}

/** The page that a query gets, computed on lists as the rules say it. */
export function pageOfSeveral(agents: readonly ListedAgent[], query: ListedQuery): ListedRecord[] {
  const names = agents.map(({ name }) => name);
  const digest = createHash('sha256').update(names.join()).digest('hex').slice(0, 8);
  const low = cutOf(query.after ?? beginning, agents.length);
  const high = query.before === undefined ? undefined : cutOf(query.before, agents.length);
  const isWithin = ({ agent, record: { _cursor } }: Placed): boolean => {
    if (high === undefined) return true;
    return agent === high.agent ? _cursor < high.positions[agent]! : _cursor <= high.positions[agent]!;
  };
  const within = placed(agents).filter(isWithin);
  const found = within.filter(
    ({ agent, record }) => record._cursor > low.positions[agent]! && agents[agent]!.matches(record),
  );
  const isFirst = query.after !== undefined;
  const taken = isFirst ? found.slice(0, query.limit) : found.slice(Math.max(0, found.length - query.limit));
  const fields = query.fields ?? [...new Set(agents.flatMap((agent) => agent.fields))];
  return taken.map((each) => {
    const behind = within.slice(0, within.indexOf(each));
    const positions = agents.map((_, k) => {
      if (k === each.agent) return each.record._cursor;
      const last = behind.findLast(({ agent }) => agent === k)?.record._cursor ?? beginning;
      return last > low.positions[k]! ? last : low.positions[k]!;
    });
    return {
      _cursor: [digest, each.agent + 1, ...positions].join('.'),
      _agent: names[each.agent],
      ...Object.fromEntries(fields.map((field) => [field, each.record[field] ?? null])),
    };
  });
}
