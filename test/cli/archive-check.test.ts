import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { queryDuckDb } from '../oracle/duckdb.js';
import { run } from './here.js';
import { workFolder } from './process.js';

/** A folder with an agent `web`, whose archive is written by a SQL statement. */
async function folderWith(agentFile: string, statement: string): Promise<string> {
  const folder = workFolder();
  mkdirSync(join(folder, 'lake'));
  writeFileSync(join(folder, 'agents/web.yaml'), agentFile);
  await queryDuckDb(statement.replaceAll('DIR', join(folder, 'lake')));
  return folder;
}

const partitioned = `COPY (SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) MINUTE AS "@timestamp", i AS "UserID",
  'GET' AS method, {'city': 'Bergen', 'numbers': [i]} AS a_context_that_has_a_long_name, i::DECIMAL(38, 9) AS price, i % 2 AS day
  FROM range(1000) t(i)) TO 'DIR/web' (FORMAT parquet, PARTITION_BY (day))`;

describe('logstrata check of an archive', () => {
  it('shows the files, who reads them, and the resulting fields, which can be used as they are shown', async () => {
    const agentFile = "archive: { path: '../lake/**/*.parquet' }\n";
    const folder = await folderWith(agentFile, partitioned);
    const { code, stdout, stderr } = await run(folder, ['check', 'web']);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toContain('web (agents/web.yaml): the fields of its files\n');
    expect(stdout).toMatch(/archive: 2 files of parquet, [\d.]+ kB, 1,000 rows\n/);
    expect(stdout).toContain('folder names give the fields day\nrows are ordered by the field timestamp\n');
    expect(stdout).toMatch(/^timestamp +time +@timestamp +INT64 TIMESTAMP\S* +fast$/m);
    expect(stdout).toMatch(/^a_context_that… +string +group +complete: nested$/m);
    expect(stdout).toMatch(/^day +int$/m);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    const list = stdout.slice(stdout.indexOf('fields:\n'));
    expect(list.split('\n')).toEqual(
      expect.arrayContaining([
        "  - { name: timestamp, type: time, source: '@timestamp' }",
        '  - { name: method }',
      ]),
    );
    writeFileSync(join(folder, 'agents/web.yaml'), agentFile + list);
    const listed = await run(folder, ['check', 'web', '--json']);
    const inferred = JSON.parse((await run(folder, ['check', '--json'])).stdout) as {
      agents: { name: string }[];
    };
    const agent = JSON.parse(listed.stdout) as {
      fields: { name: string }[];
      archiveReport: { columns: unknown[] };
    };
    expect(listed.code).toBe(0);
    expect(agent.fields.map(({ name }) => name)).toEqual([
      'timestamp',
      'userid',
      'method',
      'a_context_that_has_a_long_name',
      'price',
      'day',
    ]);
    expect(agent.archiveReport.columns).toHaveLength(6);
    expect(inferred.agents.map(({ name }) => name)).toEqual(['app', 'nginx', 'web']);
  });

  it('names every file and column with a problem, and fails', async () => {
    const agentFile =
      "archive: { path: '../lake/**/*.parquet', time: day }\nfields: [{ name: day, type: time, source: dya }]\n";
    const folder = await folderWith(agentFile, partitioned);
    writeFileSync(join(folder, 'lake/torn.parquet'), 'PAR1, but no more of it');
    for (const args of [['check', 'web'], ['check']]) {
      const { code, stderr } = await run(folder, args);
      expect(code).toBe(1);
      expect(stderr).toContain(
        'agents/web.yaml: the field "day" reads the column "dya", which no file has (did you mean "day"?)\n',
      );
      expect(stderr).toContain(`${join(folder, 'lake/torn.parquet')}, at byte `);
    }
  });

  it('shows how numbers are read as times, and counts copies', async () => {
    const numbers =
      "COPY (SELECT i AS n, 1767225600 + i AS created_at FROM range(9) t(i)) TO 'DIR/a.parquet'";
    const archive = "archive: { path: '../lake/*.parquet'";
    const folder = await folderWith(`${archive} }\n`, numbers);
    const { stdout } = await run(folder, ['check', 'web']);
    expect(stdout).toContain('no field is of type time: rows are ordered by when they are attached\n');
    const line = '  - { name: created_at, type: time, source: created_at, unit: s }\n';
    expect(stdout).toContain(`list the fields and give its unit: s, ms, us or ns\n${line}field `);
    writeFileSync(join(folder, 'agents/web.yaml'), `${archive}, time: created_at }\nfields:\n${line}`);
    const listed = await run(folder, ['check', 'web']);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toContain(', 9 rows\nrows are ordered by the field created_at\n');
    const renamed = line.replace('name: created_at', 'name: time');
    writeFileSync(join(folder, 'agents/web.yaml'), `${archive}, time: created_at }\nfields:\n${renamed}`);
    expect(await run(folder, ['check', 'web'])).toMatchObject({ code: 0, stderr: '' });
    copyFileSync(join(folder, 'lake/a.parquet'), join(folder, 'lake/b.parquet'));
    const twice = await run(folder, ['check', 'web']);
    expect(twice).toMatchObject({ code: 0, stderr: '' });
    expect(twice.stdout).toContain(', 18 rows\n');
  });

  it('refuses the files of a table by the name of its log, and shows the other agents', async () => {
    const folder = await folderWith(
      "archive: { path: '../lake/*.parquet' }\n",
      "COPY (SELECT 1 AS n) TO 'DIR/a.parquet'",
    );
    mkdirSync(join(folder, 'lake/_delta_log'));
    writeFileSync(join(folder, 'lake/_delta_log/00000000000000000000.json'), '{}');
    const { code, stdout, stderr } = await run(folder, ['check']);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `agents/web.yaml: ${join(folder, 'lake/_delta_log')} is the log of a Delta table: only it says which files`,
    );
    expect(stdout).toMatch(/^app [^]*^nginx [^]*^web /m);
  });

  it('shows how many text files there are', async () => {
    const agentFile = "archive: { path: '../lake/*.csv', format: json }\nfields: [{ name: a }]\n";
    const folder = await folderWith(agentFile, "COPY (SELECT 1 AS a) TO 'DIR/a.csv'");
    const { code, stdout } = await run(folder, ['check', 'web']);
    expect(code).toBe(0);
    expect(stdout).toContain('reads json lines of ../lake/*.csv, which are stored once\n');
    expect(stdout).toContain('archive: 1 file of lines, 4 bytes\n');
  });
});
