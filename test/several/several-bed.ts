import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import {
  makeSchema,
  placementField,
  type FieldPredicate,
  type Predicate,
  type Schema,
} from '../../engine/core/schema.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import type { SeveralQuery } from '../../engine/several/several-answer.js';
import type { SeveralStore } from '../../engine/several/several-store.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import type { Value } from '../model/dataset.js';
import { between, type Random } from '../model/random.js';
import { pageOfSeveral, type ListedAgent, type ListedQuery, type ListedRecord } from '../model/several.js';
import { answer, append, load, noon, openOn, textOf } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

const schemas: readonly Schema[] = [
  makeSchema([
    { name: 'time', type: 'time' },
    { name: 'status', type: 'int' },
    { name: 'took', type: 'float' },
    { name: 'message', type: 'string' },
  ]),
  // Other fields, in another order; `status` is of another type, and the clock is of `at`.
  makeSchema([
    { name: 'message', type: 'string' },
    { name: 'at', type: 'time' },
    { name: 'level', type: 'int' },
    { name: 'status', type: 'string' },
    { name: 'time', type: 'time' },
  ]),
  makeSchema([
    { name: 'level', type: 'int' },
    { name: 'message', type: 'string' },
  ]),
];

/** A filter on records as lists have them, and each agent's own predicates; null where it lacks the field. */
export interface SeveralFilter {
  readonly matches: (record: ListedRecord) => boolean;
  readonly predicates: (schema: Schema) => readonly Predicate[] | null;
}

function filterOn(
  name: string,
  matches: (record: ListedRecord) => boolean,
  predicate: (field: number, type: string) => Predicate,
): SeveralFilter {
  const predicates = ({ fields }: Schema): readonly Predicate[] | null => {
    const field = fields.findIndex((each) => each.name === name);
    return field < 0 ? null : [predicate(field, fields[field]!.type)];
  };
  return { matches, predicates };
}

export const filters: readonly SeveralFilter[] = [
  { matches: () => true, predicates: () => [] },
  filterOn(
    'message',
    ({ message }) => String(message).includes('1'),
    (field) => ({ kind: 'string', field, op: 'like', value: '1' }),
  ),
  filterOn(
    'message',
    ({ message }) => message === 'alone',
    (field) => ({ kind: 'string', field, op: 'exact', value: 'alone' }),
  ),
  filterOn(
    'status',
    ({ status }) => status === 1 || status === '1',
    (field, type) =>
      type === 'int'
        ? { kind: 'int', field, op: 'eq', value: 1n }
        : { kind: 'string', field, op: 'exact', value: '1' },
  ),
  filterOn(
    'level',
    ({ level }) => typeof level === 'number' && level > 1,
    (field) => ({ kind: 'int', field, op: 'gt', value: 1n }),
  ),
  filterOn(
    'message',
    () => false,
    (field) => ({ kind: 'string', field, op: 'exact', value: 'nowhere' }),
  ),
];

/** A filter on one field, which an agent may lack. */
interface OneFilter {
  readonly name: string;
  /** @param value undefined where the agent lacks the field */
  readonly matches: (value: unknown) => boolean;
  readonly predicate: (field: number, type: string) => FieldPredicate;
}

/** Texts that are patterns of RE2 and of JavaScript alike. */
const patterns = [
  '[13]$',
  '^alone$',
  'record (1|2)',
  '\\d\\d',
  '^record [^5]*$',
  'o.*1',
  '(?:one|rec)',
  '1|alone',
];

function oneFilter(random: Random): OneFilter {
  const kind = between(random, 0, 6);
  const value = between(random, 0, 4);
  const isThere = random() < 0.5;
  const pattern = patterns[between(random, 0, patterns.length)]!;
  const isNull = (one: unknown): boolean => one === null || one === undefined;
  if (kind < 2)
    return {
      name: 'message',
      matches: (one) => typeof one === 'string' && new RegExp(pattern, 'u').test(one) === isThere,
      predicate: (field) => {
        return { kind: 'string', field, op: isThere ? 'regex' : 'not_regex', value: pattern };
      },
    };
  if (kind === 2)
    return {
      name: ['status', 'level', 'took', 'time'][between(random, 0, 4)]!,
      matches: (one) => isNull(one) !== isThere,
      predicate: (field) => ({ kind: 'exists', field, value: isThere }),
    };
  if (kind === 3)
    return {
      name: 'message',
      matches: (one) => String(one ?? '').includes(`${value}`),
      predicate: (field) => ({ kind: 'string', field, op: 'like', value: `${value}` }),
    };
  if (kind === 4)
    return {
      name: 'status',
      matches: (one) => !isNull(one) && String(one) === `${value}`,
      predicate: (field, type) =>
        type === 'int'
          ? { kind: 'int', field, op: 'eq', value: BigInt(value) }
          : { kind: 'string', field, op: 'exact', value: `${value}` },
    };
  return {
    name: 'level',
    matches: (one) => typeof one === 'number' && one >= value,
    predicate: (field) => ({ kind: 'int', field, op: 'gte', value: BigInt(value) }),
  };
}

