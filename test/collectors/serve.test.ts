import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fetchAlone, freePort, recordsOf, run, start, workFolder, type Running } from '../cli/process.js';

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
    const response = await fetchAlone(`${this.url}?${query}`);
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
  // Every line of the output there is structured.
  const events = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(events).toContainEqual(expect.objectContaining({ agent: 'numbers', fields: 2 }) as object);
  expect(events).toContainEqual(expect.objectContaining({ signal: 'SIGTERM', level: 30 }) as object);
});
