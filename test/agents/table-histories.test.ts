import { expect, it } from 'vitest';
import { isLogstrataError, type SeenState } from '../../engine/index.js';
import { parseCursor } from '../../engine/core/cursor.js';
import { caseCount, fc, isWhole, seed } from '../cases.js';
import { DeltaLake, hour, type Row } from './delta-table.js';
import { IcebergLake } from './iceberg-table.js';

const columns = { ts: { type: 'timestamp', id: 1 }, n: { type: 'long', id: 2 } } as const;
const everything = { limit: 100_000, after: undefined, before: undefined, predicates: [] };
const hours = 3;

/** A step of a history. */
type Step =
  | { readonly kind: 'append'; readonly rows: readonly number[] }
  | { readonly kind: 'remove'; readonly file: number }
  | { readonly kind: 'delete'; readonly file: number; readonly rows: readonly number[] }
  | { readonly kind: 'rewrite'; readonly files: readonly number[]; readonly pieces: number }
  | { readonly kind: 'look' | 'restart' | 'walk' };

const files = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append'),
      rows: fc.array(fc.nat(hours - 1), { minLength: 1, maxLength: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove'), file: files }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('rewrite'),
      files: fc.array(files, { minLength: 1, maxLength: 3 }),
      pieces: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('delete'),
      file: files,
      rows: fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 5, arbitrary: fc.constant({ kind: 'look' } as const) },
  { weight: 5, arbitrary: fc.constant({ kind: 'walk' } as const) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' } as const) },
) as fc.Arbitrary<Step>;

interface ModelFile {
  readonly action: ReturnType<DeltaLake['add']>;
  /** Rows that are not deleted, by their places in the file. */
  readonly rows: ReadonlyMap<number, Row>;
  readonly deleted: readonly number[];
}

function modelOf(action: ModelFile['action'], rows: readonly Row[]): ModelFile {
  return { action, rows: new Map(rows.entries()), deleted: [] };
}

/** A client that walks through the records, a page at a time. */
class Walker {
  readonly seen: number[] = [];
  /** The rows that were answered when it began, and of these those that have been in the table since. */
  standing: Set<unknown>;
  cursor: string | undefined;
  state: 'walking' | 'ended' | 'broken' = 'walking';

  constructor(
    readonly isForward: boolean,
    standing: readonly unknown[],
  ) {
    this.standing = new Set(standing);
  }

  async step(lake: DeltaLake): Promise<void> {
    const position = this.cursor === undefined ? undefined : parseCursor(this.cursor);
    const first = { partition: 0, ordinal: 0 };
    const after = this.isForward ? (position ?? first) : undefined;
    const before = this.isForward ? undefined : position;
    try {
      const rows = await lake.page({ ...everything, limit: 2, after, before });
      this.seen.push(...rows.map(({ n }) => n as number));
      this.cursor = (this.isForward ? rows.at(-1) : rows.at(0))?._cursor as string | undefined;
      if (rows.length === 0) this.state = 'ended';
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'gone') throw error;
      this.state = 'broken';
    }
  }
}

/** A history of a table, the rows that it should have, and clients of it. */
class History {
  live: ModelFile[] = [];
  told: unknown[] = [];
  broken = 0;
  ended = 0;
  private next = 0;
  private walkers: Walker[] = [];
  private seen: SeenState | undefined;
  /** Rows of the version that is answered. */
  private answered: unknown[] = [];
  private followedFrom = new Set<unknown>();

  constructor(readonly lake: DeltaLake) {}

  async run(step: Step): Promise<void> {
    const { lake } = this;
    switch (step.kind) {
      case 'append': {
        const rows = step.rows.map((at) => ({ ts: hour + at * 3_600_000 + this.next, n: this.next++ }));
        const action = lake.add(rows);
        lake.commit(action);
        this.live.push(modelOf(action, rows));
        return;
      }
      case 'remove': {
        const [file] = this.live.splice(step.file % Math.max(1, this.live.length), 1);
        if (file !== undefined) lake.commit(lake.remove(file.action));
        return;
      }
      case 'delete':
        return this.delete(step);
      case 'rewrite':
        return this.rewrite(step);
      case 'restart':
        await lake.close();
        this.seen = undefined;
        return this.look();
      case 'look':
        return this.look();
      case 'walk':
        if (this.walkers.length < 4)
          for (const isForward of [true, false]) this.walkers.push(new Walker(isForward, this.answered));
        for (const walker of this.walkers) await this.walk(walker);
        this.walkers = this.walkers.filter(({ state }) => state === 'walking');
    }
  }

