import { mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { WakeUp } from '../../agents/collect/logs/wake-up.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { writeParquet } from '../foreign/write-parquet.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

const day = Date.UTC(2025, 0, 1);

describe('attached files that cannot be indexed', () => {
  it('are reported once and skipped, and the others are indexed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-attaching-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const agentFile =
      "archive: { path: '*.parquet' }\nfields: [{ name: time, type: time, unit: ms }, { name: message }]\n";
    const definition = parseAgentFile(agentFile, join(folder, 'web.yaml'));
    const { schema } = definition;
    const pathOf = (file: number): string => join(folder, `${file}.parquet`);
    for (let file = 0; file < 8; file++) {
      const rows = Array.from({ length: 50 }, (_, i) => [
        BigInt(day + 3_600_000 * file + i),
        `message ${file}/${i}`,
      ]);
      await writeParquet(pathOf(file), schema, rows, { rowGroupRows: 50, pageBytes: 10_000 });
    }
    // The newest six, which are more than one round tries.
    for (let file = 2; file < 8; file++) damage(pathOf(file), `message ${file}/`);
    let nowMs = Date.now();
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    const told: string[] = [];
    const attaching = new ArchiveAttaching({
      definition,
      archive: definition.archive!,
      store,
      dataFolder: undefined,
      log: { info: () => {}, warn: () => {}, error: (_facts, message) => told.push(message) },
      now: () => nowMs,
      redefine: () => Promise.resolve(),
    });
    const stop = new AbortController();
    const wakeUp = new WakeUp();
    const running = attaching.run(stop.signal, wakeUp);
    try {
      await expect.poll(() => attaching.status().filesToIndex, { timeout: 9000 }).toBe(0);
      expect((await store.stats()).attached).toMatchObject({ files: 8, filesIndexed: 2 });
      expect(told).toHaveLength(6);
      for (const message of told) expect(message).toContain("can't be indexed: ");
      expect(attaching.status()).toMatchObject({ problems: 6, paused: null });
      // One file is repaired and tried again later; another is missing, which is reported as a problem.
      nowMs += 700_000;
      damage(pathOf(2), `message 2/`);
      rmSync(pathOf(3));
      wakeUp.call();
      await expect.poll(async () => (await store.stats()).attached.filesIndexed, { timeout: 9000 }).toBe(3);
      await expect.poll(() => attaching.status().problems).toBe(5);
      expect(told).toHaveLength(7);
      expect(told[6]).toContain('3.parquet does not exist any more');
    } finally {
      stop.abort();
      wakeUp.call();
      await running;
      await archive.close();
    }
  });
});

