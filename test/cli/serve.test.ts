import { createServer } from 'node:net';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadUws } from '../../server/http/uws-binary.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';
import { anyPorts } from './serving.js';

describe('logstrata serve', () => {
  it('prints its settings, answers, and stops in good order', async () => {
    const folder = workFolder();
    await run(folder, ['load', 'app', 'data/samples/app.log']);
    const found = loadUws();
    // uWebSockets.js has no binary for some systems.
    const auto = 'uws' in found ? '(uws)' : '(node)';
    for (const [asked, transport] of [
      ['auto', auto],
      ['node', '(node)'],
      ...('uws' in found ? [['uws', '(uws)']] : []),
    ]) {
      const port = await freePort();
      const args = ['serve', '--no-follow', '--listen', `127.0.0.1:${port}`, '--transport', asked!];
      const server = start(folder, args);
      await server.shows('serving ');
      const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/app?limit=3`);
      expect(recordsOf(await response.text())).toHaveLength(3);
      server.child.kill('SIGTERM');
      const ended = await server.finished;
      expect(ended.code).toBe(0);
      expect(ended.stdout).toContain(`agents   ${join(folder, 'agents')}`);
      expect(ended.stdout).toContain(`data     ${join(folder, 'data/store')}`);
      expect(ended.stdout).toContain('agent    app: 7 fields, 2,000 records, 2026-11-17');
      expect(ended.stdout).toContain('agent    nginx: 12 fields, 0 records');
      expect(ended.stdout).toContain(`http://127.0.0.1:${port}/api/query/<agent>  ${transport}`);
    }
  });

  it('tells of many agents in a few lines, and names those that are damaged', async () => {
    const folder = workFolder();
    rmSync(join(folder, 'agents'), { recursive: true });
    mkdirSync(join(folder, 'agents'));
    mkdirSync(join(folder, 'logs'));
    const lines = '{"time":1795000000000,"text":"one"}\n{"time":1795086400000,"text":"two"}\n';
    for (let i = 100; i < 150; i++) {
      const fields = 'fields: [{ name: time, type: time }, { name: text }]\n';
      const agent = `${fields}file: { path: '../logs/a${i}\\.log', format: json }\n`;
      writeFileSync(join(folder, `agents/a${i}.yaml`), agent);
    }
    for (const name of ['a100', 'a149']) await run(folder, ['load', name, '-'], lines);
    await run(folder, ['load', 'a120', '-'], lines);
    await run(folder, ['compact', 'a120']);
    const place = join(folder, 'data/store/a120');
    for (const name of readdirSync(place)) if (name.startsWith('manifest-')) rmSync(join(place, name));
    const server = start(folder, ['serve', ...anyPorts]);
    await server.shows('collecting the logs of these agents');
    server.child.kill('SIGTERM');
    const { stdout, stderr } = await server.finished;
    expect(stdout).toContain('agents   50: 4 records, 2026-11-18 11:06:40 to 2026-11-19 11:06:40 UTC');
    expect(stdout).toContain('agent    a120: its records are DAMAGED and not served');
    expect(stdout).not.toContain('a100');
    expect(stdout.split('\n').length).toBeLessThan(12);
    expect(stderr).not.toContain('no log exists yet');
    // So are many mistakes.
    for (let i = 100; i < 150; i++) writeFileSync(join(folder, `agents/a${i}.yaml`), 'fields: none\n');
    const refused = await run(folder, ['serve', ...anyPorts]);
    expect(refused.code).toBe(1);
    expect(refused.stderr.trimEnd().split('\n').length).toBeLessThan(25);
    expect(refused.stderr).toMatch(/and \d+ more: "logstrata check" shows all\n$/);
  });

  it('reports a busy port', async () => {
    const folder = workFolder();
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const ended = await run(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(`127.0.0.1:${port}`);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
  });

  it('refuses a second server on the same data, and names the first', async () => {
    const folder = workFolder();
    const first = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
    await first.shows('serving ');
    const second = await run(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`process ${first.child.pid}`);
    expect(second.stderr).toContain(join(folder, 'data/store'));
  });

  it('shows the retention periods, and the notes on agent files once', async () => {
    const folder = workFolder();
    const app = join(folder, 'agents/app.yaml');
    writeFileSync(
      app,
      `${readFileSync(app, 'utf8').replace('file:', 'file:\n  rotate: { method: truncate }')}retention: { period: 7d }\n`,
    );
    const server = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
    await server.shows('serving ');
    server.child.kill('SIGINT');
    const { stdout } = await server.finished;
    const lines = stdout.split('\n');
    expect(lines.filter((line) => line.includes('keeps records for 7 d, looks every 1 h'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('there is no retention.period'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('file.rotate has no size'))).toHaveLength(1);
  });

  it('answers with records that are loaded beside it, within a second', async () => {
    const folder = workFolder();
    const port = await freePort();
    const server = start(folder, ['serve', '--no-follow', '--listen', `127.0.0.1:${port}`]);
    await server.shows('serving ');
    const count = async (): Promise<number> => {
      const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/app?limit=5000`);
      return recordsOf(await response.text()).length;
    };
    expect(await count()).toBe(0);
    expect((await run(folder, ['load', 'app', 'data/samples/app.log'])).code).toBe(0);
    // The loading process has ended, so the second has begun; polling shows the state at its end at the latest.
    const deadlineMs = performance.now() + 1000;
    let seen = 0;
    for (let askedMs = 0; seen < 2000 && askedMs < deadlineMs;) {
      askedMs = performance.now();
      seen = await count();
    }
    expect(seen).toBe(2000);
    const stored = await run(
      folder,
      ['load', 'app', '-'],
      readFileSync(join(folder, 'data/samples/app.log')),
    );
    expect(stored.code).toBe(0);
    expect(await count()).toBe(4000);
    expect(server.child.exitCode).toBeNull();
  });

  it('stores the records of an agent that was added after its start', async () => {
    const folder = workFolder();
    const server = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
    await server.shows('serving ');
    const agents = join(folder, 'agents');
    writeFileSync(join(agents, 'later.yaml'), readFileSync(join(agents, 'app.yaml')));
    const loaded = await run(folder, ['load', 'later', 'data/samples/app.log']);
    expect(loaded).toMatchObject({ code: 0 });
    const asked = await run(folder, ['query', 'later', '--limit', '5000']);
    expect(recordsOf(asked.stdout)).toHaveLength(2000);
  });
});

describe('logstrata demo', () => {
  it('loads the samples, prints example commands that return records, and only starts the second time', async () => {
    const folder = workFolder();
    for (const time of [1, 2]) {
      const port = await freePort();
      const demo = start(folder, ['demo', '--listen', `127.0.0.1:${port}`]);
      await demo.shows('Ctrl-C');
      const urls = [...demo.output().matchAll(/^ {2}curl '([^']+)'$/gm)].map((match) => match[1]!);
      expect(urls).toHaveLength(3);
      for (const url of urls) {
        const response = await fetchAlone(url);
        expect(response.status).toBe(200);
        expect(recordsOf(await response.text()).length).toBeGreaterThan(0);
      }
      demo.child.kill('SIGINT');
      const ended = await demo.finished;
      expect(ended.code).toBe(0);
      expect(ended.stderr).not.toContain('known');
      expect(ended.stdout.includes('loaded   10,000 records')).toBe(time === 1);
      expect(ended.stdout).toContain('agent    nginx: 12 fields, 10,000 records');
    }
    expect(existsSync(join(folder, 'data/store'))).toBe(true);
  });
});