/** One to three clauses at random, each a filter or a group of filters. */
export function anyFilter(random: Random): SeveralFilter {
  const clauses = Array.from({ length: between(random, 1, 4) }, () =>
    Array.from({ length: random() < 0.5 ? 1 : between(random, 1, 5) }, () => oneFilter(random)),
  );
  const predicates = ({ fields }: Schema): readonly Predicate[] | null => {
    const asked: Predicate[] = [];
    for (const clause of clauses) {
      const members: FieldPredicate[] = [];
      let holdsAlways = false;
      for (const { name, matches, predicate } of clause) {
        const field = fields.findIndex((each) => each.name === name);
        if (field >= 0) members.push(predicate(field, fields[field]!.type));
        else holdsAlways ||= matches(undefined);
      }
      if (holdsAlways) continue;
      if (members.length === 0) return null;
      asked.push(clause.length === 1 ? members[0]! : { kind: 'any', members });
    }
    return asked;
  };
  const matches = (record: ListedRecord): boolean =>
    clauses.every((clause) => clause.some((each) => each.matches(record[each.name])));
  return { matches, predicates };
}

/** What stores hold now, of which a filter matches some. */
export function listedOf(
  stores: readonly AgentStore[],
  matches: ListedAgent['matches'],
): Promise<ListedAgent[]> {
  return Promise.all(
    stores.map(async (store) => ({
      name: store.name,
      fields: store.schema.fields.map(({ name }) => name),
      time: store.schema.fields[placementField(store.schema)]?.name,
      records: recordsOf(await answer(store)),
      matches,
    })),
  );
}

const hourMs = 3_600_000;
const noThreads = new WorkerPool(0);

/** Two to four agents of an archive, and what they are asked together. */
export class SeveralBed {
  readonly stores: AgentStore[] = [];
  store!: SeveralStore;
  /** The service's clock. */
  now = noon;
  private number = 0;

  private constructor(
    readonly archive: Archive,
    private readonly random: Random,
    private readonly isSorted: boolean,
  ) {}

  static async open(
    random: Random,
    count: number,
    workers = noThreads,
    directory: Directory = new MemoryDirectory(),
  ): Promise<SeveralBed> {
    const clock = { now: noon };
    const archive = await openOn(directory, () => clock.now, workers);
    const bed = new SeveralBed(archive, random, random() < 0.3);
    Object.defineProperty(bed, 'now', {
      get: () => clock.now,
      set: (now: number) => (clock.now = now),
    });
    for (let k = 0; k < count; k++) {
      const kind = Math.floor(random() * 3.4) % 3;
      bed.stores.push(await archive.agent(`agent-${'dbca'[k]}`, schemas[kind]!));
    }
    const [first, ...others] = bed.stores;
    bed.store = first!.joined(others);
    return bed;
  }

  /** Commits some records of one agent, in time or late; or loads them as files, which are sealed. */
  async commit(rowsMax = 9, only: 'load' | null = null): Promise<void> {
    const { random } = this;
    const store = this.stores[between(random, 0, this.stores.length)]!;
    const rows = Array.from({ length: between(random, 1, rowsMax) }, () => this.#row(store.schema));
    const way = random();
    if (only === 'load') return load(store, rows, between(random, 1, 5));
    if (way < 0.5) await append(store, rows, 'live');
    else if (way < 0.7) await append(store, rows, 'load');
    else await load(store, rows, between(random, 1, 5));
    if (random() < 0.15) await store.compact();
    if (random() < 0.3) this.now += between(random, 0, 2) * hourMs;
  }

  #row({ fields }: Schema): Value[] {
    const { random } = this;
    const hours = this.isSorted ? 0 : between(random, 0, 4);
    const time = this.now - hours * hourMs - (this.isSorted ? 0 : between(random, 0, 6) * 60_000);
    return fields.map(({ name, type }): Value => {
      if (type === 'time') return random() < 0.15 ? null : BigInt(time + between(random, 0, 3));
      if (name === 'message') return random() < 0.02 ? 'alone' : `record ${this.number++}`;
      if (random() < 0.1) return null;
      if (type === 'int') return BigInt(between(random, 0, 4));
      if (type === 'float') return between(random, 0, 9) / 7;
      return String(between(random, 0, 3));
    });
  }

  /** What the agents hold now. */
  listed({ matches }: SeveralFilter): Promise<ListedAgent[]> {
    return listedOf(this.stores, matches);
  }

  query({ limit, after, before }: ListedQuery, filter: SeveralFilter): SeveralQuery {
    const { cursors } = this.store;
    const positionOf = (cursor: string | undefined) =>
      cursor === undefined ? undefined : (cursors.parse(cursor) as SeveralQuery['after']);
    return {
      limit,
      after: positionOf(after),
      before: positionOf(before),
      predicates: [],
      of: this.stores.map(({ schema }) => filter.predicates(schema)),
    };
  }

  async page(query: ListedQuery, filter: SeveralFilter): Promise<ListedRecord[]> {
    return recordsOf(await textOf((await this.store.scan(this.query(query, filter))).lines));
  }

  async expected(query: ListedQuery, filter: SeveralFilter): Promise<ListedRecord[]> {
    return pageOfSeveral(await this.listed(filter), query);
  }
}

export function recordsOf(text: string): ListedRecord[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ListedRecord);
}