describe('files whose footers are equal', () => {
  it('have records of their own, and are recognised when they exchange their names', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-attaching-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const agentFile =
      "archive: { path: '**/*.parquet' }\nfields: [{ name: time, type: time, unit: ms }, { name: n, type: int }]\n";
    const definition = parseAgentFile(agentFile, join(folder, 'web.yaml'));
    const { schema } = definition;
    const pathOf = (file: number): string => join(folder, `${file}.parquet`);
    const footers = new Set<string>();
    for (let file = 0; file < 3; file++) {
      const rows = Array.from({ length: 40 }, (_, i) => [
        BigInt(day + 3_600_000 * file + i),
        BigInt(1000 * file + i),
      ]);
      await writeParquet(pathOf(file), schema, rows, { rowGroupRows: 20, pageBytes: 10_000, isPlain: true });
      utimesSync(pathOf(file), 1_700_000_000, 1_700_000_000);
      const bytes = readFileSync(pathOf(file));
      footers.add(bytes.subarray(bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)).toString('hex'));
    }
    expect(footers.size).toBe(1);
    const directory = new MemoryDirectory();
    let archive = await openOn(directory, () => day + 1e9);
    const open = async (): Promise<ArchiveAttaching> =>
      new ArchiveAttaching({
        definition,
        archive: definition.archive!,
        store: await archive.agent('web', schema),
        dataFolder: undefined,
        log: { info: () => {}, warn: () => {}, error: () => {} },
        now: () => day + 1e9,
        redefine: () => Promise.resolve(),
      });
    const { signal } = new AbortController();
    const records = async (): Promise<string> => answer(await archive.agent('web'));
    let attaching = await open();
    expect(await attaching.round(signal)).toMatchObject({ attached: 3, rows: 120, problems: [] });
    const before = await records();
    const exchange = (): void => {
      renameSync(pathOf(0), join(folder, 'other'));
      renameSync(pathOf(1), pathOf(0));
      renameSync(join(folder, 'other'), pathOf(1));
    };
    // Nothing but the inode numbers has changed. The same server notices it, and so does one that is started later.
    exchange();
    expect(await attaching.round(signal)).toMatchObject({ attached: 0, moved: 2, problems: [] });
    expect(await records()).toBe(before);
    exchange();
    await archive.close();
    archive = await openOn(directory, () => day + 1e9);
    await expect(records()).rejects.toThrow('is not the file that was attached: its footer differs');
    attaching = await open();
    expect(await attaching.round(signal)).toMatchObject({ attached: 0, moved: 2, problems: [] });
    expect(await records()).toBe(before);
    await archive.close();
  });

  it.each(['fail', 'replace'])(
    'are told apart by their values where one replaces the other, also with equal bounds (%s)',
    async (changed) => {
      const folder = mkdtempSync(join(tmpdir(), 'logstrata-attaching-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const agentFile = `archive: { path: '*.parquet', changed: ${changed} }\nfields: [{ name: time, type: time, unit: ms }, { name: n, type: int }]\n`;
      const definition = parseAgentFile(agentFile, join(folder, 'web.yaml'));
      const path = join(folder, '1.parquet');
      const write = async (from: number): Promise<void> => {
        const inner = Array.from({ length: 38 }, (_, i) => from + i);
        const rows = [0, ...inner, 9999].map((n, i) => [BigInt(day + i), BigInt(n)]);
        await writeParquet(path, definition.schema, rows, {
          rowGroupRows: 40,
          pageBytes: 10_000,
          isUncompressed: true,
        });
      };
      await write(1000);
      const { length } = readFileSync(path);
      const archive = await openOn(new MemoryDirectory(), () => day + 1e9);
      const store = await archive.agent('web', definition.schema);
      const attaching = new ArchiveAttaching({
        definition,
        archive: definition.archive!,
        store,
        dataFolder: undefined,
        log: { info: () => {}, warn: () => {}, error: () => {} },
        now: () => day + 1e9,
        redefine: () => Promise.resolve(),
      });
      const { signal } = new AbortController();
      await attaching.round(signal);
      await store.indexAttached({});
      await write(5000);
      utimesSync(path, 1_700_000_000, 1_700_000_000);
      expect(readFileSync(path)).toHaveLength(length);
      const { moved, problems } = await attaching.round(signal);
      expect(moved).toBe(0);
      if (changed === 'fail') {
        expect(problems.map(({ message }) => message)).toEqual([
          expect.stringContaining('is not the file that was attached'),
        ]);
        await expect(answer(store)).rejects.toThrow('has changed since it was attached');
      } else {
        const predicates = [{ kind: 'int', field: 1, op: 'eq', value: 5001n } as const];
        expect(JSON.parse(await answer(store, { predicates }))).toMatchObject({ n: 5001 });
      }
      await archive.close();
    },
  );
});

/** Inverts the bytes before a text in a file, or inverts them back, without a change of the modification time. */
function damage(path: string, text: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text);
  expect(at).toBeGreaterThan(20);
  for (let i = at - 20; i < at; i++) bytes[i]! ^= 0xff;
  writeFileSync(path, bytes);
  utimesSync(path, 1_700_000_000, 1_700_000_000);
}
