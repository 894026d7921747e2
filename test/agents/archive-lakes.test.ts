import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { reportArchive, type ArchiveReport } from '../../agents/archive/archive-report.js';
import { fieldsYaml } from '../../agents/archive/inferred-fields.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { archiveProblems, describeArchiveReport } from '../../server/cli/check.js';
import { openAgents } from '../../server/cli/opened-archive.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { describeUnless } from '../needs.js';

const inferred = "archive: { path: 'lake/**/*.parquet' }\n";
const timeMs = Date.UTC(2026, 0, 1);
const everything = { limit: 1000, after: undefined, before: undefined, predicates: [] };

type Element = Omit<SchemaElement, 'name'>;
type Row = Readonly<Record<string, unknown>>;

/** How a column is stored, by a short name. */
const stored = {
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  int: { type: 'INT64' },
  int32: { type: 'INT32' },
  float: { type: 'DOUBLE' },
  bool: { type: 'BOOLEAN' },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  nothing: { type: 'INT32', logical_type: { type: 'NULL' } },
  money: { type: 'INT64', converted_type: 'DECIMAL', precision: 10, scale: 2 },
  bigMoney: { type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale: 2 },
} as const satisfies Record<string, Element>;

type Stored = keyof typeof stored;

/** A folder with an agent `web`, whose archive is queried in place, and an archive of ours that stays open. */
class Lake {
  readonly folder = mkdtempSync(join(tmpdir(), 'logstrata-lake-'));
  private readonly directory = new MemoryDirectory();
  private text = inferred;
  private files = 0;

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Writes a file with a column `ts` and others. Each file is newer than the one before. */
  write(columns: Readonly<Record<string, readonly [Stored, ...unknown[]]>>, name = ''): string {
    const path = join(this.folder, 'lake', name, `${++this.files}.parquet`);
    const [first] = Object.values(columns);
    const ts = ['time', ...first!.slice(1).map((_, i) => new Date(timeMs + 1000 * this.files + i))] as const;
    const all = Object.entries('ts' in columns ? columns : { ts, ...columns });
    const schema = [
      { name: 'root', num_children: all.length },
      ...all.map(([column, [kind]]) => ({
        ...stored[kind],
        name: column,
        repetition_type: 'OPTIONAL' as const,
      })),
    ];
    const columnData = all.map(([name, [kind, ...data]]) => ({
      name,
      data: data.map((value) => (kind === 'int' && typeof value === 'number' ? BigInt(value) : value)),
    }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, new Uint8Array(parquetWriteBuffer({ schema, columnData })));
    utimesSync(path, 1_700_000_000 + this.files, 1_700_000_000 + this.files);
    return path;
  }

  /** Changes the agent's file. */
  define(text: string): void {
    this.text = text;
  }

  private definition() {
    return parseAgentFile(this.text, join(this.folder, 'web.yaml'));
  }

  async report(): Promise<ArchiveReport> {
    const definition = this.definition();
    return reportArchive(definition, definition.archive!, undefined, undefined, () => {});
  }

  /** What `logstrata check` prints about the files, and the problems that it names. */
  async check(): Promise<{ readonly lines: readonly string[]; readonly problems: readonly string[] }> {
    const report = await this.report();
    const definition = this.definition();
    return {
      lines: describeArchiveReport(definition, report),
      problems: archiveProblems(definition, report),
    };
  }

  /** Opens the archive as a server does, attaches the files, and returns the records without times and cursors. */
  async serve(): Promise<{
    readonly rows: Row[];
    readonly problems: readonly string[];
    readonly notes: readonly string[];
  }> {
    const archive = await openOn(this.directory, () => timeMs + 1_000_000);
    const shop = parseAgentFile(
      "fields: [{ name: text }]\nfile: { path: '/l', format: json }\n",
      '/shop.yaml',
    );
    const served = await openAgents(archive, [this.definition(), shop]);
    expect([...served.leftOut]).toEqual([]);
    expect([...served.keys()]).toEqual(['web', 'shop']);
    const { definition } = served.get('web')!;
    let { store } = served.get('web')!;
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const attaching = new ArchiveAttaching({
      definition,
      archive: definition.archive!,
      store,
      dataFolder: undefined,
      log,
      now: () => timeMs + 1_000_000,
      redefine: async (grown) => {
        store = await archive.redefine('web', grown.schema, undefined);
      },
    });
    const { problems } = await attaching.round(new AbortController().signal);
    const before = await answer(store, everything);
    await store.indexAttached({});
    expect(await answer(store, everything)).toBe(before);
    const rows = before
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { _cursor, ts, ...row } = JSON.parse(line) as Record<string, unknown>;
        expect([typeof _cursor, typeof ts]).toEqual(['string', 'number']);
        return row;
      });
    await archive.close();
    return { rows, problems: problems.map(({ message }) => message), notes: definition.notes };
  }
}

