import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';

const dayMs = 86_400_000;
const agent = (retention: string): string => `fields:
  - { name: time, timestamp: { format: rfc3339 } }
  - { name: n, type: int }
file: { path: 'logs/shop\\.log', format: json }
${retention}
`;

/** Ten records, a day apart, the newest from now. */
async function storedFolder(
  retention: string,
): Promise<{ folder: string; define: (retention: string) => void }> {
  const folder = workFolder();
  const define = (text: string): void => writeFileSync(join(folder, 'agents/shop.yaml'), agent(text));
  define(retention);
  const lines = Array.from({ length: 10 }, (_, n) =>
    JSON.stringify({ time: new Date(Date.now() - (9 - n) * dayMs).toISOString(), n }),
  );
  writeFileSync(join(folder, 'shop.log'), `${lines.join('\n')}\n`);
  expect((await run(folder, ['load', 'shop', 'shop.log'])).code).toBe(0);
  return { folder, define };
}

const span = String.raw`\d{4}-\d\d-\d\d \d\d:00:00 to \d{4}-\d\d-\d\d \d\d:00:00 UTC`;

describe('a retention that was set in minutes instead of months', () => {
  it("is reported by check, by the server's log and by stats, removes nothing, and is put in force on demand", async () => {
    const { folder, define } = await storedFolder('retention: { period: 400d }');
    const port = await freePort();
    const server = start(folder, ['serve', '--no-follow', '--listen', `127.0.0.1:${port}`]);
    await server.shows('serving ');
    define('retention: { period: 7m }');
    const checked = await run(folder, ['check', 'shop']);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toMatch(
      new RegExp(
        `so far it has kept records for 400 d; the change removes 9 of 10 records of ${span},\\n` +
          '  but not before 1 d after a server has read the file; to remove them now: "logstrata retention apply shop"',
      ),
    );
    // Another process may have read the file before the server.
    const early = await run(folder, ['retention', 'apply', 'shop']);
    expect(early).toMatchObject({ code: 1, stdout: '' });
    expect(early.stderr).toContain('make it reload the changed file');

    server.child.kill('SIGHUP');
    await server.shows('"of":10');
    const records = async (): Promise<number> => {
      const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/shop`);
      return recordsOf(await response.text()).length;
    };
    expect(await records()).toBe(10);
    expect((await run(folder, ['check', 'shop'])).stdout).toMatch(
      /but not before \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; to/,
    );
    const stats = await run(folder, ['stats', 'shop']);
    expect(stats.stdout).toMatch(/keeps +records for 400 d\n/);
    expect(stats.stdout).toMatch(
      new RegExp(`from .* UTC +records for 7 min 00 s: removes 9 of 10 records of ${span}`),
    );

    const applied = await run(folder, ['retention', 'apply', 'shop']);
    expect(applied).toMatchObject({ code: 0, stderr: '' });
    expect(applied.stdout).toMatch(new RegExp(`retention removed 9 records of ${span}`));
    expect(await records()).toBe(1);
    server.child.kill('SIGTERM');
    const { stderr } = await server.finished;
    const log = stderr
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string;
    expect(log.filter(({ records: count }) => count !== undefined)).toEqual([
      expect.objectContaining({
        level: 40,
        agent: 'shop',
        records: 9,
        of: 10,
        from: time,
        to: time,
        due: time,
      }),
      expect.objectContaining({
        level: 30,
        agent: 'shop',
        records: 9,
        from: time,
        to: time,
        rejectedLines: 0,
      }),
    ]);
    expect((await run(folder, ['retention', 'apply', 'shop'])).stdout).toContain(
      'nothing to do: shop keeps records for 7 min',
    );
  });

  it('removes records without a server on demand', async () => {
    const { folder, define } = await storedFolder('');
    define('retention: { period: 3d, grace: 2h }');
    expect((await run(folder, ['check', 'shop'])).stdout).toContain('but not before 2 h 00 min after');
    const { code, stdout } = await run(folder, ['retention', 'apply', 'shop', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([
      { kind: 'in_force', cause: 'applied' },
      { kind: 'taken', taken: { records: 6 } },
    ]);
    expect(recordsOf((await run(folder, ['query', 'shop'])).stdout)).toHaveLength(4);
  });
});

it('records that expired long ago wait, which the log, check and stats report, and are removed on demand', async () => {
  const folder = workFolder();
  writeFileSync(join(folder, 'agents/shop.yaml'), agent('retention: { period: 20d, interval: 1s }'));
  const lines = Array.from({ length: 10 }, (_, n) =>
    JSON.stringify({ time: new Date(Date.now() - (9 - n) * 10 * dayMs).toISOString(), n }),
  );
  mkdirSync(join(folder, 'agents/logs'));
  writeFileSync(join(folder, 'agents/logs/shop.log'), `${lines.join('\n')}\n`);
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
  await server.shows('"of":10');
  const told = new RegExp(
    'some records have been over the retention limit for more than a week, so retention waits: it will remove 7 of 10 records of ' +
      `${span},\n  but not before \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC; to remove`,
  );
  expect((await run(folder, ['check', 'shop'])).stdout).toMatch(told);
  const stats = await run(folder, ['stats', 'shop']);
  expect(stats.stdout).toMatch(/keeps +records for 20 d\n/);
  expect(stats.stdout).toMatch(
    /removes 7 of 10 .* UTC; some records have been over the retention limit for more than a week/,
  );
  const applied = await run(folder, ['retention', 'apply', 'shop']);
  expect(applied.stdout).toMatch(new RegExp(`retention removed 7 records of ${span}`));
  expect(recordsOf((await run(folder, ['query', 'shop'])).stdout).map(({ n }) => n)).toEqual([7, 8, 9]);
  server.child.kill('SIGTERM');
  const { stderr } = await server.finished;
  expect(stderr).toContain(
    'the clock was set ahead, no records arrived for a long time, or the records that arrived are old. It will remove',
  );
});

it('an unknown argument is refused, and so is an agent without records', async () => {
  const folder = workFolder();
  expect((await run(folder, ['retention'])).code).toBe(2);
  expect((await run(folder, ['retention', 'aply', 'app'])).code).toBe(2);
  const { code, stderr } = await run(folder, ['retention', 'apply', 'app']);
  expect(code).toBe(1);
  expect(stderr).toContain('is not there: load something first');
});
