import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './here.js';
import { freePort, recordsOf, start, workFolder } from './process.js';

const line = (day: number, n: number): string =>
  `198.18.0.1 - - [${day}/Nov/2026:10:00:00 +0000] "GET /${n} HTTP/1.1" 200 12 "-" "curl"\n`;

/** A folder with two loads of nginx. Also returns the ids of the loads. */
async function loaded(): Promise<{ folder: string; loads: string[] }> {
  const folder = workFolder();
  const loads: string[] = [];
  for (const day of [10, 11]) {
    const name = `day${day}.log`;
    writeFileSync(join(folder, name), [1, 2, 3].map((n) => line(day, n)).join(''));
    const { code, stderr } = await run(folder, ['load', 'nginx', name]);
    expect(code).toBe(0);
    loads.push(/ \(load ([0-9a-f]{16})\)$/m.exec(stderr)![1]!);
  }
  return { folder, loads };
}

const countOf = async (folder: string): Promise<number> =>
  recordsOf((await run(folder, ['query', 'nginx', '--limit', '1000'])).stdout).length;

describe('remove', () => {
  it('reports what it would remove, and removes nothing if it cannot ask for confirmation', async () => {
    const { folder, loads } = await loaded();
    const listed = await run(folder, ['stats', 'nginx']);
    for (const load of loads) expect(listed.stdout).toContain(`${load}  20`);
    const refused = await run(folder, ['remove', 'nginx', '--load', loads[0]!]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('3 records of agent nginx, about ');
    expect(refused.stderr).toContain('of the hours from 2026-11-10 10:00:00 to 2026-11-10 11:00:00 UTC');
    expect(refused.stderr).toContain('--yes removes without asking. Nothing was removed\n');
    expect(await countOf(folder)).toBe(6);
  });

  it('removes one load, a range or all records, and the files can be loaded again', async () => {
    const { folder, loads } = await loaded();
    const one = await run(folder, ['remove', 'nginx', '--load', loads[0]!, '--yes']);
    expect(one).toMatchObject({ code: 0, stdout: 'removed 3 records of agent nginx\n' });
    expect(await countOf(folder)).toBe(3);
    expect(await run(folder, ['load', 'nginx', 'day10.log'])).toMatchObject({ code: 0 });
    expect(await countOf(folder)).toBe(6);
    // A load of known files only is no failure, except with --fail-if-nothing.
    expect(await run(folder, ['load', 'nginx', 'day10.log'])).toMatchObject({ code: 0 });
    expect(await run(folder, ['load', 'nginx', 'day10.log', '--fail-if-nothing'])).toMatchObject({ code: 1 });
    const range = ['remove', 'nginx', '--since', '2026-11-11', '--until', '2026-11-12', '--yes', '--json'];
    const { stdout } = await run(folder, range);
    expect(JSON.parse(stdout)).toMatchObject({ records: 3, removed: true });
    expect(await run(folder, range)).toMatchObject({ code: 0 });
    expect((await run(folder, ['remove', 'nginx', '--yes'])).stdout).toContain('removed 3 records');
    expect(await countOf(folder)).toBe(0);
  });

  it('is refused for unknown loads, contradictory options and invalid times', async () => {
    const { folder, loads } = await loaded();
    const cases: [string[], number, string][] = [
      [['--load', '0000000000000001'], 1, 'has no load "0000000000000001"'],
      [['--load', loads[0]!, '--since', '1d'], 2, '--load cannot be combined with'],
      [['--since', '2026-11-12', '--until', '2026-11-11'], 2, 'since ≤ time < until'],
      [['--since', 'monday'], 2, '--since: "monday" is not a time'],
    ];
    for (const [words, code, message] of cases) {
      const ended = await run(folder, ['remove', 'nginx', '--yes', ...words]);
      expect(ended.code).toBe(code);
      expect(ended.stderr).toContain(message);
    }
    expect(await run(folder, ['remove', 'nothing', '--yes'])).toMatchObject({ code: 1 });
    expect(await countOf(folder)).toBe(6);
  });

  it('works beside a server, and for an agent whose file was deleted', async () => {
    const { folder, loads } = await loaded();
    const server = start(folder, ['serve', '--no-follow', '--listen', `127.0.0.1:${await freePort()}`]);
    await server.shows('serving ');
    expect(await run(folder, ['remove', 'nginx', '--load', loads[1]!, '--yes'])).toMatchObject({ code: 0 });
    expect(await countOf(folder)).toBe(3);
    server.child.kill('SIGTERM');
    await server.finished;
    rmSync(join(folder, 'agents/nginx.yaml'));
    const stats = await run(folder, ['stats']);
    expect(stats.stdout).toContain('note: there is no agent file for nginx in agents:');
    const all = JSON.parse((await run(folder, ['stats', '--json'])).stdout) as { agent: string }[];
    expect(all.find(({ agent }) => agent === 'nginx')).toMatchObject({ hasFile: false, records: 3 });
    expect((await run(folder, ['remove', 'nginx', '--yes'])).stdout).toContain('removed 3 records');
    expect((await run(folder, ['stats'])).stdout).not.toContain('note:');
  });
});

describe('a load without a readable time', () => {
  it('is refused if it cannot ask for confirmation, unless it is forced', async () => {
    const folder = workFolder();
    writeFileSync(join(folder, 'a.json'), '{"time":"17.11.2026","message":"a"}\n{"time":"18.11.2026"}\n');
    const refused = await run(folder, ['load', 'app', 'a.json']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      'none of the 2 records of a.json has a readable "time" (such as "17.11.2026")',
    );
    expect(refused.stderr).toContain('use --force to store them anyway');
    const forced = await run(folder, ['load', 'app', 'a.json', '--force']);
    expect(forced.code).toBe(0);
    expect(forced.stdout).toContain('  time (time): 2, the first of them "17.11.2026"\n');
  });
});