describe('files whose columns differ', () => {
  it.each([
    [
      ['int', 1],
      ['text', 'x1'],
      ['1', 'x1'],
    ],
    [
      ['bool', true],
      ['int', 7],
      ['true', '7'],
    ],
    [
      ['money', 1.5],
      ['bigMoney', 2.5],
      ['1.50', '2.50'],
    ],
    [
      ['money', 1.5],
      ['text', 'ann'],
      ['1.50', 'ann'],
    ],
    [
      ['int', 2n ** 53n + 1n],
      ['float', 0.5],
      ['9007199254740993', '0.5'],
    ],
    [
      ['int', 3n],
      ['float', 0.5],
      [3, 0.5],
    ],
    [
      ['nothing', null],
      ['text', 'x'],
      [null, 'x'],
    ],
    [
      ['nothing', null],
      ['int', 5],
      [null, 5],
    ],
    [
      ['nothing', null],
      ['nothing', null],
      [null, null],
    ],
    [
      ['float', null],
      ['text', 'x'],
      [null, 'x'],
    ],
    [
      ['text', null],
      ['bool', false],
      [null, false],
    ],
    [
      ['text', null],
      ['time', new Date(timeMs)],
      [null, timeMs],
    ],
  ] as const)('are served, as are all agents: %#', async (a, b, expected) => {
    for (const [first, second] of [
      [a, b],
      [b, a],
    ] as const) {
      const lake = new Lake();
      lake.write({ v: first });
      lake.write({ v: second });
      const wanted = first === a ? expected : expected.toReversed();
      expect(await lake.serve()).toEqual({ rows: wanted.map((v) => ({ v })), problems: [], notes: [] });
      // The list that `check` prints loses nothing when it is pasted.
      const { lines, problems } = await lake.check();
      expect(problems).toEqual([]);
      lake.define(inferred + lines.slice(lines.indexOf('fields:')).join('\n'));
      expect(await lake.check()).toMatchObject({ problems: [] });
      expect((await lake.serve()).rows).toEqual(wanted.map((v) => ({ v })));
    }
  });

  it('are served if names of columns make the same name, also with a list of fields', async () => {
    const lake = new Lake();
    lake.write({ 'user.id': ['int', 1], user_id: ['text', 'u'], 名前: ['int', 2], User_Id: ['int', 3] });
    const rows = [{ user_id_2: 1, user_id: 'u', column: 2, user_id_3: 3 }];
    expect(await lake.serve()).toMatchObject({ rows, problems: [] });
    lake.define(inferred + fieldsYaml((await lake.report()).columns).join('\n'));
    expect(await lake.serve()).toMatchObject({ rows, problems: [] });
  });

  it('are served if columns have the same name', async () => {
    const lake = new Lake();
    const path = lake.write({ v: ['int', 1] });
    const columnData = ['v', 'v', 'v_2', 'v'].map((name, i) => ({ name, data: [i], type: 'INT32' as const }));
    const ts = { name: 'ts', data: [new Date(timeMs)], type: 'TIMESTAMP' as const };
    writeFileSync(path, new Uint8Array(parquetWriteBuffer({ columnData: [ts, ...columnData] })));
    const rows = [{ v: 0, v_3: 1, v_2: 2, v_4: 3 }];
    expect(await lake.serve()).toEqual({ rows, problems: [], notes: [] });
    lake.define(inferred + fieldsYaml((await lake.report()).columns).join('\n'));
    expect(await lake.serve()).toMatchObject({ rows, problems: [] });
  });
});

