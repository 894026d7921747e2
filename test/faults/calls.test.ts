import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { isLong, seed } from '../cases.js';
import { Random } from '../../bench/random.js';
import { changingKinds, FailingCalls, type CallKind, type Fault } from './failing-calls.js';
import { missingCompiler } from './native.js';
import { NumberedService, summarise, type Outcome } from './numbered-service.js';
import { itUnless } from '../needs.js';

interface Failure {
  readonly title: string;
  readonly kinds: readonly CallKind[];
  readonly fault: Fault;
  /** Number of consecutive calls that fail. */
  readonly count: number;
}

const failures: readonly Failure[] = [
  { title: 'kill -9 before', kinds: changingKinds, fault: { action: 'kill' }, count: 1 },
  { title: 'kill -9 in the middle of', kinds: ['write'], fault: { action: 'killInWrite' }, count: 1 },
  { title: 'EIO at', kinds: ['write'], fault: { action: 'fail', error: 'EIO' }, count: 1 },
  { title: 'EIO at', kinds: ['sync'], fault: { action: 'fail', error: 'EIO' }, count: 1 },
  { title: 'EIO at', kinds: ['name', 'remove'], fault: { action: 'fail', error: 'EIO' }, count: 1 },
  { title: 'ENOSPC (bytes) from', kinds: ['write'], fault: { action: 'fail', error: 'ENOSPC' }, count: 12 },
  { title: 'ENOSPC (inodes) from', kinds: ['create'], fault: { action: 'fail', error: 'ENOSPC' }, count: 12 },
  { title: 'EMFILE from', kinds: ['open'], fault: { action: 'fail', error: 'EMFILE' }, count: 6 },
];

/** There are more calls of each kind than this. */
const surelyThere = 15;

/** A service whose calls fail by plan. If that ends it or prevents its start, it is started again once. */
class TriedService {
  readonly service = new NumberedService();
  readonly calls = new FailingCalls(this.service.folder);
  private restarts = 0;

  constructor() {
    // A query that needs a file which cannot be opened fails with an error.
    this.service.client.excused.add(500);
  }

  async start(): Promise<void> {
    await this.service.begin(this.calls.environment);
    await this.service.process!.shows('serving ').catch(() => this.startAgain());
  }

  private async startAgain(): Promise<void> {
    const { code, signal, stderr } = await this.service.process!.finished;
    // It ended because of the planned fault and nothing else, with a message if it could print one.
    expect(this.calls.hits, stderr).toBeGreaterThan(0);
    expect(signal === 'SIGKILL' || code === 1, `${code} ${signal} ${stderr}`).toBe(true);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(++this.restarts).toBe(1);
    this.calls.end();
    await this.service.start(this.calls.environment);
  }

  private async catchUp(): Promise<void> {
    while (!(await this.service.catchUp())) await this.startAgain();
  }

  private async stop(): Promise<void> {
    const { code, stderr } = await this.service.stop();
    expect(stderr).not.toMatch(/\n\s+at /);
    if (code !== 0) expect(this.calls.hits, `${code} ${stderr}`).toBeGreaterThan(0);
  }

  /** The steps of a service on the disk: hot files started, appended to, sealed, ended and continued. */
  async everyday(): Promise<Outcome> {
    const { program } = this.service;
    await this.start();
    program.write(10);
    await this.catchUp();
    program.rename();
    program.write(10);
    await this.catchUp();
    await this.stop();
    program.copyAndTruncate();
    program.write(10);
    this.service.changeFields();
    await this.start();
    program.compress();
    program.write(10);
    await this.catchUp();
    return this.service.outcome();
  }
}

/** Makes the call number `at` fail once. Returns how often it did. */
async function failAt({ kinds, fault, count }: Failure, at: number): Promise<Outcome & { hits: number }> {
  const tried = new TriedService();
  tried.calls.plan(kinds, fault, { at, count });
  const outcome = await tried.everyday();
  await tried.service.stop();
  return { ...outcome, hits: tried.calls.hits };
}

/** Tests the given calls, and returns how many calls there were. */
async function tryCalls(failure: Failure, next: (at: number, hits: number) => number | null): Promise<void> {
  const { title, kinds } = failure;
  let written = 0;
  let runs = 0;
  let hits = 1;
  for (let at = next(0, hits); at !== null; at = next(at, hits)) {
    const outcome = await failAt(failure, at);
    expect({ at, ...outcome }).toMatchObject({ at, lost: 0, repeated: 0 });
    ({ hits } = outcome);
    written += outcome.written;
    runs++;
  }
  summarise(`${title} a call of ${kinds.join(', ')}`, runs, { written, lost: 0, repeated: 0 });
}

for (const failure of failures) {
  const { title, kinds } = failure;
  const promise = `${title} a call of ${kinds.join(', ')}: loses nothing and repeats nothing (seed ${seed})`;
  itUnless(missingCompiler, promise, async () => {
    // In the long run, each call is the first to fail once, until there are no more calls.
    if (isLong) return tryCalls(failure, (at, hits) => (hits === 0 ? null : at + 1));
    const only = 1 + new Random(seed).below(surelyThere);
    return tryCalls(failure, (at, hits) => {
      expect(hits).toBeGreaterThan(0);
      return at === 0 ? only : null;
    });
  });
}

itUnless(
  missingCompiler,
  'shows nothing that could not be made durable, and all of it once it could',
  async () => {
    const tried = new TriedService();
    const { service, calls } = tried;
    await tried.start();
    service.program.write(100);
    await service.catchUp();
    for (let round = 0; round < 3; round++) {
      const seen = service.client.numbers.length;
      calls.plan(['sync'], { action: 'fail', error: 'EIO' }, { at: 1, count: 1_000_000 });
      service.program.write(100);
      while (calls.hits < 2) {
        await service.poll();
        await delay(5);
      }
      await service.poll();
      expect(service.client.numbers).toHaveLength(seen);
      // The process sees data that was written and not synced, but a new process must not rely on it.
      if (round === 1) await service.kill();
      calls.end();
      if (round === 1) await service.start(calls.environment);
      await service.catchUp();
    }
    expect(await service.outcome()).toEqual({ written: 400, lost: 0, repeated: 0 });
  },
);
