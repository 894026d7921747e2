import { appendFileSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder, type Running } from './process.js';

const input = "file: { path: '../logs/shop\\.log', format: json }\n";
const first = `fields: [{ name: n, type: int }, { name: code, type: int }, { name: text }]\n${input}`;

class Service {
  readonly folder = workFolder();
  process!: Running;
  private url = '';
  private lines = 0;

  constructor(config = '') {
    mkdirSync(join(this.folder, 'logs'));
    this.define('shop', first);
    if (config !== '') writeFileSync(join(this.folder, 'config.yaml'), config);
  }

  async start(): Promise<void> {
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}/api/query`;
    this.process = start(this.folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    await this.process.shows('serving ');
  }

  define(agent: string, text: string): void {
    writeFileSync(join(this.folder, `agents/${agent}.yaml`), text);
  }

  /** Sends SIGHUP, and waits until the server has reloaded. */
  async reload(counts: string): Promise<void> {
    this.process.child.kill('SIGHUP');
    await this.process.shows(counts);
  }

  write(fields: object): void {
    appendFileSync(join(this.folder, 'logs/shop.log'), `${JSON.stringify({ n: ++this.lines, ...fields })}\n`);
  }

  /** A request whose answer the caller reads piece by piece. */
  begin(words: string): Promise<Response> {
    return fetchAlone(`${this.url}/shop?${words}`);
  }

  async status(agent: string): Promise<number> {
    return (await fetchAlone(`${this.url}/${agent}`)).status;
  }

  async query(words = ''): Promise<Record<string, string | number | null>[]> {
    const response = await fetchAlone(`${this.url}/shop?${words}`);
    expect(response.status).toBe(200);
    return recordsOf(await response.text());
  }

  /** The records, once those of all lines are stored. */
  async records(): Promise<Record<string, string | number | null>[]> {
    for (;;) {
      const records = await this.query('limit=1000');
      if (records.length >= this.lines) return records;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  async stop(): Promise<void> {
    this.process.child.kill('SIGTERM');
    expect((await this.process.finished).code).toBe(0);
  }
}

describe('SIGHUP', () => {
  it('adds, changes and removes fields of an agent with records, and keeps their cursors', async () => {
    const service = new Service();
    await service.start();
    service.write({ code: 200, text: 'one' });
    const [before] = await service.records();
    service.define(
      'shop',
      `fields: [{ name: n, type: int }, { name: code, type: string }, { name: host }]\n${input}`,
    );
    await service.reload('"changed":1,"removed":0,"refused":0');
    service.write({ code: 'E7', host: 'web1' });
    const records = await service.records();
    expect(records).toEqual([
      { _cursor: before!['_cursor'], n: 1, code: '200', host: null },
      { _cursor: expect.any(String) as string, n: 2, code: 'E7', host: 'web1' },
    ]);
    expect(await service.query('code__exact=200')).toEqual([records[0]]);
    // The values of a removed field are back when the field is, and values that do not fit its type are missing.
    service.define(
      'shop',
      `fields: [{ name: n, type: int }, { name: code, type: int }, { name: text }]\n${input}`,
    );
    service.process.child.kill('SIGHUP');
    for (let shown: unknown = null; shown !== 'one';) {
      const [record] = await service.query();
      shown = record!['text'];
    }
    expect((await service.records()).map(({ code, text }) => ({ code, text }))).toEqual([
      { code: 200, text: 'one' },
      { code: null, text: null },
    ]);
    await service.stop();
    // The same holds after a restart, and in other processes.
    const read = await run(service.folder, ['query', 'shop']);
    expect(recordsOf(read.stdout).map(({ n, code }) => ({ n, code }))).toEqual([
      { n: 1, code: 200 },
      { n: 2, code: null },
    ]);
    const verified = await run(service.folder, ['verify', 'shop']);
    expect(verified.code).toBe(0);
  });

  it('changes no answer that has begun, and fails no query', async () => {
    const service = new Service();
    const lines = 60_000;
    const text = Array.from({ length: lines }, (_, n) => JSON.stringify({ n, code: 200, text: `line ${n}` }));
    writeFileSync(join(service.folder, 'many.log'), `${text.join('\n')}\n`);
    expect((await run(service.folder, ['load', 'shop', 'many.log'])).code).toBe(0);
    await service.start();
    const response = await service.begin('limit=100000');
    const reader = response.body!.getReader();
    const pieces = [(await reader.read()).value!];
    const statuses = new Set<number>();
    let asking = true;
    const asked = (async () => {
      while (asking) {
        const { status, headers } = await service.begin('code__exact=200&limit=1');
        // The type of the field decides which of the two operators it has.
        statuses.add(status);
        if (status === 503) expect(headers.get('Retry-After')).not.toBeNull();
      }
    })();
    service.define('shop', `fields: [{ name: text }, { name: code }]\n${input}`);
    await service.reload('"changed":1,"removed":0,"refused":0');
    for (let read = await reader.read(); !read.done; read = await reader.read()) pieces.push(read.value);
    asking = false;
    await asked;
    const records = recordsOf(Buffer.concat(pieces).toString('utf8'));
    expect(records).toHaveLength(lines);
    const keys = new Set(records.map((record) => Object.keys(record).join(' ')));
    expect([...keys]).toEqual(['_cursor n code text']);
    for (const status of statuses) expect([200, 400, 503]).toContain(status);
    expect((await service.query('code__exact=200&limit=1'))[0]).toMatchObject({
      text: `line ${lines - 1}`,
      code: '200',
    });
    await service.stop();
  });

  it('refuses a broken file, adds and removes agents, and continues with the others', async () => {
    const service = new Service();
    service.define('old', first.replace('shop', 'old'));
    await service.start();
    service.write({ text: 'one' });
    await service.records();
    service.define('shop', 'fields: [{ name: n, type: txt }]\n' + input);
    service.define('new', 'system: { interval: 1s }\n');
    unlinkSync(join(service.folder, 'agents/old.yaml'));
    await service.reload('"added":1,"changed":0,"removed":1,"refused":1');
    await service.process.shows('agents/shop.yaml:1:27: type must be int, float, string, time or bool');
    await service.process.shows('it stays unchanged');
    expect(await service.status('new')).toBe(200);
    expect(await service.status('old')).toBe(404);
    service.write({ text: 'two' });
    expect((await service.records()).map(({ text }) => text)).toEqual(['one', 'two']);
    await service.stop();
  });
});

it('is not needed for a watched folder', async () => {
  const service = new Service('watch: true\n');
  await service.start();
  service.define('late', 'system: {}\n');
  await service.process.shows('"added":1');
  expect(await service.status('late')).toBe(200);
  await service.stop();
});
