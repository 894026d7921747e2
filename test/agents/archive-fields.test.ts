import * as arrow from 'apache-arrow';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { reportArchive } from '../../agents/archive/archive-report.js';
import {
  fieldsYaml,
  FieldInference,
  fieldNameOf,
  type InferredFields,
} from '../../agents/archive/inferred-fields.js';
import type { ColumnFacts } from '../../agents/archive/column-facts.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';

type Columns = Readonly<Record<string, `${ColumnFacts['type']}${'' | ' complete' | ' null' | ' wide'}`>>;

function factsOf(columns: Columns): ColumnFacts[] {
  return Object.entries(columns).map(([name, text]) => {
    const [type, more] = text.split(' ') as [ColumnFacts['type'], string | undefined];
    const common = { name, type, stored: type.toUpperCase() };
    if (more === 'complete') return { ...common, way: more, reason: 'nested' };
    const facts =
      more === 'null' ? { isNull: true as const } : more === 'wide' ? { isWide: true as const } : {};
    return { ...common, way: 'fast', reason: '', ...facts };
  });
}

/** The fields of files `/a/0`, `/a/1`, … with these columns and keys. */
function infer(
  files: readonly { columns?: Columns; keys?: Readonly<Record<string, string | null>> }[],
  time?: string,
  known?: Pick<InferredFields, 'columns'>,
): InferredFields {
  const inference = new FieldInference(known?.columns.map(({ field }) => field));
  files.forEach(({ columns = {}, keys = {} }, i) => {
    const path = `/a/${i}`;
    const file = {
      path,
      format: 'parquet',
      bytes: 1,
      mtimeMs: 0,
      keys: new Map(Object.entries(keys)),
    } as const;
    inference.add(file, { footerHash: path, rows: 1, columns: factsOf(columns) });
  });
  return inference.finish(time);
}

const short = ({ columns }: Pick<InferredFields, 'columns'>): string[] =>
  columns.map(({ field: { name, type, column } }) => `${name} ${type}${column === name ? '' : ` ${column}`}`);

it.each([
  ['@timestamp', 'timestamp'],
  ['__index_level_0__', 'index_level_0'],
  ['UserID', 'userid'],
  ['request.uri', 'request_uri'],
  ['a - b', 'a_b'],
  ['2xx', 'n_2xx'],
  ['größe', 'gr_e'],
  ['日付', ''],
  ['_', ''],
])('the column %s makes the field "%s"', (column, name) => {
  expect(fieldNameOf(column)).toBe(name);
});

