import { cpSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DeltaLake, hour } from './delta-table.js';

const columns = { ts: { type: 'timestamp' }, n: { type: 'long' } } as const;

/** Rows of the hour with the numbers [from, to). */
function numbered(from: number, to: number, hours = 0) {
  return Array.from({ length: to - from }, (_, i) => ({
    ts: hour + hours * 3_600_000 + from + i,
    n: from + i,
  }));
}

function numbers(rows: readonly Readonly<Record<string, unknown>>[]): unknown[] {
  return rows.map(({ n }) => n);
}

describe('a Delta table', () => {
  it('is answered by the files of its newest version', async () => {
    const lake = new DeltaLake(columns);
    const first = lake.add(numbered(0, 5));
    lake.commit(first, lake.add(numbered(5, 10)));
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows()).toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(lake.status.version).toBe('version 1');
    const cursors = await lake.rows(true);
    lake.commit(lake.add(numbered(10, 12)));
    expect(await lake.look()).toEqual([]);
    expect((await lake.rows(true)).slice(0, 10)).toEqual(cursors);
    lake.commit(lake.remove(first));
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([5, 6, 7, 8, 9, 10, 11]);
    expect(lake.status.version).toBe('version 3');
    await lake.close();
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([5, 6, 7, 8, 9, 10, 11]);
  });

  it('gives its values by the types of the table, also of the partition and in files of an older schema', async () => {
    const lake = new DeltaLake({
      ts: { type: 'timestamp' },
      day: { type: 'date', partition: true },
      code: { type: 'string', partition: true },
      count: { type: 'integer' },
      price: { type: 'decimal(10,2)' },
    });
    const [at] = numbered(0, 1);
    lake.commit(
      lake.add([{ ...at, count: 7, price: 1.5 }], {
        values: { day: '2026-01-01', code: '007' },
        name: 'day=x/code=y/',
      }),
    );
    lake.columns = {
      ...lake.columns,
      count: { type: 'long', stored: 'long' },
      price: { type: 'decimal(18,2)' },
      added: { type: 'boolean' },
    };
    const [, next] = numbered(0, 2);
    lake.commit(
      lake.protocol(['typeWidening']),
      lake.metadata(),
      lake.add([{ ...next, count: 2n ** 40n, price: 2.25, added: true }], {
        values: { day: null, code: '' },
      }),
    );
    expect(await lake.look()).toEqual([]);
    const day = Date.UTC(2026, 0, 1);
    expect(await lake.rows()).toEqual([
      { ts: hour, day, code: '007', count: 7, price: '1.50', added: null },
      { ts: hour + 1, day: null, code: null, count: 2 ** 40, price: '2.25', added: true },
    ]);
  });

  it.each(['name', 'id'])('finds columns by their names in files and by numbers (%s)', async (mode) => {
    const named = (names: readonly string[]) =>
      Object.fromEntries([
        ['ts', { type: 'timestamp', physical: 'col-0', id: 1 }],
        ...names.map((name, i) => [name, { type: 'string', physical: `col-${i + 1}`, id: i + 2 }] as const),
      ]);
    const lake = new DeltaLake(named(['a', 'b']), { mode });
    lake.commit(lake.add([{ ts: hour, a: 'a1', b: 'b1' }]));
    expect(await lake.look()).toEqual([]);
    expect(await lake.rows()).toEqual([{ ts: hour, a: 'a1', b: 'b1' }]);
    const before = await lake.rows(true);
    await lake.store.indexAttached({});
    // The columns exchange their names.
    lake.columns = named(['b', 'a']);
    lake.commit(lake.metadata(), lake.add([{ ts: hour + 1, b: 'a2', a: 'b2' }]));
    expect(await lake.look()).toEqual([]);
    expect(await lake.rows()).toEqual([
      { ts: hour, a: 'b1', b: 'a1' },
      { ts: hour + 1, a: 'b2', b: 'a2' },
    ]);
    expect((await lake.rows(true))[0]!['_cursor']).toBe(before[0]!['_cursor']);
    await lake.store.indexAttached({});
    const where = {
      limit: 9,
      predicates: [{ field: 1, kind: 'string', op: 'exact', value: 'b1', negated: false }],
    } as never;
    expect(await lake.page(where)).toHaveLength(1);
    // One of them is removed, and another of its name is added.
    lake.columns = { ...named(['b']), a: { type: 'string', physical: 'col-9', id: 9 } };
    lake.commit(lake.metadata());
    expect(await lake.look()).toEqual([]);
    expect((await lake.rows()).map(({ a, b }) => [a, b])).toEqual([
      [null, 'a1'],
      [null, 'a2'],
    ]);
  });

  it.each(['one part', 'two parts', 'the newer kind'])('is read from a checkpoint in %s', async (kind) => {
    const lake = new DeltaLake({ ...columns, p: { type: 'string', partition: true } });
    const adds = [0, 1, 2].map((i) => lake.add(numbered(i, i + 1), { values: { p: `v${i}` } }));
    lake.commit(...adds);
    lake.commit(lake.remove(adds[1]!));
    await lake.checkpoint(kind, [adds[0]!, adds[2]!]);
    lake.commit(lake.add(numbered(3, 4), { values: { p: 'v3' } }));
    for (const version of [0, 1, 2]) rmSync(lake.log(version));
    expect(await lake.look()).toEqual([]);
    expect((await lake.rows()).map(({ n, p }) => [n, p])).toEqual([
      [0, 'v0'],
      [2, 'v2'],
      [3, 'v3'],
    ]);
    rmSync(lake.log(3));
    lake.commit(lake.add(numbered(4, 5), { values: { p: 'v3' } }));
    await lake.close();
    await expect(lake.look()).rejects.toThrow(
      '00000000000000000003.json, without which version 4 is not known',
    );
  });

  it('is read from its commits where a checkpoint is damaged', async () => {
    const lake = new DeltaLake(columns);
    lake.commit(lake.add(numbered(0, 2)));
    writeFileSync(lake.log(1, 'checkpoint.parquet'), 'PAR1 and nothing else PAR1');
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([0, 1]);
  });

  it('is answered as of a version that is named', async () => {
    const lake = new DeltaLake(columns);
    const first = lake.add(numbered(0, 2));
    lake.commit(first);
    lake.commit(lake.remove(first), lake.add(numbered(2, 3)));
    expect(await lake.look(', version: 1')).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([0, 1]);
    lake.commit(lake.add(numbered(3, 4)));
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([0, 1]);
    expect(lake.status.version).toBe('version 1');
    await lake.close();
    const other = new DeltaLake(columns);
    await expect(other.look(', version: 1')).rejects.toThrow('has no version 1: its newest is 0');
  });

  it('keeps its cursors when its folder is moved', async () => {
    const lake = new DeltaLake(columns, { agent: "archive: { path: '*able', format: delta }\n" });
    lake.commit(lake.add(numbered(0, 2)), lake.add(numbered(0, 2)));
    renameSync(lake.root, join(lake.folder, '*able'));
    expect(await lake.look()).toEqual([]);
    const rows = await lake.rows(true);
    await lake.close();
    cpSync(join(lake.folder, '*able'), join(lake.folder, 'moved', '*able'), { recursive: true });
    rmSync(join(lake.folder, '*able'), { recursive: true });
    renameSync(join(lake.folder, 'moved', '*able'), join(lake.folder, '*able'));
    expect(await lake.look()).toEqual([]);
    expect(await lake.rows(true)).toEqual(rows);
  });

  it('waits with a version that removes files until all that it adds can be read', async () => {
    const lake = new DeltaLake(columns);
    const first = lake.add(numbered(0, 2));
    lake.commit(first);
    expect(await lake.look()).toEqual([]);
    const second = lake.add(numbered(0, 2), { dataChange: false });
    const path = join(lake.root, decodeURI(second.add.path));
    renameSync(path, `${path}.away`);
    lake.commit(lake.remove(first, false), second);
    const problems = await lake.look();
    expect(problems[0]).toContain('x.parquet is not there, but version 2 of the table has it');
    expect(problems[1]).toContain('version 2 of the table table is not answered yet');
    expect(numbers(await lake.rows())).toEqual([0, 1]);
    renameSync(`${path}.away`, path);
    truncateSync(path, 20);
    lake.now += 10_000_000;
    expect((await lake.look()).some((problem) => problem.includes('is not answered yet'))).toBe(true);
    expect(numbers(await lake.rows())).toEqual([0, 1]);
  });

  it.each([
    [
      'an unknown feature',
      (lake: DeltaLake) => [lake.protocol(['variantType'])],
      'needs readers that know variantType, which is not supported',
    ],
    [
      'a newer protocol',
      () => [{ protocol: { minReaderVersion: 4, minWriterVersion: 7 } }],
      'needs readers of version 4',
    ],
    [
      'a file of another folder',
      () => [{ add: { path: 'file:///etc/x.parquet', dataChange: true } }],
      'has the file file:///etc/x.parquet, which is not in its folder',
    ],
    [
      'a way out of the folder',
      () => [{ add: { path: '../../x.parquet', dataChange: true } }],
      'which is not in its folder',
    ],
    ['no path', () => [{ add: { dataChange: true } }], 'the path of a file is no text: missing'],
    [
      'another format',
      (lake: DeltaLake) => [
        { metaData: { ...(lake.metadata() as { metaData: object }).metaData, format: { provider: 'orc' } } },
      ],
      'of orc files',
    ],
  ])('is refused with %s, and other agents are served', async (_, actions, why) => {
    const lake = new DeltaLake(columns);
    lake.commit(...actions(lake));
    await expect(lake.look()).rejects.toThrow(why);
  });

  it('names the file of the log that is no JSON', async () => {
    const lake = new DeltaLake(columns);
    lake.commit(lake.add(numbered(0, 2)));
    expect(await lake.look()).toEqual([]);
    writeFileSync(lake.log(2), '{"add":');
    await expect(lake.look()).rejects.toThrow(`${lake.log(2)} is no part of a Delta log`);
    expect(numbers(await lake.rows())).toEqual([0, 1]);
    rmSync(lake.log(2));
    lake.version = 1;
    lake.commit(lake.add(numbered(2, 3)));
    expect(await lake.look()).toEqual([]);
    expect(numbers(await lake.rows())).toEqual([0, 1, 2]);
  });

  it('answers deleted rows neither in pages nor in counts nor in exports, in order of time or not', async () => {
    const lake = new DeltaLake({ ...columns, m: { type: 'string' } });
    const rows = [3, 1, 2, 0].map((n) => ({ ts: hour + n * 3_600_000, n, m: `m${n}` }));
    const action = lake.add(rows);
    const other = lake.add([
      { ts: hour, n: 9, m: 'm9' },
      { ts: hour + 1, n: 10, m: 'm1' },
    ]);
    lake.commit(action, other);
    lake.commit(...lake.deleting(action, [1]), ...lake.deleting(other, [0]));
    const check = async (): Promise<void> => {
      expect(numbers(await lake.rows())).toEqual([0, 10, 2, 3]);
      const where = {
        limit: 9,
        predicates: [{ field: 2, kind: 'string', op: 'exact', value: 'm1', negated: false }],
      } as never;
      expect(numbers(await lake.page(where))).toEqual([10]);
      expect((await lake.store.count({ predicates: [] } as never)).count).toBe(4);
      const found: unknown[] = [];
      for await (const { batch } of lake.store.selectRows({ limit: 9, predicates: [] } as never))
        found.push(batch.length);
      expect(found.reduce((sum: number, length) => sum + Number(length), 0)).toBe(4);
      expect((await lake.store.stats()).records).toBe(4);
    };
    expect(await lake.look()).toEqual([]);
    await check();
    await lake.store.indexAttached({});
    await check();
    lake.commit(...lake.deleting(action, [1, 2]));
    expect(await lake.look()).toEqual([]);
    expect((await lake.store.stats()).attached.filesIndexed).toBe(2);
    expect(numbers(await lake.rows())).toEqual([0, 10, 3]);
  });

  it('goes on with the version before one whose deleted rows cannot be read', async () => {
    const lake = new DeltaLake(columns);
    const action = lake.add(numbered(0, 3));
    lake.commit(action);
    expect(await lake.look()).toEqual([]);
    const steps = lake.deleting(action, [7]);
    lake.commit(...steps, lake.add(numbered(3, 4)));
    const problems = await lake.look();
    expect(problems[0]).toContain('has 3 rows, but its table has deleted row 8 of it');
    expect(problems[1]).toContain('is not answered yet');
    expect(numbers(await lake.rows())).toEqual([0, 1, 2]);
  });
});
