import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { logs } from '../agents/recognise/logs.js';
import { run } from './here.js';
import { recordsOf } from './process.js';

/** A folder with nothing but the log in `logs/`. */
function folderWithLog(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-agent-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'logs'));
  writeFileSync(join(folder, 'logs', name), text);
  return folder;
}

describe('agent new', () => {
  it('writes the file of an agent, which then loads the log, also in an empty folder', async () => {
    const folder = folderWithLog('access.log', logs['combined']!);
    const made = await run(folder, ['agent', 'new', 'mysite', '--log', 'logs/access.log']);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toContain('logs/access.log: combined access log\n6 of 6 lines read match\n');
    expect(made.stdout).toContain('1794909600000 (2026-11-17 10:00:00 UTC)');
    expect(made.stdout).toContain('logstrata load mysite ');
    expect(readFileSync(join(folder, 'agents/mysite.yaml'), 'utf8')).toContain(
      `path: '${join(folder, 'logs/access\\.log')}'`,
    );
    for (const line of made.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
    expect(await run(folder, ['load', 'mysite', 'logs/access.log'])).toMatchObject({ code: 0 });
    const { stdout } = await run(folder, ['query', 'mysite', 'status__eq=400', '--limit', '1']);
    expect(recordsOf(stdout)).toMatchObject([{ method: null, request: '', status: 400 }]);
  });

  it('writes a path with captures for pods, whose names are fields', async () => {
    const folder = folderWithLog('other.log', 'x\n');
    const pods = join(folder, 'pods');
    const podFile = (pod: string): string => join(pods, pod, 'nginx', '0.log');
    for (const pod of ['shop_web-1_0a', 'shop_web-2_0b']) {
      mkdirSync(join(pods, pod, 'nginx'), { recursive: true });
      writeFileSync(podFile(pod), logs['json']!.replaceAll('"n"', `"${pod}"`));
    }
    const made = await run(folder, ['agent', 'new', 'web', '--log', 'pods/*/*/*.log']);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(folder, 'agents/web.yaml'), 'utf8')).toContain(
      `path: '${pods}/(?P<namespace>[^_]+)_(?P<pod>[^_]+)_(?P<uid>[^_]+)/(?P<container>[^/]+)/\\d+\\.log'`,
    );
    const { stdout: there } = await run(folder, ['check', 'web']);
    expect(there).toContain('shop_web-1_0a/nginx/0.log');
    expect(await run(folder, ['load', 'web', 'pods/*/*/*.log'])).toMatchObject({ code: 0 });
    const { stdout } = await run(folder, ['query', 'web', 'pod__exact=web-2', '--limit', '1']);
    expect(recordsOf(stdout)).toMatchObject([
      { namespace: 'shop', pod: 'web-2', uid: '0b', container: 'nginx' },
    ]);
  });

  it('names a log with a line end in its name in commands that can be pasted', async () => {
    const folder = folderWithLog('two\nlines.log', logs['combined']!);
    const { stdout } = await run(folder, ['agent', 'new', 'odd', '--log', 'logs/two\nlines.log']);
    expect(stdout).toContain(`  logstrata check odd --file $'logs/two\\012lines.log'\n`);
    expect(stdout).toContain(`  logstrata load odd $'logs/two\\012lines.log'\n`);
  });

  it('reports lines that contain terminal colours', async () => {
    const folder = folderWithLog(
      'app.log',
      '\u001b[32m2026-04-03 10:00:00\u001b[0m INFO started\n'.repeat(3),
    );
    const { stdout } = await run(folder, ['agent', 'new', 'app', '--log', 'logs/app.log']);
    expect(stdout).toContain('note: values contain terminal colour codes');
  });

  it('reports quoted numbers that are kept as text', async () => {
    const folder = folderWithLog('app.log', '{"version":"1.10","n":1}\n'.repeat(3));
    const { stdout } = await run(folder, ['agent', 'new', 'app', '--log', 'logs/app.log']);
    expect(stdout).toContain('note: version is text, because a number would not give back "1.10" as it is');
  });

  it('reports dates in which day and month may be exchanged', async () => {
    const folder = folderWithLog('app.log', '03/04/2026 10:00:00 INFO started\n'.repeat(3));
    const { stdout } = await run(folder, ['agent', 'new', 'app', '--log', 'logs/app.log']);
    expect(stdout).toContain("read as '02/01/2006 15:04:05'. If that is wrong, write:\n");
    expect(stdout).toContain("timestamp: { format: '01/02/2006 15:04:05' }\n");
    expect(readFileSync(join(folder, 'agents/app.yaml'), 'utf8')).toContain(
      "exchanged: '01/02/2006 15:04:05'.",
    );
  });

  it('replaces no existing file unless it is told to', async () => {
    const folder = folderWithLog('app.log', logs['json']!);
    mkdirSync(join(folder, 'agents'));
    const path = join(folder, 'agents/app.yml');
    writeFileSync(path, 'mine');
    const words = ['agent', 'new', 'app', '--log', 'logs/app.log'];
    const refused = await run(folder, words);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('agents/app.yml already exists. Use --force to replace it');
    const printed = await run(folder, [...words, '--print']);
    expect(printed.code).toBe(0);
    expect(printed.stdout).toMatch(/^# The agent "app"[^]*format: json\n/);
    expect(printed.stderr).toContain('2 of 2 lines read match');
    expect(readFileSync(path, 'utf8')).toBe('mine');
    expect(await run(folder, [...words, '--force'])).toMatchObject({ code: 0 });
    expect(readFileSync(path, 'utf8')).toBe(printed.stdout);
    expect(existsSync(join(folder, 'agents/app.yaml'))).toBe(false);
    const listed = await run(folder, ['agent', 'list']);
    expect(listed.stdout).toMatch(/^app +json +10 fields +\S+\/logs\/app\\\.log$/m);
  });

  it('says that no format was recognised where each line only is kept', async () => {
    const folder = folderWithLog('app.log', 'this is a log of nothing\nanother line here\n');
    const { code, stdout } = await run(folder, ['agent', 'new', 'app', '--log', 'logs/app.log']);
    expect(code).toBe(0);
    expect(stdout).toContain('logs/app.log:\nno format was recognised: each line becomes a record');
    expect(stdout).not.toContain('match');
  });

  it('says why the messages of the kernel have no times', async () => {
    const folder = folderWithLog('dmesg', '[    0.599468] usb 1-1: new device\n'.repeat(3));
    const { stdout } = await run(folder, ['agent', 'new', 'kernel', '--log', 'logs/dmesg']);
    expect(stdout).toContain('note: the times are seconds since the machine started (uptime)');
    expect(stdout).not.toContain('no time was found');
  });

  it('reports a log that it does not recognise', async () => {
    const folder = folderWithLog('empty.log', '\n');
    const empty = await run(folder, ['agent', 'new', 'x', '--log', 'logs/empty.log']);
    expect(empty).toMatchObject({ code: 1, stdout: '' });
    expect(empty.stderr).toBe(
      'logstrata: logs/empty.log has no line yet, so the format cannot be recognised\n',
    );
    const missing = await run(folder, ['agent', 'new', 'x', '--log', 'logs/none.log']);
    expect(missing).toMatchObject({ code: 1, stderr: 'logstrata: logs/none.log is not there\n' });
    const name = await run(folder, ['agent', 'new', '-x', '--log', 'logs/empty.log']);
    expect(name.code).toBe(2);
    expect(await run(folder, ['agent', 'new', 'a/b', '--log', 'logs/empty.log'])).toMatchObject({ code: 2 });
  });
});

