import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { openArchive } from '../../engine/index.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { FarSettings } from '../../engine/far/far-transport.js';
import type { FarStats } from '../../engine/maintenance/stats.js';
import { freePort, run, start, type Running } from '../cli/process.js';

const hourMs = 3_600_000;

const agentFile = `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: n
    type: int
  - name: text
file:
  path: '../logs/none\\.log'
  format: json
`;

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
  { name: 'text', type: 'string' },
]);

/** The number of the only record in the newest hour. All others are numbered from 0 on, in the order of their cursors. */
const newest = 1_000_000_000;

/** A real `logstrata serve` on its own folder, which ships records that are loaded beside it. */
export class ShippedLog {
  readonly #folder = mkdtempSync(join(tmpdir(), 'logstrata-shipped-'));
  #process: Running | undefined;
  #url = '';
  #loads = 0;
  /** Number of stored records without the newest one. */
  #loaded = 0;

  constructor(readonly settings: FarSettings) {
    onTestFinished(() => rmSync(this.#folder, { recursive: true, force: true }));
    for (const folder of ['agents', 'logs']) mkdirSync(join(this.#folder, folder));
    writeFileSync(join(this.#folder, 'agents/numbers.yaml'), agentFile);
    const shards = settings.shards.map((replicas) => ({ replicas }));
    // Shipping a large segment takes seconds, and a small one is shipped in most rounds.
    const far = {
      clickhouse: { shards, database: settings.database },
      after: '1s',
      keep_local: '0s',
      rate: '1mb',
    };
    writeFileSync(
      join(this.#folder, 'config.yaml'),
      JSON.stringify({ server: { query_timeout: '2s' }, storage: { far } }),
    );
  }

  get records(): number {
    return this.#loaded + 1;
  }

  /** The number of the record at a place. */
  numberAt(place: number): number {
    return place === this.#loaded ? newest : place;
  }

  /** Loads the newest record, which makes all earlier ones old enough to ship. */
  async loadNewest(): Promise<void> {
    await this.#load([this.#line(newest, Date.now())]);
  }

  /** Loads records as that many segments, each in an hour of its own after the last one. */
  async load(segments: number, rows: number): Promise<void> {
    const files = Array.from({ length: segments }, (_, segment) => {
      const timeMs = Date.now() - 200 * 24 * hourMs + this.#loads++ * hourMs;
      return Array.from({ length: rows }, (_unused, i) =>
        this.#line(this.#loaded + segment * rows + i, timeMs),
      ).join('');
    });
    await this.#load(files);
    this.#loaded += segments * rows;
  }

  #line(n: number, timeMs: number): string {
    return `${JSON.stringify({ time: new Date(timeMs).toISOString(), n, text: `record ${n} Ünïcode` })}\n`;
  }

  async #load(texts: readonly string[]): Promise<void> {
    const paths = texts.map((text, i) => {
      const path = join(this.#folder, `logs/${this.#loads}-${i}.log`);
      writeFileSync(path, text);
      return path;
    });
    const { code, stderr } = await run(this.#folder, ['load', 'numbers', ...paths]);
    expect(code, stderr).toBe(0);
  }

  async start(): Promise<void> {
    const port = await freePort();
    this.#url = `http://127.0.0.1:${port}/api/query/numbers`;
    this.#process = start(this.#folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    await this.#process.shows('serving ');
  }

  async kill(): Promise<void> {
    this.#process?.child.kill('SIGKILL');
    await this.#process?.finished;
  }

  /** The lines of an answer; null if it failed because of a kill. Any other failure fails the test. */
  async answer(query: string): Promise<{ readonly _cursor: string; readonly n: number }[] | null> {
    const whole = await fetch(`${this.#url}?${query}`, { headers: { connection: 'close' } })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => null);
    if (whole === null || whole.status === 503 || whole.status === 504) return null;
    expect(`${whole.status} ${whole.status === 200 ? '' : whole.text}`).toBe('200 ');
    return whole.text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { _cursor: string; n: number });
  }

  /** The manifest's entries on the far tier. */
  async shipped(): Promise<FarStats> {
    const archive = await openArchive(join(this.#folder, 'data/store'), { mode: 'read', role: 'test' });
    try {
      return (await (await archive.agent('numbers', schema)).stats()).far;
    } finally {
      await archive.close();
    }
  }

  /** The output of `logstrata verify --far`. */
  async verified(): Promise<string> {
    const { code, stdout, stderr } = await run(this.#folder, ['verify', '--far', 'numbers']);
    return code === 0 ? stdout : `${code}: ${stdout}${stderr}`;
  }
}
