import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { archiveAt, definitionOf, lineOf, lines, pour, recordsOf, rejectedOf } from './archive.js';
import { gzip, zstd } from './compressed.js';
import { temporaryFolder } from './temporary.js';

async function newStore(): Promise<{ store: AgentStore; data: string }> {
  const data = await temporaryFolder();
  const archive = await archiveAt(data);
  return { store: await archive.agent('app', definitionOf().schema), data };
}

const numbers = async (store: AgentStore): Promise<(number | null)[]> =>
  (await recordsOf(store)).map(({ n }) => n);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Waits until `done` returns true; otherwise the time limit of the test ends it. */
async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe('a stream', () => {
  test('is stored to its end, plain or compressed, including a last line without a line end', async () => {
    const content = lines(0, 1000).trimEnd();
    for (const bytes of [Buffer.from(content), gzip(content), zstd(content)]) {
      const { store } = await newStore();
      const pieces = [bytes.subarray(0, 7), bytes.subarray(7, 5000), bytes.subarray(5000)];
      const summary = await pour(store, { input: Readable.from(pieces) });
      expect(summary).toMatchObject({
        records: 1000,
        contentBytes: content.length,
        commits: 1,
        error: null,
        exitCode: 0,
      });
      expect(await numbers(store)).toEqual(upTo(1000));
      expect(await store.checkpoints()).toEqual([]);
    }
  });

  test('may begin with a byte order mark', async () => {
    const { store } = await newStore();
    const summary = await pour(store, { input: Readable.from([Buffer.from(`\ufeff${lines(0, 3)}`)]) });
    expect(summary).toMatchObject({ records: 3, unreadableValues: 0 });
  });

  test('is committed row group by row group', async () => {
    const { store } = await newStore();
    const input = Readable.from(
      (function* () {
        for (let n = 0; n < 150_000; n += 1000) yield Buffer.from(lines(n, n + 1000));
      })(),
    );
    const commits: number[] = [];
    const summary = await pour(store, { input, onProgress: ({ records }) => commits.push(records) });
    expect(summary).toMatchObject({ records: 150_000, commits: 3 });
    expect(new Set(commits)).toEqual(new Set([0, 65_536, 131_072, 150_000]));
    expect(await numbers(store)).toEqual(upTo(150_000));
  });

  test('keeps nothing of the read bytes in memory', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const { store } = await newStore();
    const input = new Readable({ read() {} });
    let contentBytes = 0;
    const ended = pour(store, { input, onProgress: (progress) => ({ contentBytes } = progress) });
    const pieces: WeakRef<Buffer>[] = [];
    for (let n = 0; n < 40; n++) {
      const piece = Buffer.from(lineOf(n));
      const wantedBytes = contentBytes + piece.length;
      pieces.push(new WeakRef(piece));
      input.push(piece);
      await until(() => Promise.resolve(contentBytes === wantedBytes));
    }
    await setImmediate();
    collectGarbage();
    // The last buffers may still be in use.
    expect(pieces.filter((piece) => piece.deref() !== undefined).length).toBeLessThan(5);
    input.push(null);
    expect(await ended).toMatchObject({ records: 40, exitCode: 0 });
  });

  test('is committed after a pause', async () => {
    const { store } = await newStore();
    const input = new Readable({ read() {} });
    const ended = pour(store, { input, commitMs: 30 });
    input.push(lineOf(0));
    await until(async () => (await numbers(store)).length === 1);
    input.push(lineOf(1) + lineOf(2).slice(0, 10));
    await until(async () => (await numbers(store)).length === 2);
    input.push(lineOf(2).slice(10));
    input.push(null);
    expect(await ended).toMatchObject({ records: 3, exitCode: 0 });
    expect(await numbers(store)).toEqual([0, 1, 2]);
  });

  test('stores its last record of several lines after a pause, unless a line is still being written', async () => {
    const { store } = await newStore();
    const multiline = { start: '^2026', timeoutMs: 100, linesMax: 100, bytesMax: 10_000 };
    const regex = '(?s)^(?P<time>\\S+) (?P<n>\\S+) (?P<text>.*)$';
    const input = new Readable({ read() {} });
    const definition = definitionOf({ multiline, regex });
    const ended = pour(store, { input, commitMs: 1, definition });
    const texts = async () => (await recordsOf(store)).map(({ text }) => text);
    input.push(`${lineOf(0)}  at x\n`);
    await until(async () => (await texts()).length === 1);
    input.push(`${lineOf(1)}  at `);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await numbers(store)).toEqual([0]);
    input.push(`y\n${lineOf(2)}  at z`);
    await until(async () => (await texts()).length === 2);
    input.push(null);
    expect(await ended).toMatchObject({ records: 3, rejected: 0, exitCode: 0 });
    expect(await texts()).toEqual([0, 1, 2].map((n) => `some text of line ${n}\n  at ${'xyz'[n]!}`));
  });

  test('is committed when it is told to stop', async () => {
    for (const first of ['', lines(0, 5), gzip(lines(0, 5)).subarray(0, -9)]) {
      const { store } = await newStore();
      const stop = new AbortController();
      const input = new Readable({ read() {} });
      if (first.length > 0) input.push(first);
      const ended = pour(store, { input, signal: stop.signal });
      await new Promise((resolve) => setTimeout(resolve, 50));
      stop.abort();
      expect(await ended).toMatchObject({ error: null, exitCode: 0 });
      if (typeof first === 'string') expect(await numbers(store)).toEqual(upTo(first === '' ? 0 : 5));
      expect(input.destroyed).toBe(true);
    }
  });

  test('stores its rejected lines with their commit', async () => {
    const { store, data } = await newStore();
    const summary = await pour(store, {
      input: Readable.from([Buffer.from(`${lineOf(0)}nonsense\n${lineOf(1)}`)]),
    });
    expect(summary).toMatchObject({ records: 2, rejected: 1, exitCode: 0 });
    expect(await rejectedOf(data)).toMatchObject([{ file: '-', offset: lineOf(0).length, line: 'nonsense' }]);
    expect((await store.stats()).counters).toMatchObject({ records: 2, rejected: 1 });
  });

  test('without a single record is refused', async () => {
    const { store, data } = await newStore();
    const summary = await pour(store, { input: Readable.from([Buffer.from('other\nlog\n')]) });
    expect(summary).toMatchObject({ records: 0, rejected: 0, exitCode: 1, error: { code: 'invalid' } });
    expect(summary.error!.message).toMatch(/None of its 2 lines.*logstrata check app --line 'other'/);
    expect(await rejectedOf(data)).toEqual([]);
  });

  test('without any byte is not an error', async () => {
    const { store } = await newStore();
    expect(await pour(store, { input: Readable.from([]) })).toMatchObject({
      records: 0,
      exitCode: 0,
      error: null,
    });
  });

  test('that is damaged keeps the records before the damage, and reports it', async () => {
    const { store } = await newStore();
    const whole = gzip(lines(0, 1000), lines(1000, 2000));
    const summary = await pour(store, { input: Readable.from([whole.subarray(0, -20)]) });
    expect(summary).toMatchObject({ exitCode: 1, error: { code: 'damaged' } });
    expect(summary.records).toBeGreaterThanOrEqual(1000);
    expect(await numbers(store)).toEqual(upTo(summary.records));
  });

  test('whose terminal is closed ends with that reason, and with all read records stored', async () => {
    const { store } = await newStore();
    const hangUp = Object.assign(new Error('read EIO'), { code: 'EIO', syscall: 'read' });
    const typed = Readable.from(
      (async function* () {
        yield Buffer.from(lines(0, 3));
        await Promise.reject(hangUp);
      })(),
    );
    const input = Object.assign(typed, { isTTY: true });
    const summary = await pour(store, { input });
    expect(summary).toMatchObject({ records: 3, exitCode: 1, error: { code: 'io' } });
    expect(summary.error!.message).toBe(
      `standard input ended at byte ${lines(0, 3).length}: its terminal was closed`,
    );
    expect(await numbers(store)).toEqual(upTo(3));
  });

  test('stops at a failed commit, and reports how many records are safe', async () => {
    const { store } = await newStore();
    let commits = 0;
    const failing: AgentStore = Object.create(store, {
      append: {
        value: (...args: Parameters<AgentStore['append']>) =>
          commits++ === 0
            ? store.append(...args)
            : Promise.reject(new LogstrataError('disk_full', 'no space left')),
      },
    }) as AgentStore;
    const input = Readable.from(
      (function* () {
        for (let n = 0; ; n += 1000) yield Buffer.from(lines(n, n + 1000));
      })(),
    );
    const summary = await pour(failing, { input });
    expect(summary).toMatchObject({ records: 65_536, commits: 1, exitCode: 1, error: { code: 'disk_full' } });
    expect(summary.error!.message).toBe(
      'no space left. Reading stopped: 65536 records are stored, the 65536 read after them are not',
    );
    expect((await numbers(store)).length).toBe(65_536);
    expect(input.destroyed).toBe(true);
  });
});