describe('the fields of files', () => {
  it("are their columns, without the archive's own cursors, the first time column first, and the keys of folders", () => {
    const columns = { _cursor: 'int', Level: 'string', '@timestamp': 'time', seen: 'time' } as const;
    const { problems, ...fields } = infer([{ columns, keys: { dt: '2026-01-01', hour: '7' } }]);
    expect(short(fields)).toEqual([
      'timestamp time @timestamp',
      'level string Level',
      'seen time',
      'dt string',
      'hour int',
    ]);
    expect(problems).toEqual([]);
    expect(short(infer([{ columns }], 'seen'))[0]).toBe('seen time');
    expect(short(infer([{ columns }], '@timestamp'))[0]).toBe('timestamp time @timestamp');
  });

  it('are the columns of all files; a column of integers and floats is a float', () => {
    const files = [
      { columns: { a: 'int', b: 'float' } },
      { columns: { c: 'bool', b: 'int', a: 'float' } },
    ] as const;
    expect(short(infer(files))).toEqual(['a float', 'b float', 'c bool']);
    expect(infer(files).problems).toEqual([]);
  });

  it('state for each column how many files store it in which way', () => {
    const plain = { columns: { a: 'string' } } as const;
    const { columns } = infer([plain, { columns: { a: 'string complete' } }, plain, plain]);
    expect(columns[0]!.variants.map(({ way, files, path }) => [way, files, path])).toEqual([
      ['fast', 3, '/a/0'],
      ['complete', 1, '/a/1'],
    ]);
  });

  it('are strings if a key has any value that is not a number', () => {
    const keys = (...values: (string | null)[]): string[] =>
      short(infer(values.map((k) => ({ keys: { k } }))));
    expect(keys('1', '-20')).toEqual(['k int']);
    expect(keys('1', null)).toEqual(['k int']);
    expect(keys('', '1')).toEqual(['k int']);
    expect(keys('x', '')).toEqual(['k string']);
    expect(keys('1', 'x')).toEqual(['k string']);
    expect(keys(null)).toEqual(['k string']);
    expect(keys('')).toEqual(['k string']);
    expect(keys('9'.repeat(19))).toEqual(['k string']);
  });

  it.each(['01001', '012345678901', '00', '-0', '-01', '+1', ' 1', '1.10'])(
    'are strings if a key has a value that a number would not give back: %j',
    (value) => {
      expect(short(infer([{ keys: { k: '1' } }, { keys: { k: value } }]))).toEqual(['k string']);
      expect(short(infer([{ keys: { k: value } }, { columns: { k: 'int' } }]))).toEqual(['k string']);
      expect(short(infer([{ columns: { k: 'float' } }, { keys: { k: value } }]))).toEqual(['k string']);
    },
  );

  it('hold what a key and a column of the same name have', () => {});

  it('are the keys of folders if files have a column of the same name', () => {
    const { columns, problems } = infer([{ columns: { dt: 'time', a: 'int' }, keys: { dt: '7' } }]);
    expect(columns.map(({ field }) => field.name)).toEqual(['a', 'dt']);
    expect(columns[1]!.field).toEqual({ name: 'dt', type: 'int', column: 'dt' });
    expect(problems).toEqual([]);
  });

  it("have the type of the column in files without such a folder, or else are text if the folders' values do not fit", () => {
    const both = (column: ColumnFacts['type'], ...values: (string | null)[]): string[] => {
      const files = [
        { columns: { k: column } },
        ...values.map((k) => ({ columns: { k: 'string' }, keys: { k } }) as const),
      ];
      const found = short(infer(files));
      expect(short(infer(files.toReversed()))).toEqual(found);
      return found;
    };
    expect(both('int', '1', null, '')).toEqual(['k int']);
    expect(both('float', '1.5')).toEqual(['k float']);
    expect(both('time', '2026-01-01', null)).toEqual(['k time']);
    expect(both('bool', 'true')).toEqual(['k bool']);
    expect(both('int', 'x')).toEqual(['k string']);
    expect(both('time', '2026-13-45')).toEqual(['k string']);
    expect(both('string', '1')).toEqual(['k string']);
  });

  it('become text when a folder gets a value that is no int, since nothing is lost; other types stay', () => {
    const first = infer([{ keys: { k: '10' } }]);
    expect(short(infer([{ keys: { k: null } }], undefined, first))).toEqual(['k int']);
    expect(infer([{ keys: { k: '01' } }], undefined, first)).toMatchObject({ problems: [] });
    expect(short(infer([{ keys: { k: '01' } }], undefined, first))).toEqual(['k string']);
    const column = infer([{ columns: { k: 'time' } }]);
    expect(infer([{ keys: { k: 'monday' } }], undefined, column).problems).toEqual([
      expect.stringMatching(
        /^\/a\/0: the key "k" of its folder has the value "monday", which the field "k" of type time can't hold without loss/,
      ),
    ]);
  });

  it('keep their types when files are added, which may add fields; a file that does not fit is a problem', () => {
    const first = infer([{ columns: { b: 'time', a: 'float', s: 'string' }, keys: { k: 'x' } }]);
    const fitting = { columns: { a: 'int', c: 'string', s: 'bool' }, keys: { k: '1' } } as const;
    const later = infer([fitting], undefined, first);
    expect(short(later)).toEqual(['b time', 'a float', 's string', 'k string', 'c string']);
    expect(later.problems).toEqual([]);
    expect(infer([{ columns: { a: 'string' } }], undefined, first).problems).toEqual([
      '/a/0: the column "a" is string (STRING) here, which the field "a" of type float can\'t hold without loss, so the file is left out: ' +
        'list the fields, as "logstrata check" prints them, with this one as type: string',
    ]);
    expect(infer([{ columns: { a: 'bool' } }], undefined, first).problems).toHaveLength(1);
    expect(infer([{ columns: { a: 'int wide' } }], undefined, first).problems).toHaveLength(1);
    expect(infer([{ columns: { b: 'string null', a: 'bool null' } }], undefined, first).problems).toEqual([]);
  });

  it.each([
    ['string', 'int', 'string'],
    ['bool', 'int'],
    ['int', 'int wide', 'float'],
    ['time', 'string null', 'float null', 'int'],
    ['float', 'time'],
  ] as const)('are text where files differ: %s, %s', (...types) => {
    expectEach(types, 'string');
  });

  it.each([
    ['int', 'int null', 'int wide'],
    ['int', 'string null', 'float null'],
    ['int null', 'string', 'int null', 'string'],
    ['bool null', 'bool null'],
    ['float', 'int', 'float', 'int null'],
    ['string null', 'time', 'time'],
  ] as const)(
    'have the type of the values, which a column without values does not change: %#',
    (...types) => {
      const values = types.filter((type) => !type.endsWith('null'));
      expectEach(types, values.includes('float' as never) ? 'float' : (values[0] ?? types[0]).split(' ')[0]!);
    },
  );

  function expectEach(types: readonly Columns[string][], type: string): void {
    const files = types.map((each) => ({ columns: { a: each } }));
    for (const order of [files, files.toReversed()]) {
      expect(short(infer(order))).toEqual([`a ${type}`]);
      expect(infer(order)).toMatchObject({ problems: [], leftOut: [] });
    }
  }

  it.each([
    [[{ 'user.id': 'int', user_id: 'int' }], ['user_id_2 int user.id', 'user_id int']],
    [
      [{ 'user.id': 'int' }, { user_id: 'int' }],
      ['user_id_2 int user.id', 'user_id int'],
    ],
    [
      [{ UserID: 'int', userId: 'int', USERID: 'int' }],
      ['userid int UserID', 'userid_2 int userId', 'userid_3 int USERID'],
    ],
    [[{ a_2: 'int', a: 'int', 'a.': 'int' }], ['a_2 int', 'a int', 'a_3 int a.']],
    [[{ 日付: 'int', 値: 'int' }], ['column int 日付', 'column_2 int 値']],
  ] as const)('get a number where several columns would have one name: %#', (files, expected) => {
    const inferred = infer(files.map((columns) => ({ columns })));
    expect(short(inferred)).toEqual(expected);
    expect(inferred.problems).toEqual([]);
    const later = infer([{ columns: { 'user-id': 'int', 'A.': 'int' } }], undefined, inferred);
    expect(short(later).slice(0, expected.length)).toEqual(expected);
  });

  it('keep their configured names and units', () => {
    const given = { name: 'at', type: 'time', column: 'ts', unit: 'us' } as const;
    const known = { columns: [{ field: given, variants: [] }], problems: [] };
    const { columns, problems } = infer([{ columns: { ts: 'int', a: 'bool' } }], undefined, known);
    expect(columns.map(({ field }) => field)).toEqual([given, { name: 'a', type: 'bool', column: 'a' }]);
    expect(problems).toEqual([]);
    expect(infer([{ columns: { ts: 'string' } }], undefined, known).problems).toHaveLength(1);
  });

  it.each([
    [
      [{ columns: { stamp: 'time' } }],
      'stmp',
      /^time names the column "stmp", which no file has \(did you mean "stamp"\?\): the columns of type time are stamp$/,
    ],
    [
      [{ columns: { ts: 'int' } }],
      'ts',
      /^time names the column "ts", which is of type int: .* are none; list the fields, with a unit/,
    ],
  ] as const)('are a problem: %#', (files, time, expected) => {
    const { problems } = infer(files as Parameters<typeof infer>[0], time);
    expect(problems).toEqual([expect.stringMatching(expected)]);
  });

  it('are the first 1000 columns; the others are named', () => {
    const names = Array.from({ length: 1003 }, (_, i) => [`c${i}`, i === 1002 ? 'time' : 'int'] as const);
    const { columns, problems, leftOut } = infer([{ columns: Object.fromEntries(names) }]);
    expect(columns).toHaveLength(1000);
    expect(columns[0]!.field.name).toBe('c1002');
    expect(problems).toEqual([]);
    expect(leftOut).toEqual([
      'an agent has at most 1000 fields, so these columns are left out: "c999", "c1000", "c1001". List the wanted fields',
    ]);
  });

  it('are distinguished up to a limit, whatever columns the files have', () => {
    const files = Array.from({ length: 30 }, (_, file) => ({
      columns: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`c_${file}_${i}`, 'int' as const])),
    }));
    const { columns, leftOut } = infer(files);
    expect(columns).toHaveLength(1000);
    expect(leftOut.join().length).toBeLessThan(1000);
    expect(leftOut.join()).toContain('an agent has at most 1000 fields');
  });
});

