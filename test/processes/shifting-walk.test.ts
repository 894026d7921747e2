import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { Random } from '../../bench/random.js';
import { fetchAlone, freePort, recordsOf, run, start, workFolder, type Running } from '../cli/process.js';
import { until } from './numbered-log.js';

const walksWanted = caseCount(6, 1000);
const walkers = 4;
const there = 4000;

const hourMs = 3_600_000;
/** The records' times are spread over these hours, the last of which has ended. */
const hours = 300;
const newestMs = Date.UTC(2026, 5, 1);
/** Retention never removes these records: later loads belong to the last hours. */
const keptHours = { first: 290, last: 60, loaded: 40 };

interface Page {
  readonly cursors: readonly string[];
  readonly numbers: readonly number[];
}

/** A real server that is loaded into, compacted, cut by retention, stopped and killed; its clients retry. */
class ShiftingServer {
  readonly folder = workFolder();
  readonly done = { loads: 0, streams: 0, compactions: 0, stops: 0, kills: 0 };
  written = 0;
  private process!: Running;
  private port = 0;
  private kept = keptHours.first;

  constructor(private readonly random: Random) {
    mkdirSync(join(this.folder, 'logs'));
  }

  async begin(): Promise<void> {
    this.port = await freePort();
    this.define('');
    expect((await this.load(there, hours)).code).toBe(0);
    await this.start();
  }

  private define(retention: string): void {
    writeFileSync(
      join(this.folder, 'agents/numbers.yaml'),
      `fields: [{ name: time, type: time }, { name: n, type: int }, { name: text }]\nfile: { path: 'logs/x', format: json }\n${retention}`,
    );
  }

  private async start(): Promise<void> {
    this.define(`retention: { period: ${Math.floor(this.kept)}h, interval: 1s, grace: 0s }\n`);
    this.process = start(this.folder, ['serve', '--listen', `127.0.0.1:${this.port}`]);
    await this.process.shows('serving ');
  }

  private lines(count: number, strewnHours: number): string {
    let text = '';
    for (let i = 0; i < count; i++) {
      const time = newestMs - 1 - Math.floor(this.random.fraction() * strewnHours * hourMs);
      const n = this.written++;
      text += `{"time":${time},"n":${n},"text":"record ${n}"}\n`;
    }
    return text;
  }

  private load(count: number, strewnHours: number): ReturnType<typeof run> {
    const path = `logs/${this.done.loads++}.log`;
    writeFileSync(join(this.folder, path), this.lines(count, strewnHours));
    return run(this.folder, ['load', 'numbers', path]);
  }

  async disturb(): Promise<void> {
    const { random, done } = this;
    this.kept = Math.max(keptHours.last, this.kept - 3);
    switch (random.below(5)) {
      case 0:
        expect((await this.load(50 + random.below(300), keptHours.loaded)).code).toBe(0);
        return;
      case 1:
        done.streams++;
        expect(
          (await run(this.folder, ['load', 'numbers', '-'], this.lines(200, keptHours.loaded))).code,
        ).toBe(0);
        return;
      case 2:
        done.compactions++;
        expect((await run(this.folder, ['compact', 'numbers'])).code).toBe(0);
        return;
      case 3:
        done.stops++;
        return this.restart('SIGTERM');
      default:
        done.kills++;
        return this.restart('SIGKILL');
    }
  }

  private async restart(signal: NodeJS.Signals): Promise<void> {
    this.process.child.kill(signal);
    await this.process.finished;
    await this.start();
  }

  /** A page, requested again if the answer was incomplete because the server was being stopped. */
  async ask(query: string): Promise<Page> {
    for (;;) {
      const whole = await fetchAlone(`http://127.0.0.1:${this.port}/api/query/numbers?${query}`)
        .then(async (response) => ({ status: response.status, text: await response.text() }))
        .catch(() => null);
      if (whole?.status === 200) {
        const records = recordsOf(whole.text);
        return {
          cursors: records.map(({ _cursor }) => String(_cursor)),
          numbers: records.map(({ n }) => Number(n)),
        };
      }
      if (whole !== null && whole.status !== 503) throw new Error(`${whole.status}: ${whole.text}`);
      await delay(20);
    }
  }

