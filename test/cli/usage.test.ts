import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { itUnless, notLinux } from '../needs.js';
import { run } from './here.js';
import { main, root, workFolder } from './process.js';

const commands = ['serve', 'load', 'query', 'stats', 'check', 'verify', 'compact', 'export', 'demo'];

describe('help', () => {
  it('lists every command, with examples of each', async () => {
    const folder = workFolder();
    const help = await run(folder, ['--help']);
    expect(help.code).toBe(0);
    const check = async (command: string): Promise<void> => {
      expect(help.stdout).toContain(`  ${command}`);
      const own = await run(folder, [command, '--help']);
      expect(own.code).toBe(0);
      expect(own.stdout).toContain('Examples:');
      expect(own.stdout).toContain('--data <dir>');
    };
    await Promise.all(commands.map(check));
    expect(await run(folder, ['help'])).toEqual(help);
    expect(await run(folder, ['help', 'load'])).toEqual(await run(folder, ['load', '--help']));
  });

  it('shows the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(await run(workFolder(), ['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });
});

describe('wrong usage ends with 2 and says what to type', () => {
  const cases: [string, string[], RegExp][] = [
    ['no arguments', [], /Usage: logstrata/],
    ['an unknown command', ['qeury', 'nginx'], /logstrata: unknown command 'qeury'[^]*Did you mean query/],
    ['help for an unknown command', ['help', 'qeury'], /unknown command 'qeury'[^]*did you mean "query"/],
    [
      'an unknown option',
      ['query', 'nginx', '--limt', '5'],
      /logstrata: unknown option '--limt'[^]*Did you mean --limit/,
    ],
    ['a missing argument', ['load'], /missing required argument 'agent'/],
    ['a missing file', ['load', 'nginx'], /file/],
    ['too many arguments', ['stats', 'nginx', 'app'], /too many arguments/],
    [
      'a filter without a value',
      ['query', 'nginx', 'status__gte'],
      /field__operator=value, not "status__gte"/,
    ],
    ['a sign', ['query', 'nginx', 'status>500'], /not "status>500"\nWrite: status__gt=500$/m],
    ['a colon', ['count', 'app', 'level:error'], /not "level:error"\nWrite: level__exact=error$/m],
    [
      'a filter without an operator',
      ['query', 'nginx', 'status=500'],
      /needs an operator: write status__eq=500/,
    ],
    ['or between words', ['query', 'app', 'timeout', 'or', 'refused'], /One of two: any='\*__like=timeout'/],
    ['a bad time', ['query', 'nginx', '--since', 'now'], /"time__since": "now" is not a time/],
    ['tail', ['tail', 'nginx'], /unknown command 'tail': write logstrata query nginx --follow$/m],
    ['tail -f', ['tail', '-f', 'nginx'], /write logstrata query … --follow$/m],
    ['search', ['search', 'app', "it's here"], /write logstrata query app 'it'\\''s here'$/m],
    ['delete', ['delete', 'app', '--since', '1d'], /write logstrata remove …$/m],
    ['ls', ['ls', 'x'], /write logstrata agent list$/m],
    ['help for another name', ['help', 'tail'], /unknown command 'tail'/],
    ['--last', ['query', 'nginx', '--last=1h'], /unknown option '--last=1h': write --since 1h$/m],
    [
      '--tail',
      ['query', 'nginx', '--tail', '5'],
      /write --limit 20, or --follow for new records\n\("--help"/,
    ],
    ['a misspelled field', ['query', 'nginx', 'staus__eq=200'], /staus[^]*status/],
    ['a wrong operator', ['query', 'nginx', 'status__like=2'], /status[^]*gte/],
    ['a bad cursor', ['query', 'nginx', '--after', 'abc'], /16 lowercase hexadecimal digits/],
    ['a bad limit', ['query', 'nginx', '--limit', '-1'], /limit/],
    ['a limit given twice', ['query', 'nginx', '--limit', '1', '--limit', '2'], /"limit" is given twice/],
    [
      'a cursor as an option and as an argument',
      ['query', 'nginx', '--after', 'x', 'after=y'],
      /"after" is given twice/,
    ],
    ['an unknown codec', ['compact', '--codec', 'snappy'], /lz4, zstd/],
    ['an unknown format', ['export', 'nginx', '--format', 'xml'], /jsonl, json, csv, parquet/],
    ['an unknown transport', ['serve', '--transport', 'http2'], /auto, uws, node/],
    ['an invalid address', ['serve', '--listen', '99'], /--listen[^]*127\.0\.0\.1:2111/],
    ['a line without an agent', ['check', '--line', 'x'], /--line needs the name of an agent/],
    ['--yes without --repair', ['verify', '--yes'], /--yes needs --repair/],
    ['standard input and files at once', ['load', 'nginx', '-', 'x.log'], /standard input/],
  ];
  it.each(cases)('%s', async (_name, args, message) => {
    const ended = await run(workFolder(), args);
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
    expect(ended.code).toBe(2);
    expect(ended.stdout).toBe('');
  });
});

describe('mistakes that the user can correct end with 1', () => {
  it('an unknown agent: lists the existing ones and suggests the nearest', async () => {
    for (const args of [
      ['query', 'ngin'],
      ['load', 'ngin', 'data/samples/nginx.log'],
      ['check', 'ngin'],
    ]) {
      const ended = await run(workFolder(), args);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toContain(
        'there is no agent "ngin" (did you mean "nginx"?). Agents in agents: app, nginx.',
      );
    }
  });

  it('a missing agents folder', async () => {
    const folder = workFolder();
    rmSync(join(folder, 'agents'), { recursive: true });
    const ended = await run(folder, ['serve']);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/logstrata: .*agents/);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
  });

  it('a broken agent file: every error with file, line and column', async () => {
    const folder = workFolder();
    writeFileSync(
      join(folder, 'agents/bad.yaml'),
      'fields:\n  - name: time\n    tpye: int\nfile:\n  path: a/b\n  format: plain\n  regex: "(?P<time"\n',
    );
    for (const args of [['check'], ['serve'], ['check', 'bad'], ['load', 'bad', 'data/samples/nginx.log']]) {
      const ended = await run(folder, args);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(/agents\/bad\.yaml:3:5: .*tpye/);
      expect(ended.stderr).toMatch(/agents\/bad\.yaml:7:\d+: /);
    }
    // The other agents can still be used.
    expect((await run(folder, ['check', 'nginx'])).code).toBe(0);
  });

  it('a configuration that is missing or has an unknown key', async () => {
    const folder = workFolder();
    const missing = await run(folder, ['stats', '--config', 'nowhere.yaml']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('nowhere.yaml');
    writeFileSync(join(folder, 'config.yaml'), 'server:\n  lisen: :2111\n');
    const wrong = await run(folder, ['stats']);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/config\.yaml:2:3: .*lisen.*listen/);
    const isFolder = await run(folder, ['stats', '--config', 'agents']);
    expect(isFolder.code).toBe(1);
    expect(isFolder.stderr).toContain('agents: it is a folder, a file was expected');
  });

  it('a Node without WebAssembly, in which only help works', () => {
    const folder = workFolder();
    const runWithout = (...args: string[]): SpawnSyncReturns<string> =>
      spawnSync(process.execPath, ['--jitless', main, ...args], { cwd: folder, encoding: 'utf8' });
    for (const args of [['serve'], ['load', 'nginx', 'data/samples/nginx.log'], ['check']]) {
      const ended = runWithout(...args);
      expect(ended.status).toBe(1);
      expect(ended.stderr).toMatch(/^logstrata: this Node .* can't run WebAssembly with SIMD.*--jitless/m);
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
    expect(runWithout('--help').status).toBe(0);
  });

  it('a missing data folder, which no command but those that store creates', async () => {
    const folder = workFolder();
    for (const args of [
      ['query', 'nginx'],
      ['stats'],
      ['verify'],
      ['verify', '--repair'],
      ['export', 'nginx', '--format', 'jsonl'],
      ['compact'],
    ]) {
      const ended = await run(folder, [...args, '--data', 'nowhere']);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toContain(`the data folder ${join(folder, 'nowhere')} is not there`);
      expect(existsSync(join(folder, 'nowhere'))).toBe(false);
    }
  });

  it('an export into a missing folder, or under the name of a folder', async () => {
    const folder = workFolder();
    await run(folder, ['load', 'app', 'data/samples/app.log']);
    for (const format of ['jsonl', 'parquet']) {
      const nowhere = await run(folder, ['export', 'app', '--format', format, '--output', 'nowhere/app.out']);
      expect(nowhere.code).toBe(1);
      expect(nowhere.stderr).toContain(
        `can't write nowhere/app.out: the folder ${join(folder, 'nowhere')} is not there`,
      );
      const taken = await run(folder, ['export', 'app', '--format', format, '--output', 'data', '--force']);
      expect(taken.code).toBe(1);
      expect(taken.stderr).toContain('data is a folder: name a file in it');
    }
  });

  itUnless(notLinux, 'a full disk behind standard output', async () => {
    const folder = workFolder();
    await run(folder, ['load', 'app', 'data/samples/app.log']);
    const main = join(root, 'dist/program/server/main.js');
    const script = `'${process.execPath}' '${main}' query app > /dev/full`;
    const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toContain('logstrata: cannot write standard output: the disk is full');
    expect(status).toBe(1);
  });

  it('a data folder that is a file', async () => {
    const folder = workFolder();
    mkdirSync(join(folder, 'x'));
    writeFileSync(join(folder, 'x/data'), '');
    for (const args of [['serve'], ['stats'], ['load', 'nginx', 'data/samples/nginx.log']]) {
      const ended = await run(folder, [...args, '--data', 'x/data']);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toContain('x/data is a file, a folder was expected');
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
  });
});
