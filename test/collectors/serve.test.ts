import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Random } from '../../bench/random.js';
import { freePort, recordsOf, run, start, workFolder, type Running } from '../cli/process.js';

const long = process.env['LOGSTRATA_LONG'] === '1';
const kills = long ? 1000 : 4;
const seed = Number(process.env['LOGSTRATA_SEED'] ?? Date.now() % 1_000_000);

const agentFile = `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: n
    type: int
file:
  path: '../logs/app\\.log'
  format: json
`;

class Service {
  readonly folder = workFolder();
  readonly log = join(this.folder, 'logs/app.log');
  written = 0;
  private generations = 0;
  process!: Running;
  url = '';

  constructor() {
    mkdirSync(join(this.folder, 'logs'));
    writeFileSync(join(this.folder, 'agents/numbers.yaml'), agentFile);
  }

  async start(): Promise<void> {
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}/api/query/numbers`;
    this.process = start(this.folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    await this.process.shows('serving ');
  }

  write(count: number): void {
    let text = '';
    for (let i = 0; i < count; i++) {
      const time = new Date(Date.now()).toISOString();
      text += `${JSON.stringify({ time, n: this.written++ })}\n`;
    }
    appendFileSync(this.log, text);
  }

  rotate(): void {
    renameSync(this.log, `${this.log}.${++this.generations}`);
  }

  async numbers(query: string): Promise<{ cursor: string; n: number }[]> {
    const response = await fetch(`${this.url}?${query}`);
    return recordsOf(await response.text()).map(({ _cursor, n }) => ({
      cursor: String(_cursor),
      n: Number(n),
    }));
  }
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

it('a client that follows sees each line once, through rotations', async () => {
  const service = new Service();
  await service.start();
  const seen: number[] = [];
  let after = '0000000000000000';
  for (let round = 0; round < 30; round++) {
    service.write(10);
    if (round % 7 === 3) service.rotate();
    const page = await service.numbers(`after=${after}&limit=1000`);
    seen.push(...page.map(({ n }) => n));
    after = page.at(-1)?.cursor ?? after;
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  while (seen.length < service.written) {
    const page = await service.numbers(`after=${after}&limit=1000`);
    seen.push(...page.map(({ n }) => n));
    after = page.at(-1)?.cursor ?? after;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(seen.toSorted((a, b) => a - b)).toEqual(range(service.written));
  const shown = await run(service.folder, ['stats', 'numbers', '--json']);
  expect(JSON.parse(shown.stdout)).toMatchObject({
    collecting: { records: service.written, rejected: 0, lagBytes: 0, paused: null },
  });
  service.process.child.kill('SIGTERM');
  const { code, stderr } = await service.process.finished;
  expect(code).toBe(0);
  // All that it says there is structured.
  const events = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(events).toContainEqual(expect.objectContaining({ agent: 'numbers', fields: 2 }) as object);
  expect(events).toContainEqual(expect.objectContaining({ signal: 'SIGTERM', level: 30 }) as object);
});

it(`kill -9 while logs are followed and rotated loses nothing and repeats nothing (seed ${seed})`, async () => {
  const service = new Service();
  const random = new Random(seed);
  for (let kill = 0; kill < kills; kill++) {
    await service.start();
    const until = performance.now() + 400 * random.fraction();
    while (performance.now() < until) {
      service.write(1 + random.below(200));
      if (random.below(12) === 0) service.rotate();
      await new Promise((resolve) => setTimeout(resolve, 10 * random.fraction()));
    }
    service.process.child.kill('SIGKILL');
    await service.process.finished;
  }
  await service.start();
  const count = async (): Promise<number> => (await service.numbers('limit=1000000')).length;
  while ((await count()) < service.written) await new Promise((resolve) => setTimeout(resolve, 100));
  const stored = (await service.numbers('limit=1000000')).map(({ n }) => n);
  expect(stored.toSorted((a, b) => a - b)).toEqual(range(service.written));
  expect(service.written).toBeGreaterThan(0);
});
