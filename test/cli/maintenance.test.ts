import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { queryDuckDb } from '../oracle/duckdb.js';
import { run } from './here.js';
import { recordsOf, root, workFolder } from './process.js';

interface Stats {
  agent: string;
  records: number;
  segments: number;
  hotRecords: number;
  firstCursor: string;
  lastCursor: string;
}

async function statsOf(folder: string, agent: string): Promise<Stats> {
  const ended = await run(folder, ['stats', agent, '--json']);
  expect(ended.code).toBe(0);
  return JSON.parse(ended.stdout) as Stats;
}

let template = '';

beforeAll(async () => {
  template = mkdtempSync(join(tmpdir(), 'logstrata-cli-'));
  for (const agent of ['nginx', 'app']) {
    const args = ['load', agent, join(root, `data/samples/${agent}.log`), '--agents', join(root, 'agents')];
    expect((await run(template, args)).code).toBe(0);
  }
});

afterAll(() => rmSync(template, { recursive: true, force: true }));

/** A folder with both samples loaded. */
function loaded(): string {
  const folder = workFolder();
  cpSync(join(template, 'data/store'), join(folder, 'data/store'), { recursive: true });
  return folder;
}

function segmentsOf(folder: string, agent: string): string[] {
  const place = join(folder, 'data/store', agent);
  return readdirSync(place, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet'))
    .sort()
    .map((name) => join(place, name));
}

describe('logstrata stats', () => {
  it('shows a table of all agents, and all details of one', async () => {
    const folder = loaded();
    const table = await run(folder, ['stats']);
    expect(table.stdout).toMatch(
      /agent +records.*\n-.*\napp +2,000 .*2026-11-17.*2026-11-19.*\nnginx +10,000 /,
    );
    const one = await run(folder, ['stats', 'nginx']);
    expect(one.stdout).toMatch(/records +10,000 \(0 of them hot\)/);
    expect(one.stdout).toContain('status int');
    expect(one.stdout).toMatch(/sealed +3 segments, 3 row groups, /);
    const line =
      '{"time":"2026-11-17T00:03:05Z","level":"info"}\n{"time":"2026-11-17T00:03:06Z","trace_id":"x"}\n';
    const loading = await run(folder, ['load', 'app', '-', '--data', 'one'], line);
    expect(loading.stdout).toContain(
      '1 value did not fit the type of its field and became null:\n  trace_id (int): 1, the first of them "x"\n',
    );
    const hot = await run(folder, ['stats', 'app', '--data', 'one']);
    expect(hot.stdout).toMatch(/records +2 \(2 of them hot\)/);
    expect(hot.stdout).toMatch(/times \(UTC\) +2026-11-17 00:03:05 to 2026-11-17 00:03:06/);
    const none = await run(folder, ['stats', 'nginx', '--data', 'one']);
    expect(none).toMatchObject({ code: 1 });
    expect(none.stderr).toMatch(
      /there are no records of an agent "nginx" in .*one\. There are records of app/,
    );
    await run(folder, ['compact', '--data', 'one']);
    const single = await run(folder, ['stats', 'app', '--data', 'one']);
    expect(single.stdout).toMatch(/sealed +1 segment, 1 row group, /);
    expect((await run(folder, ['stats', 'ngnx'])).stderr).toContain('(did you mean "nginx"?)');
  });
});

describe('logstrata verify', () => {
  it('finds a flipped bit, names the file and the affected records, and ends with 1', async () => {
    const folder = loaded();
    const whole = await run(folder, ['verify']);
    expect(whole.code).toBe(0);
    expect(whole.stdout).toMatch(/^ok {7}app: .*2,000 records\nok {7}nginx: .*10,000 records\n$/);

    const file = segmentsOf(folder, 'nginx')[1]!;
    const bytes = readFileSync(file);
    bytes[Math.floor(statSync(file).size / 3)]! ^= 1;
    writeFileSync(file, bytes);
    const damaged = await run(folder, ['verify']);
    expect(damaged.code).toBe(1);
    expect(damaged.stdout).toContain('ok       app');
    expect(damaged.stdout).toMatch(/DAMAGED {2}.*dt=2026-11-18.*row group 0/);
    expect(damaged.stdout).toMatch(/loses [\d,]+ records?:\n +[0-9a-f]{16} … [0-9a-f]{16}/);
    const report = JSON.parse((await run(folder, ['verify', 'nginx', '--json'])).stdout) as {
      damages: unknown[];
    };
    expect(report.damages.length).toBeGreaterThan(0);
    // A query that needs the damaged file fails instead of leaving out records.
    const query = await run(folder, ['query', 'nginx', '--limit', '10000']);
    expect(query.code).toBe(1);
    expect(query.stderr).toContain('.parquet');
  });
});

describe('logstrata verify --repair', () => {
  it('repairs an agent with a damaged manifest, which verify names next to the undamaged agents', async () => {
    const folder = loaded();
    const answer = (await run(folder, ['query', 'app', '--limit', '2000'])).stdout;
    const place = join(folder, 'data/store/app');
    const newest = readdirSync(place).findLast((name) => name.startsWith('manifest-'))!;
    writeFileSync(join(place, newest), readFileSync(join(place, newest)).fill(0, 100, 200));
    const damaged = await run(folder, ['verify']);
    expect(damaged.code).toBe(1);
    expect(damaged.stdout).toMatch(new RegExp(`^DAMAGED  ${newest} \\(byte 0\\): manifest .* is damaged: `));
    expect(damaged.stdout).toContain('loses records; a repair shows how many\n');
    expect(damaged.stdout).toContain(
      'repair   app: stop the server, then run: logstrata verify app --repair',
    );
    expect(damaged.stdout).toMatch(/^ok {7}nginx: .*10,000 records$/m);
    expect((await run(folder, ['verify', '--repair', '--yes'])).code).toBe(0);
    expect((await run(folder, ['verify'])).stdout).toMatch(/^ok {7}app: .*2,000 records\nok {7}nginx: /);
    expect((await run(folder, ['query', 'app', '--limit', '2000'])).stdout).toBe(answer);
  });

  it('restores all intact records if the manifest is deleted and a segment damaged', async () => {
    const folder = loaded();
    const answer = recordsOf((await run(folder, ['query', 'nginx', '--limit', '10000'])).stdout);
    const place = join(folder, 'data/store/nginx');
    for (const name of readdirSync(place)) if (name.startsWith('manifest-')) rmSync(join(place, name));
    const file = segmentsOf(folder, 'nginx')[1]!;
    const bytes = readFileSync(file);
    bytes.fill(0xa5, 100, Math.floor(bytes.length / 2));
    writeFileSync(file, bytes);

    const asked = await run(folder, ['verify', 'nginx', '--repair']);
    expect(asked.code).toBe(1);
    expect(asked.stderr).toContain('--yes');
    const ended = await run(folder, ['verify', 'nginx', '--repair', '--yes']);
    expect(ended.code).toBe(1);
    expect(ended.stdout).toMatch(/rebuilt {2}nginx: the manifest, from the files alone/);
    expect(ended.stdout).toMatch(/LOST {5}[\d,]+ records?: [0-9a-f]{16} … [0-9a-f]{16}, 2026-11-18 /);
    expect((await run(folder, ['verify', 'nginx'])).code).toBe(0);
    const left = recordsOf((await run(folder, ['query', 'nginx', '--limit', '10000'])).stdout);
    const expected = answer.filter((record) => new Date(record['time'] as number).getUTCDate() !== 18);
    expect(left).toEqual(expected);
    expect(left.length).toBeGreaterThan(5000);
    expect((await run(folder, ['verify', '--repair'])).stdout).toMatch(/ok .*app: nothing to repair/);
  });
});

describe('logstrata compact', () => {
  it('seals and merges, and changes no answer', async () => {
    const folder = loaded();
    const lines = readFileSync(join(folder, 'data/samples/app.log'));
    for (let i = 0; i < 2; i++) expect((await run(folder, ['load', 'app', '-'], lines)).code).toBe(0);
    const before = await statsOf(folder, 'app');
    expect(before).toMatchObject({ records: 6000, hotRecords: 4000 });
    const answer = await run(folder, ['query', 'app', '--limit', '6000']);

    const ended = await run(folder, ['compact', 'app', '--codec', 'zstd']);
    expect(ended.code).toBe(0);
    expect(ended.stdout).toMatch(/^app: \d+ segments? \(.*\) -> 3 segments \(.*\)\n$/);
    expect((await run(folder, ['compact', 'app'])).stdout).toMatch(
      /^app: nothing to do, 3 segments \(.*\)\n$/,
    );
    expect(await statsOf(folder, 'app')).toMatchObject({ records: 6000, hotRecords: 0, segments: 3 });
    expect((await run(folder, ['query', 'app', '--limit', '6000'])).stdout).toBe(answer.stdout);
    expect((await run(folder, ['verify'])).code).toBe(0);
  });
});

describe('logstrata export', () => {
  it('writes all matching records as JSON Lines', async () => {
    const folder = loaded();
    const answer = await run(folder, ['query', 'app', 'level__exact=error', '--limit', '2000']);
    const toStdout = await run(folder, ['export', 'app', 'level__exact=error', '--format', 'jsonl']);
    expect(toStdout.stdout).toBe(answer.stdout);
    expect((await run(folder, ['export', 'app', '--format', 'jsonl', '--output', 'app.jsonl'])).code).toBe(0);
    expect(recordsOf(readFileSync(join(folder, 'app.jsonl'), 'utf8'))).toHaveLength(2000);
    const again = await run(folder, ['export', 'app', '--format', 'jsonl', '--output', 'app.jsonl']);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('--force');
    expect(
      (await run(folder, ['export', 'app', '--format', 'jsonl', '--output', 'app.jsonl', '--force'])).code,
    ).toBe(0);
  });

  it('writes Parquet that other programs read, with the same values and cursors', async () => {
    const folder = loaded();
    // Hot rows as well as sealed ones are in the answer.
    await run(folder, ['load', 'app', '-'], readFileSync(join(folder, 'data/samples/app.log')));
    for (const words of [[], ['level__exact=error'], ['duration__gt=20', '--limit', '777']]) {
      const lines = (await run(folder, ['export', 'app', ...words, '--format', 'jsonl'])).stdout;
      const expected = recordsOf(lines);
      const ids = [...lines.matchAll(/"trace_id":(\d+)/g)].map((match) => match[1]);
      const ended = await run(folder, [
        'export',
        'app',
        ...words,
        '--format',
        'parquet',
        '--output',
        'x.parquet',
        '--force',
      ]);
      expect(ended.code).toBe(0);
      const file = join(folder, 'x.parquet');
      const rows = await queryDuckDb(
        `SELECT printf('%016x', _cursor) AS _cursor, epoch_ms("time") AS "time", level, trace_id::VARCHAR AS trace_id,
                duration, context, service, message
         FROM '${file}' ORDER BY _cursor`,
      );
      expect(rows.map((row) => ({ ...row, time: Number(row['time']) }))).toEqual(
        // As text, because these ids exceed the precision of a double.
        expected.map((record, i) => ({ ...record, trace_id: ids[i] })),
      );
    }
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('requires a file name for Parquet, and writes no file if no record matches', async () => {
    const folder = loaded();
    expect((await run(folder, ['export', 'app', '--format', 'parquet'])).code).toBe(2);
    const none = await run(folder, [
      'export',
      'app',
      'level__exact=x',
      '--format',
      'parquet',
      '--output',
      'y.parquet',
    ]);
    expect(none.code).toBe(0);
    expect(none.stderr).toContain('no file was written');
    expect(readdirSync(folder)).not.toContain('y.parquet');
  });
});
