import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run } from './here.js';
import { main, recordsOf, start, workFolder } from './process.js';
import { storedLines } from './stored.js';
import { itUnless, missingProgram } from '../needs.js';

interface Summary {
  records: number;
  rejected: number;
  loaded: number;
  known: number;
  failed: number;
  files: { path: string; outcome: string }[];
}

const all = ['--limit', '100000'];

async function count(folder: string, agent: string): Promise<number> {
  return recordsOf(await storedLines(folder, agent)).length;
}

describe('logstrata load', () => {
  it('stores a file, names known files, and continues with files that have grown', async () => {
    const folder = workFolder();
    const first = await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
    expect(first).toMatchObject({ code: 0 });
    expect(first.stdout).toMatch(
      /10,000 records of 1 file stored in .*: 2\.1 MB of log, .* records\/s, .* on disk/,
    );

    const again = await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
    expect(again.code).toBe(0);
    expect(again.stderr).toContain('known    data/samples/nginx.log');
    expect(await count(folder, 'nginx')).toBe(10_000);

    const line = readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8').split('\n')[0]!;
    appendFileSync(join(folder, 'data/samples/nginx.log'), `${line}\nthis is no such line\n`);
    const grown = await run(folder, ['load', 'nginx', 'data/samples/*.log', '--json']);
    expect(grown.code).toBe(1);
    const summary = JSON.parse(grown.stdout) as Summary;
    expect(summary).toMatchObject({ records: 1, rejected: 1, loaded: 1, failed: 1 });
    expect(summary.files.map(({ path, outcome }) => `${path} ${outcome}`)).toEqual([
      'data/samples/app.log failed',
      'data/samples/nginx.log loaded',
    ]);
    expect(await count(folder, 'nginx')).toBe(10_001);

    expect((await run(folder, ['load', 'nginx', 'data/samples/nginx.log', '--again'])).code).toBe(0);
    expect(await count(folder, 'nginx')).toBe(20_002);
  });

  it('says where rejected lines are stored', async () => {
    const folder = workFolder();
    const lines = readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8').split('\n').slice(0, 3);
    writeFileSync(join(folder, 'x.log'), [lines[0], 'nonsense', lines[1], lines[2], ''].join('\n'));
    const ended = await run(folder, ['load', 'nginx', 'x.log']);
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain('1 line rejected, kept in data/store/nginx/rejected');
    const kept = readdirSync(join(folder, 'data/store/nginx/rejected'));
    expect(kept).toHaveLength(1);
    expect(readFileSync(join(folder, 'data/store/nginx/rejected', kept[0]!), 'utf8')).toContain('nonsense');
  });

  it('loads rejected lines again once the pattern is corrected, and says how many stayed rejected', async () => {
    const folder = workFolder();
    const none = await run(folder, ['load', 'nginx', '--rejected']);
    expect(none).toMatchObject({ code: 0 });
    expect(none.stderr).toContain('agent "nginx" has no rejected lines in data/store');
    const lines = readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8').split('\n').slice(0, 3);
    writeFileSync(join(folder, 'x.log'), `${lines[0]}\nproxy ${lines[1]}\nnonsense\nproxy ${lines[2]}\n`);
    expect((await run(folder, ['load', 'nginx', 'x.log'])).code).toBe(0);
    const still = await run(folder, ['load', 'nginx', '--rejected']);
    expect(still.code).toBe(1);
    expect(still.stderr).toMatch(/kept {5}nginx\/rejected\/.*\.jsonl: 3 lines still rejected/);

    const file = join(folder, 'agents/nginx.yaml');
    const mended = readFileSync(file, 'utf8').replace("regex: '^", "regex: '^(?:proxy )?");
    writeFileSync(file, mended);
    const ended = await run(folder, ['load', 'nginx', '--rejected']);
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain('2 records of 1 file stored');
    expect(ended.stdout).toContain('1 line rejected, kept in data/store/nginx/rejected');
    expect(await count(folder, 'nginx')).toBe(3);
    const kept = readdirSync(join(folder, 'data/store/nginx/rejected'));
    expect(kept).toHaveLength(1);
    expect(
      JSON.parse(readFileSync(join(folder, 'data/store/nginx/rejected', kept[0]!), 'utf8')),
    ).toMatchObject({
      line: 'nonsense',
      file: 'x.log',
    });
    expect((await run(folder, ['verify'])).code).toBe(0);
  });

  it('requires files, standard input or --rejected, and refuses two of them', async () => {
    const folder = workFolder();
    const cases = [
      [[], 'no file is named'],
      [['--rejected', 'x.log'], "--rejected can't be combined with files"],
      [['--rejected', '-'], "--rejected can't be combined with files"],
      [['--rejected', '--again'], "--rejected can't be combined with --again"],
      [['-', 'x.log'], "standard input (-) can't be combined with files"],
      [['-', '--merge'], "standard input (-) can't be combined with --merge"],
    ] as const;
    for (const [words, message] of cases) {
      const ended = await run(folder, ['load', 'nginx', ...words]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain(message);
    }
  });

  it('says that the agent comes first if a file is named in its place', async () => {
    const folder = workFolder();
    writeFileSync(join(folder, 'access.log'), 'x\n');
    const alone = await run(folder, ['load', 'access.log']);
    expect(alone).toMatchObject({ code: 2, stdout: '' });
    expect(alone.stderr).toContain(
      'access.log is a file. The agent comes first: logstrata load AGENT access.log',
    );
    const { code, stderr } = await run(folder, ['load', './access.log', 'access.log']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/no agent ".\/access.log".*Agents in agents: app, nginx/);
    expect(stderr).toContain(
      'access.log is a file. The agent comes first: logstrata load AGENT ./access.log',
    );
    expect((await run(folder, ['load', 'acces.log', 'access.log'])).stderr).not.toContain('is a file');
  });

  it('refuses a file in which no line matches, and says how to investigate', async () => {
    const folder = workFolder();
    const ended = await run(folder, ['load', 'nginx', 'data/samples/app.log']);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/logstrata check nginx --line/);
    expect(await count(folder, 'nginx')).toBe(0);
  });

  it('reports the mistake in a file, stores nothing of it, and loads the others', async () => {
    const folder = workFolder();
    const bytes = gzipSync(readFileSync(join(folder, 'data/samples/nginx.log')));
    writeFileSync(join(folder, 'cut.log.gz'), bytes.subarray(0, bytes.length - 1000));
    const ended = await run(folder, ['load', 'nginx', 'cut.log.gz', 'data/samples/nginx.log']);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/failed {3}.*cut\.log\.gz/);
    expect(ended.stdout).toContain('1 file failed and was not stored');
    expect(ended.stderr).toContain('loaded   data/samples/nginx.log: 10,000 records');
    expect(await count(folder, 'nginx')).toBe(10_000);
    // The truncated file is the beginning of a file that is now known, so the whole file adds nothing.
    writeFileSync(join(folder, 'whole.log.gz'), bytes);
    expect((await run(folder, ['load', 'nginx', 'whole.log.gz'])).stderr).toContain('known    whole.log.gz');
  });

  it('names a missing file, a folder and a pattern without matches before anything is stored', async () => {
    const folder = workFolder();
    for (const file of ['nowhere.log', 'data/samples', 'data/*.nothing']) {
      const ended = await run(folder, ['load', 'nginx', 'data/samples/nginx.log', file]);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toContain(file);
      expect(existsSync(join(folder, 'data/store'))).toBe(false);
    }
  });

  it('stores standard input', async () => {
    const folder = workFolder();
    const ended = await run(folder, ['load', 'app', '-'], readFileSync(join(folder, 'data/samples/app.log')));
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain('2,000 records stored');
    expect(await count(folder, 'app')).toBe(2000);
  });

  itUnless(
    missingProgram('script'),
    'ends in good order when its terminal is closed, with all read records stored',
    async () => {
      const folder = workFolder();
      // The shell outlives its terminal and keeps the signal, so the command sees the end of its input.
      const command = 'trap : HUP; "$NODE" "$MAIN" load app - --json; echo $? >code';
      const terminal = spawn('script', ['-qec', command, '/dev/null'], {
        cwd: folder,
        env: { ...process.env, SHELL: '/bin/sh', NODE: process.execPath, MAIN: main },
      });
      onTestFinished(() => void terminal.kill('SIGKILL'));
      const lines = readFileSync(join(folder, 'data/samples/app.log'), 'utf8').split('\n').slice(0, 10);
      terminal.stdin.write(`${lines.join('\n')}\n`);
      let shown = '';
      terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
      while (!shown.includes(', 10 waiting')) await delay(20);
      terminal.kill('SIGKILL');
      const code = join(folder, 'code');
      while (!existsSync(code) || readFileSync(code, 'utf8') === '') await delay(20);
      expect(readFileSync(code, 'utf8')).toBe('0\n');
      expect(await count(folder, 'app')).toBe(10);
    },
  );

  it('reports once why it ended when no more can be written, and continues later', async () => {
    const folder = workFolder();
    const command = `ulimit -f 20; exec "$NODE" "$MAIN" load nginx data/samples/nginx.log data/samples/app.log`;
    const environment = { ...process.env, NODE: process.execPath, MAIN: main };
    const { status, stderr } = spawnSync('/bin/sh', ['-c', command], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr.match(/the file system does not support files of this size/g)).toHaveLength(1);
    expect(stderr).toContain('data/samples/nginx.log was not stored');
    expect(stderr).toContain('left out data/samples/app.log');
    expect(stderr).toMatch(/Nothing was stored; run the same command again to load the rest\.\n$/);
    expect((await run(folder, ['load', 'nginx', 'data/samples/nginx.log'])).code).toBe(0);
    expect(await count(folder, 'nginx')).toBe(10_000);
  });

  it('merges files in order of time', async () => {
    const folder = workFolder();
    const lines = readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8').trimEnd().split('\n');
    mkdirSync(join(folder, 'logs'));
    const half = (odd: number): string => `${lines.filter((_, i) => i % 2 === odd).join('\n')}\n`;
    writeFileSync(join(folder, 'logs/a.log'), half(0));
    writeFileSync(join(folder, 'logs/b.log'), half(1));
    expect((await run(folder, ['load', 'nginx', 'logs/*.log', '--merge', '--codec', 'zstd'])).code).toBe(0);
    const times = recordsOf((await run(folder, ['query', 'nginx', ...all])).stdout).map(({ time }) =>
      Number(time),
    );
    expect(times).toHaveLength(10_000);
    expect(times.every((time, i) => i === 0 || time >= times[i - 1]!)).toBe(true);
  });

  it('leaves nothing of the current file when it is interrupted, and ends with the exit code of the signal', async () => {
    const folder = workFolder();
    const lines = readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8').split('\n').slice(100, 160);
    // 5 GB of log: however late the test sends its signal, the command is still running.
    const packed = gzipSync(`${lines.join('\n')}\n`.repeat(200));
    writeFileSync(join(folder, 'big.log.gz'), Buffer.concat(Array<Buffer>(2000).fill(packed)));
    copyFileSync(join(folder, 'data/samples/nginx.log'), join(folder, 'a.log'));
    const cases = [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const;
    for (const [signal, code] of cases) {
      const running = start(folder, ['load', 'nginx', 'a.log', 'big.log.gz', '--data', signal]);
      await running.shows('loaded   a.log');
      running.child.kill(signal);
      const ended = await running.finished;
      expect(ended).toMatchObject({ code, signal: null });
      expect(ended.stderr).toContain('left out big.log.gz: it was not stored');
      expect(ended.stderr).toContain('1 file stored and kept');
      const stats = JSON.parse(
        (await run(folder, ['stats', 'nginx', '--json', '--data', signal])).stdout,
      ) as { records: number };
      expect(stats.records).toBe(10_000);
      expect((await run(folder, ['verify', '--data', signal])).code).toBe(0);
    }
  });
});