  private rewrite({ files, pieces }: Step & { kind: 'rewrite' }): void {
    const { lake } = this;
    const old = [...new Set(files.map((file) => this.live[file % Math.max(1, this.live.length)]))].filter(
      (file) => file !== undefined,
    );
    if (old.length === 0) return;
    const rows = old.flatMap((file) => [...file.rows.values()]);
    const added = Array.from({ length: pieces }, (_, piece) => {
      const own = rows.filter((_, i) => i % pieces === piece);
      return modelOf(lake.add(own, { dataChange: false }), own);
    }).filter((file) => file.rows.size > 0);
    lake.commit(...old.map(({ action }) => lake.remove(action, false)), ...added.map(({ action }) => action));
    this.live = [...this.live.filter((file) => !old.includes(file)), ...added];
  }

  private delete({ file: at, rows }: Step & { kind: 'delete' }): void {
    const file = this.live[at % Math.max(1, this.live.length)];
    if (file === undefined) return;
    const left = new Map(file.rows);
    const places = [...left.keys()];
    // A file whose rows are all deleted is removed by those who write tables.
    for (const row of rows) if (left.size > 1) left.delete(places[row % places.length]!);
    const deleted = [...file.deleted, ...places.filter((place) => !left.has(place))].toSorted(
      (a, b) => a - b,
    );
    if (deleted.length === file.deleted.length) return;
    const actions = this.lake.deleting(file.action, deleted);
    this.lake.commit(...actions);
    this.live[this.live.indexOf(file)] = {
      action: actions.at(-1) as ModelFile['action'],
      rows: left,
      deleted,
    };
  }

  private async look(): Promise<void> {
    const { lake } = this;
    // Rewrites that follow appends are answered one look later.
    const wanted = lake.newestVersion;
    do {
      expect(await lake.look()).toEqual([]);
      await this.follow();
    } while (lake.status.version !== wanted);
    this.answered = numbersOf(await lake.rows());
    expect(this.answered.toSorted(byNumber)).toEqual(
      this.live.flatMap(({ rows }) => numbersOf([...rows.values()])).toSorted(byNumber),
    );
    const answered = new Set(this.answered);
    for (const walker of this.walkers)
      for (const row of walker.standing) if (!answered.has(row)) walker.standing.delete(row);
  }

  /** What a client that follows is told. */
  private async follow(): Promise<void> {
    const { store } = this.lake;
    if (this.seen === undefined) {
      this.seen = await store.seen();
      this.followedFrom = new Set(numbersOf(await this.lake.rows()));
      this.told = [];
      return;
    }
    const { scan, state } = await store.scanAdded(everything, this.seen);
    this.seen = state;
    for await (const line of scan.lines)
      for (const text of Buffer.from(line as Uint8Array)
        .toString()
        .split('\n'))
        if (text !== '') this.told.push((JSON.parse(text) as { n: number }).n);
    expect(new Set(this.told).size).toBe(this.told.length);
    for (const row of this.told) expect(this.followedFrom.has(row)).toBe(false);
    for (const row of numbersOf(await this.lake.rows()))
      expect(this.followedFrom.has(row) || this.told.includes(row)).toBe(true);
  }

  private async walk(walker: Walker): Promise<void> {
    await walker.step(this.lake);
    expect(new Set(walker.seen).size).toBe(walker.seen.length);
    if (walker.state === 'broken') this.broken++;
    if (walker.state !== 'ended') return;
    this.ended++;
    const seen = new Set<unknown>(walker.seen);
    for (const row of walker.standing) expect(seen.has(row)).toBe(true);
  }
}

function numbersOf(rows: readonly Row[]): unknown[] {
  return rows.map(({ n }) => n);
}

function byNumber(a: unknown, b: unknown): number {
  return Number(a) - Number(b);
}

it.each([
  ['Delta', DeltaLake],
  ['Iceberg', IcebergLake],
])(
  'each version of a table (%s) is answered, walks see each row once or break, and who follows is told each row once',
  async (_, Lake) => {
    let broken = 0;
    let ended = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const history = new History(new Lake(columns));
        await history.run({ kind: 'append', rows: [0, 1, 2, 0] });
        await history.run({ kind: 'look' });
        for (const each of steps) await history.run(each);
        await history.run({ kind: 'look' });
        broken += history.broken;
        ended += history.ended;
        await history.lake.close();
      }),
      { seed, numRuns: caseCount(12, 300) },
    );
    if (isWhole) expect([ended > 0, broken > 0]).toEqual([true, true]);
  },
  120_000,
);