it('the list of fields is YAML with the same content, whatever the names of the columns', () => {
  const names = [
    "it's",
    'null',
    'a: b',
    '#',
    '\n\u2028"',
    'Yes',
    '- x',
    '日付 n',
    'x'.repeat(100),
    'plain',
    '{{.a}}',
    '\\d',
  ];
  const fields = names.map((column, i) => ({ name: `f${i}`, type: 'int' as const, column, unit: undefined }));
  const units = [{ name: 'null', type: 'time', column: '@t', unit: 'us' } as const];
  const columns = [...fields, ...units].map((field) => ({ field, variants: [] }));
  const text = `archive: { path: /a.parquet }\n${fieldsYaml(columns).join('\n')}\n`;
  const { schema } = parseAgentFile(text, '/etc/agents/web.yaml');
  expect(schema.fields.map(({ name, type, attached }) => ({ name, type, ...attached }))).toEqual(
    columns.map(({ field: { name, type, column, unit } }) => ({
      name,
      type,
      column,
      ...(unit === undefined ? {} : { unit }),
    })),
  );
});

describe('files written by DuckDB', () => {
  async function written(...statements: string[]): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-archive-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'a'));
    await queryAllDuckDb(statements.map((statement) => statement.replaceAll('DIR', join(folder, 'a'))));
    return folder;
  }

  async function reportOf(folder: string, text: string) {
    const agent = parseAgentFile(text, join(folder, 'web.yaml'));
    return reportArchive(agent, agent.archive!, undefined, undefined, () => {});
  }

  it('have the fields of their schemas and of their folders', async () => {
    const folder = await written(
      `COPY (SELECT TIMESTAMPTZ '2026-01-01' + INTERVAL (i) HOUR AS "@timestamp", i AS "UserID", i / 2 AS score,
        [i] AS tags, {'n': i} AS context, 'w' || (i % 2) AS web, i % 3 AS day FROM range(12) t(i))
        TO 'DIR/old' (FORMAT parquet, PARTITION_BY (web, day))`,
      `COPY (SELECT 1.5::DOUBLE AS "UserID", true AS ok, 'x' AS note) TO 'DIR/new.parquet'`,
    );
    const report = await reportOf(folder, "archive: { path: 'a/**/*.parquet' }");
    expect(report).toMatchObject({ rows: 13, fieldProblems: [], keys: ['web', 'day'] });
    const path = join(folder, 'a/new.parquet');
    const lacks = 'has no times in the column "@timestamp", which places records: it is left out';
    expect(report.problems).toEqual([{ path, message: `${path} ${lacks}` }]);
    expect(report.formats).toMatchObject([{ format: 'parquet', files: 7 }]);
    expect(short(report).sort()).toEqual([
      'context string',
      'day int',
      'note string',
      'ok bool',
      'score float',
      'tags string',
      'timestamp time @timestamp',
      'userid float UserID',
      'web string',
    ]);
    expect(report.columns[0]!.field.name).toBe('timestamp');
    const ways = report.columns.map(({ field, variants }) => [
      field.name,
      variants.map(({ way }) => way).join(),
    ]);
    expect(Object.fromEntries(ways)).toMatchObject({
      tags: 'complete',
      timestamp: 'fast',
      userid: 'fast,fast',
      web: '',
    });
  });

  it.each(['0', 'z'])(
    'beside an Arrow file "%s.arrow" have unsigned integers of 64 bits as text',
    async (name) => {
      const folder = await written(`COPY (SELECT 7::UBIGINT AS hash) TO 'DIR/b.parquet'`);
      const table = new arrow.Table({ hash: arrow.vectorFromArray([7n], new arrow.Uint64()) });
      writeFileSync(join(folder, `a/${name}.arrow`), arrow.tableToIPC(table, 'file'));
      const report = await reportOf(folder, "archive: { path: ['a/*.parquet', 'a/*.arrow'] }");
      expect(report).toMatchObject({ rows: 2, problems: [], fieldProblems: [] });
      expect(short(report)).toEqual(['hash string']);
    },
  );

  it('that cannot be read are named, and so are columns that no file has', async () => {
    const folder = await written(
      `COPY (SELECT 1 AS status) TO 'DIR/a.parquet'`,
      `COPY (SELECT 1 AS status) TO 'DIR/b.parquet' (FORMAT csv)`,
    );
    const report = await reportOf(
      folder,
      "archive: { path: 'a/*.parquet' }\nfields: [{ name: code, type: int, source: status }, { name: stats, type: int }]",
    );
    expect(report.rows).toBe(1);
    expect(report.problems.map(({ path }) => path)).toEqual([join(folder, 'a/b.parquet')]);
    expect(report.fieldProblems).toEqual([
      'the field "stats" reads the column "stats", which no file has (did you mean "status"?)',
    ]);
    expect(report.columns[0]!.variants).toHaveLength(1);
  });

  it('that a listed field cannot hold are named, with the type that can', async () => {
    const folder = await written(
      `COPY (SELECT '1' AS status, 2::BIGINT AS at, 'x' AS seen, 1.5::DOUBLE AS took, true AS ok, 4 AS n, 'k' AS day)
        TO 'DIR/a.parquet'`,
      `COPY (SELECT 1 AS status, 2::BIGINT AS at, 4.5::DOUBLE AS n, 'k' AS day) TO 'DIR/day=1' (FORMAT parquet, PARTITION_BY (day))`,
    );
    const report = await reportOf(
      folder,
      `archive: { path: 'a/**/*.parquet' }
fields:
  - { name: seen, type: time }
  - { name: at, type: time }
  - { name: until, type: time, source: at, unit: ms }
  - { name: status, type: int }
  - { name: took, type: int }
  - { name: ok }
  - { name: n, type: float }
  - { name: day, type: int }`,
    );
    const unfit = (field: string, type: string, column: string): string =>
      `the field "${field}" of type ${type} is null in every row of some files, because the column ${column}`;
    const at = `in ${join(folder, 'a/a.parquet')}`;
    expect(report.fieldProblems).toEqual([
      unfit('seen', 'time', `"seen" is string (BYTE_ARRAY STRING) ${at}: take type: string`),
      expect.stringMatching(
        /^the field "at" of type time .* give the unit of its numbers \(unit: s, ms, us or ns\)$/,
      ),
      unfit('status', 'int', `"status" is string (BYTE_ARRAY STRING) ${at}: take type: string`),
      unfit('took', 'int', `"took" is float (DOUBLE) ${at}: take type: float`),
    ]);
  });
});