describe('check --file', () => {
  it('reports what the lines of a whole log become, and stores nothing', async () => {
    const good = (i: number): string =>
      `${JSON.stringify({ time: i, level: i % 4 === 0 ? 'warn' : 'info', n: i % 10 })}\n`;
    const text = Array.from({ length: 400 }, (_, i) => (i === 7 ? 'panic\n' : good(i))).join('');
    const folder = folderWithLog('app.log', `${text}{"time":5,"n":"many"}\n{"n":1}\n`);
    mkdirSync(join(folder, 'agents'));
    writeFileSync(
      join(folder, 'agents/app.yaml'),
      'fields:\n  - { name: time, type: time }\n  - name: level\n  - { name: n, type: int }\nfile: { path: ../logs/app\\.log, format: json }\n',
    );
    const { code, stdout, stderr } = await run(folder, ['check', 'app', '--file', 'logs/app.log']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/^logs\/app.log: .* kB, 401 records, 1 line would be rejected$/);
    expect(stdout).toMatch(/^time +time +1 {2}1970-01-01 00:00:00 to 1970-01-01 00:00:00$/m);
    expect(stdout).toMatch(/^level +string +2 {2}"info" 75%, "warn" 25%$/m);
    expect(stdout).toMatch(/^n +int +1 {2}0 to 9, /m);
    expect(lines).toContain('note: 1 value of n would be null: not of type int, such as "many"');
    expect(lines).toContain('  line 8: panic');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(existsSync(join(folder, 'data'))).toBe(false);

    const asJson = await run(folder, ['check', 'app', '--file', 'logs/app.log', '--json']);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      records: 401,
      rejected: 1,
      unmatched: [{ line: 8, text: 'panic' }],
      fields: [
        { name: 'time', nulls: 1, min: '0', max: '399' },
        {
          name: 'level',
          distinct: 2,
          frequent: [
            { value: 'info', count: 299 },
            { value: 'warn', count: 100 },
          ],
        },
        { name: 'n', nulls: 1, unreadable: 1, example: 'many' },
      ],
    });
    const loaded = await run(folder, ['load', 'app', 'logs/app.log']);
    expect(loaded.stdout).toContain(
      '1 value did not fit the type of its field and became null:\n  n (int): 1, the first of them "many"\n',
    );
  });

  it('shows the files that file.path matches', async () => {
    const folder = folderWithLog('app.log', logs['json']!);
    writeFileSync(join(folder, 'logs/app.log.1'), logs['json']!);
    await run(folder, ['agent', 'new', 'app', '--log', 'logs/app.log']);
    const there = await run(folder, ['check', 'app']);
    expect(there.stdout).toContain('\n  there are app.log, and 1 rotated one\n');
    rmSync(join(folder, 'logs'), { recursive: true });
    const gone = await run(folder, ['check', 'app']);
    expect(gone.stdout).toContain(`\n  note: ${join(folder, 'logs')} is not there; a server waits for it\n`);
  });

  it.each([
    ['app-*.log', 'app-.*\\.log', 'app-1.log'],
    ['app?.log', 'app.\\.log', 'app1.log'],
  ])('says that the shell pattern %s is the regular expression %s', async (glob, expression, name) => {
    const folder = folderWithLog(name, logs['json']!);
    const yaml = `fields: [{ name: n, type: int }]\nfile: { path: '../logs/${glob}', format: json }\n`;
    mkdirSync(join(folder, 'agents'), { recursive: true });
    writeFileSync(join(folder, 'agents/globbed.yaml'), yaml);
    const { stdout, stderr } = await run(folder, ['check', 'globbed']);
    expect(`${stdout}${stderr}`).toContain(`${glob} of a shell is written ${expression} here`);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('reads a shell pattern that is no regular expression', async () => {
    const folder = folderWithLog('app.log', logs['json']!);
    mkdirSync(join(folder, 'agents'), { recursive: true });
    const yaml = "fields: [{ name: n, type: int }]\nfile: { path: '../l*/*.log', format: json }\n";
    writeFileSync(join(folder, 'agents/globbed.yaml'), yaml);
    const { stdout } = await run(folder, ['check', 'globbed']);
    expect(stdout).toContain('\n  there is logs/app.log\n');
  });

  it('does not mistake a regular expression for a shell pattern', async () => {
    const folder = folderWithLog('app.txt', logs['json']!);
    mkdirSync(join(folder, 'agents'), { recursive: true });
    for (const [name, path] of Object.entries({ a: 'x.*\\.txt', b: 'app-*.log' }))
      writeFileSync(
        join(folder, `agents/${name}.yaml`),
        `fields: [{ name: n, type: int }]\nfile: { path: '../logs/${path}', format: json }\n`,
      );
    const { stdout } = await run(folder, ['check']);
    expect(stdout.split('\n').filter((line) => line.includes('no file there matches'))).toHaveLength(2);
    expect(stdout).not.toContain('of a shell');
  });
});