describe('files that come later', () => {
  it('keep the types of the fields; one that does not fit without loss is left out until the field is listed', async () => {
    const lake = new Lake();
    lake.write({ n: ['int', 1], f: ['float', 0.5], s: ['text', 'a'] });
    expect((await lake.serve()).rows).toEqual([{ n: 1, f: 0.5, s: 'a' }]);
    lake.write({ n: ['nothing', null], f: ['int', 2n], s: ['bool', true], more: ['int', 4] });
    const others = [
      { n: 1, f: 0.5, s: 'a', more: null },
      { n: null, f: 2, s: 'true', more: 4 },
    ];
    expect(await lake.serve()).toMatchObject({ rows: others, problems: [] });
    const unfit = [
      [
        lake.write({ n: ['text', 'ann'] }),
        'the column "n" is string (BYTE_ARRAY STRING) here, which the field "n" of type int ',
      ],
      [
        lake.write({ n: ['float', 1.5] }),
        'the column "n" is float (DOUBLE) here, which the field "n" of type int ',
      ],
      [
        lake.write({ f: ['int', 2n ** 60n] }),
        'the column "f" is int (INT64) here, which the field "f" of type float ',
      ],
    ] as const;
    const { rows, problems } = await lake.serve();
    expect(rows).toEqual(others);
    expect(problems.toSorted()).toEqual(
      unfit.map(
        ([path, message]) => expect.stringContaining(`${path}: ${message}can't hold without loss`) as string,
      ),
    );
    for (const message of problems)
      expect(message).toContain('list the fields, as "logstrata check" prints them');
    const { lines } = await lake.check();
    lake.define(inferred + lines.slice(lines.indexOf('fields:')).join('\n'));
    const listed = await lake.serve();
    expect(listed.problems).toEqual([]);
    expect(listed.rows.map(({ n, f, s, more }) => [n, f, s, more])).toEqual([
      ['1', '0.5', 'a', null],
      [null, '2', 'true', 4],
      ['ann', null, null, null],
      ['1.5', null, null, null],
      [null, '1152921504606846976', null, null],
    ]);
  });

  it('may lie in folders whose values are no numbers any more', async () => {
    const lake = new Lake();
    lake.write({ v: ['int', 1] }, 'month=10');
    expect((await lake.serve()).rows).toEqual([{ v: 1, month: 10 }]);
    lake.write({ v: ['int', 2] }, 'month=01');
    expect(await lake.serve()).toMatchObject({
      rows: [
        { v: 1, month: '10' },
        { v: 2, month: '01' },
      ],
      problems: [],
    });
  });
});

it('a folder value with a leading zero is text, and keeps the zero', async () => {
  const lake = new Lake();
  lake.write({ v: ['int', 1] }, 'acct=012345678901/code=7');
  lake.write({ v: ['int', 2] }, 'acct=112345678901/code=8');
  expect((await lake.serve()).rows).toEqual([
    { v: 1, acct: '012345678901', code: 7 },
    { v: 2, acct: '112345678901', code: 8 },
  ]);
});