  /** The numbers of all stored records. */
  async everything(): Promise<Set<number>> {
    const found = new Set<number>();
    for (let at = '0000000000000000'; ;) {
      const page = await this.ask(`limit=100000&after=${at}`);
      if (page.cursors.length === 0) return found;
      for (const n of page.numbers) found.add(n);
      at = page.cursors.at(-1)!;
    }
  }
}

interface Filter {
  readonly words: string;
  readonly matches: (n: number) => boolean;
}

const filters: readonly Filter[] = [
  { words: '', matches: () => true },
  { words: '&n__gte=1500', matches: (n) => n >= 1500 },
  { words: '&text__suffix=7', matches: (n) => n % 10 === 7 },
  { words: '&text__like=RECORD%201&n__lt=3000', matches: (n) => String(n).startsWith('1') && n < 3000 },
];

interface Walked {
  /** Records that had been stored when the walk began. */
  readonly before: number;
  readonly filter: Filter;
  readonly seen: readonly number[];
}

/** All pages from the first record on, or backwards from the newest. */
async function walk(server: ShiftingServer, random: Random, before: number): Promise<Walked> {
  const filter = filters[random.below(filters.length)]!;
  const isForward = random.below(2) === 0;
  const limit = 100 + random.below(900);
  const seen: number[] = [];
  let at = isForward ? '&after=0000000000000000' : '';
  for (;;) {
    const { cursors, numbers } = await server.ask(`limit=${limit}${at}${filter.words}`);
    if (cursors.length === 0) return { before, filter, seen };
    expect(cursors).toEqual([...new Set(cursors)].sort());
    const last = at.slice(-16);
    if (at !== '') expect(isForward ? cursors[0]! > last : cursors.at(-1)! < last).toBe(true);
    seen.push(...numbers);
    at = isForward ? `&after=${cursors.at(-1)!}` : `&before=${cursors[0]!}`;
  }
}

it(`page walks over HTTP miss and repeat nothing while the server is loaded into, compacted, cut by retention and restarted (seed ${seed})`, async () => {
  const random = new Random(seed);
  const server = new ShiftingServer(random);
  await server.begin();
  const walked: Walked[] = [];
  let begun = 0;
  let stored = server.written;
  const walkAll = Array.from({ length: walkers }, async () => {
    while (begun < walksWanted) {
      begun++;
      walked.push(await walk(server, random, stored));
    }
  });
  let walking = true;
  const walks = Promise.all(walkAll).finally(() => (walking = false));
  let disturbed = 0;
  for (; walking || disturbed < 6; disturbed++) {
    await server.disturb();
    stored = server.written;
  }
  await walks;
  let left = new Set<number>();
  // If every server was ended at once, retention has not run yet.
  await until(async () => {
    left = await server.everything();
    return left.size < server.written;
  }, 'retention takes something');
  const total = { walks: walked.length, there: 0, missed: 0, repeated: 0, wrong: 0 };
  for (const { before, filter, seen } of walked) {
    const distinct = new Set(seen);
    total.repeated += seen.length - distinct.size;
    total.wrong += seen.filter((n) => !filter.matches(n)).length;
    for (const n of left) {
      if (n >= before || !filter.matches(n)) continue;
      total.there++;
      if (!distinct.has(n)) total.missed++;
    }
  }
  const gone = server.written - left.size;
  process.stdout.write(
    `page walks over HTTP: ${JSON.stringify({ ...total, written: server.written, gone })}, ${JSON.stringify(server.done)} (seed ${seed})\n`,
  );
  expect(total).toMatchObject({ missed: 0, repeated: 0, wrong: 0 });
  expect(total.walks).toBeGreaterThanOrEqual(walksWanted);
  // All acknowledged records are there unless retention removed them, which keeps the latest loads.
  for (let n = there; n < server.written; n++) if (!left.has(n)) expect.fail(`record ${n} is lost`);
});