describe('logstrata check', () => {
  it.each([
    ['s', 1n],
    ['ms', 1000n],
    ['us', 1_000_000n],
    ['ns', 1_000_000_000n],
  ] as const)(
    'proposes the unit of times in %s from the bounds, and warns of another one',
    async (unit, perS) => {
      const lake = new Lake();
      const at = BigInt(timeMs / 1000) * perS;
      lake.write({
        ts: ['int', at, at + perS],
        bytes: ['int', 0n, 5_000_000_000n],
        none: ['float', null, null],
      });
      lake.write({ ts: ['int', at + 60n * perS], bytes: ['int', 77n], none: ['float', 1.5] });
      const { lines } = await lake.check();
      expect(lines.filter((line) => line.includes(', unit: '))).toEqual([
        `  - { name: ts, type: time, source: ts, unit: ${unit} }`,
      ]);
      const listed = (given: string): string => `${inferred}fields: [{ name: ts, type: time${given} }]\n`;
      lake.define(listed(`, unit: ${unit}`));
      expect((await lake.check()).problems).toEqual([]);
      const other = unit === 's' ? 'ms' : 's';
      lake.define(listed(`, unit: ${other}`));
      expect((await lake.check()).problems).toEqual([
        expect.stringContaining(`for times in ${other}, but they are times of our days only in ${unit}`),
      ]);
      lake.define(listed(''));
      expect((await lake.check()).problems).toEqual([
        expect.stringContaining(`give the unit of its numbers (unit: ${unit})`),
      ]);
    },
  );

  it('proposes no unit where files differ, and none without bounds of our days', async () => {
    const lake = new Lake();
    lake.write({ ts: ['int', BigInt(timeMs)], n: ['int', 1n] });
    lake.write({ ts: ['int', BigInt(timeMs / 1000)], n: ['int', 2n] });
    expect((await lake.check()).lines.filter((line) => line.includes(', unit: '))).toEqual([]);
  });

  it('names files that lack the time, and times of which the last is ten years ahead', async () => {
    const lake = new Lake();
    lake.write({ v: ['int', 1], until: ['time', new Date(Date.UTC(9999, 11, 31))] });
    const far = lake.write({ ts: ['time', new Date(timeMs), new Date(Date.UTC(2126, 5, 1))] });
    const path = join(lake.folder, 'lake/3.parquet');
    const columnData = [{ name: 'v', data: [5], type: 'INT32' as const }];
    writeFileSync(path, new Uint8Array(parquetWriteBuffer({ columnData })));
    const { problems } = await lake.check();
    expect((await lake.serve()).problems).toEqual([expect.stringContaining(`${path} has no column "ts"`)]);
    expect(problems.toSorted()).toEqual([
      `${far}: the column "ts", which places records, has times up to the year 2126`,
      `${path} has no times in the column "ts", which places records: it is left out`,
    ]);
  });
});

const lakes = resolve('../shared/cases/lakes');

const missingLakes = existsSync(lakes) ? null : 'the lakes are not beside the checkout';

describeUnless(missingLakes, 'lakes that broke', () => {
  const problemsOf = async (name: string): Promise<readonly string[]> => {
    const text = `archive: { path: '${lakes}/${name}/**/*.parquet' }`;
    const definition = parseAgentFile(text, '/web.yaml');
    const report = await reportArchive(definition, definition.archive!, undefined, undefined, () => {});
    const types = report.columns.map(({ field: { name: field, type } }) => `${field} ${type}`);
    return [...types, ...archiveProblems(definition, report)];
  };

  it.each([
    ['drift-str', ['ts time', 'n string']],
    ['drift-dec', ['ts time', 'u string']],
    ['leading-zeros', ['ts time', 'n int', 'acct string']],
    ['names-nonascii', ['ts time', 'column int', 'column_2 int']],
  ])('%s', async (name, expected) => {
    expect(await problemsOf(name)).toEqual(expected);
  });

  it('drift-tsmissing', async () => {
    expect((await problemsOf('drift-tsmissing')).at(-1)).toContain(
      'has no times in the column "ts", which places records',
    );
  });
});
