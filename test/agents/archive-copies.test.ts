import { copyFileSync, linkSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ArchiveImport } from '../../agents/archive/archive-import.js';
import { findFiles } from '../../agents/archive/found-files.js';
import { silentLog } from '../../agents/collect/logs/collect-log.js';
import { WakeUp } from '../../agents/collect/logs/wake-up.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { EqualFiles } from '../../agents/sources/source-cursor.js';
import { loadFiles } from '../../agents/load/load.js';
import type { LoadSummary } from '../../agents/load/load-report.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { parquetBytes } from '../foreign/write-parquet.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { temporaryFolder } from './load/temporary.js';

const nowMs = Date.UTC(2026, 10, 28, 12);
const shape = { rowGroupRows: 16, pageBytes: 100 };
const columns = {
  fields: [
    { name: 'time', type: 'time' as const },
    { name: 'n', type: 'int' as const },
  ],
};

/** A columnar file with two rows. */
const bytesOf = (n: bigint): Uint8Array =>
  parquetBytes(
    columns,
    [n, n + 1n].map((value) => [BigInt(nowMs) - 1000n * value, value]),
    shape,
  );

/** A folder with files of an archive, and the data folder of a server that imports them. */
class Lake {
  readonly directory = new MemoryDirectory();
  readonly definition: AgentDefinition;

  constructor(
    readonly folder: string,
    pattern: string,
  ) {
    const isText = pattern.endsWith('.log');
    const source = [
      `archive: { path: '${folder}/${pattern}', ${isText ? 'format: json' : 'mode: import'} }`,
      `fields: [{ name: time, ${isText ? 'timestamp: {}' : 'unit: ms'} }, { name: n, type: int }, { name: day }]`,
    ].join('\n');
    this.definition = parseAgentFile(source, join(folder, 'lake.yaml'));
  }

  put(name: string, content: Uint8Array | string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    this.age(name);
    return path;
  }

  copy(from: string, to: string): void {
    mkdirSync(dirname(join(this.folder, to)), { recursive: true });
    copyFileSync(join(this.folder, from), join(this.folder, to));
    this.age(to);
  }

  move(from: string, to: string): void {
    mkdirSync(dirname(join(this.folder, to)), { recursive: true });
    renameSync(join(this.folder, from), join(this.folder, to));
  }

  /** The import leaves alone what was written in the last minute. */
  private age(name: string): void {
    utimesSync(join(this.folder, name), nowMs / 1000 - 3600, nowMs / 1000 - 3600);
  }

  async use<T>(use: (store: AgentStore) => Promise<T>): Promise<T> {
    const archive = await openOn(this.directory, () => nowMs);
    try {
      return await use(await archive.agent('lake', this.definition.schema));
    } finally {
      await archive.close();
    }
  }

  /** What is stored after a server has looked at the files: `n day` of each record, in order. */
  served(whileRunning: () => Promise<void> = () => Promise.resolve()): Promise<string[]> {
    return this.use(async (store) => {
      const archive = this.definition.archive!;
      // The clock is asked after each search.
      let looks = 0;
      const importing = new ArchiveImport({
        definition: this.definition,
        archive,
        store,
        dataFolder: undefined,
        workers: new WorkerPool(0),
        log: silentLog,
        now: () => {
          looks++;
          return nowMs;
        },
        timezone: 'UTC',
        redefine: () => Promise.resolve(),
      });
      const stop = new AbortController();
      const wakeUp = new WakeUp();
      const running = importing.run(stop.signal, wakeUp);
      const isDone = async (): Promise<void> => {
        const { files } = await findFiles(archive, undefined);
        const done = { files: files.length, filesLeft: 0, problems: 0 };
        await expect.poll(() => importing.status()).toMatchObject(done);
      };
      await isDone();
      await whileRunning();
      const before = looks;
      wakeUp.call();
      await expect.poll(() => looks).toBeGreaterThan(before);
      await isDone();
      stop.abort();
      wakeUp.call();
      await running;
      return this.records(store);
    });
  }

  /** What is stored after `load` has read these files. */
  loaded(
    files: readonly string[],
    there?: readonly string[],
  ): Promise<{ summary: LoadSummary; records: string[] }> {
    return this.use(async (store) => {
      const { definition } = this;
      const equals = there === undefined ? undefined : new EqualFiles(new Set(there), undefined);
      const options = { store, definition, timezone: 'UTC', now: () => nowMs, files, equals };
      const summary = await loadFiles(options);
      return { summary, records: await this.records(store) };
    });
  }

  private async records(store: AgentStore): Promise<string[]> {
    const lines = (await answer(store, { limit: 1000 })).trimEnd().split('\n');
    return lines
      .map((line) => JSON.parse(line) as { n: number; day: string | null })
      .map(({ n, day }) => `${n} ${day ?? '-'}`)
      .sort();
  }
}

describe('equal files of an archive that is imported', () => {
  it('are files of their own in folders that give them other values', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    for (const day of [1, 2, 3]) lake.put(`day=${day}/part.parquet`, bytesOf(1n));
    const all = ['1 1', '1 2', '1 3', '2 1', '2 2', '2 3'];
    expect(await lake.served()).toEqual(all);
    // A restart stores nothing twice, and neither does a load.
    expect(await lake.served()).toEqual(all);
    const paths = [1, 2, 3].map((day) => join(lake.folder, `day=${day}/part.parquet`));
    const { summary, records } = await lake.loaded(paths);
    expect([summary.known, records]).toEqual([3, all]);
    // After the files of earlier days were removed, an equal file of another day has records of its own.
    for (const path of paths) rmSync(path);
    lake.put('day=4/part.parquet', bytesOf(1n));
    expect(await lake.served()).toEqual([...all, '1 4', '2 4'].sort());
    expect(await lake.served()).toEqual([...all, '1 4', '2 4'].sort());
  });

  it('are files of their own while they are there at once, and one file if it was renamed or has two names', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    lake.put('a.parquet', bytesOf(1n));
    const twice = ['1 -', '1 -', '2 -', '2 -'];
    expect(
      await lake.served(async () => {
        lake.copy('a.parquet', 'b.parquet');
        linkSync(join(lake.folder, 'b.parquet'), join(lake.folder, 'another-name.parquet'));
        return Promise.resolve();
      }),
    ).toEqual(twice);
    expect(await lake.served()).toEqual(twice);
    // Both are renamed, one while the server runs, and a new file gets the name of the other.
    lake.move('a.parquet', 'old/a.parquet');
    lake.put('a.parquet', bytesOf(5n));
    const renamed = await lake.served(async () => {
      lake.move('b.parquet', 'old/b.parquet');
      rmSync(join(lake.folder, 'another-name.parquet'));
      return Promise.resolve();
    });
    expect(renamed).toEqual([...twice, '5 -', '6 -']);
    expect(await lake.served()).toEqual(renamed);
  });

  it('are stored once more where one has moved and another one has come', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    lake.put('a.parquet', bytesOf(1n));
    expect(await lake.served()).toEqual(['1 -', '2 -']);
    lake.move('a.parquet', 'moved.parquet');
    lake.copy('moved.parquet', 'copy.parquet');
    const twice = ['1 -', '1 -', '2 -', '2 -'];
    expect(await lake.served()).toEqual(twice);
    expect(await lake.served()).toEqual(twice);
    // They exchange their names.
    lake.move('moved.parquet', 'c.parquet');
    lake.move('copy.parquet', 'moved.parquet');
    lake.move('c.parquet', 'copy.parquet');
    expect(await lake.served()).toEqual(twice);
  });

  it('are distinguished by their folders also as text, and go on growing', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.log');
    const line = (n: number): string => `{"time":"${new Date(nowMs - n * 1000).toISOString()}","n":${n}}\n`;
    for (const day of [1, 2]) lake.put(`day=${day}/job.log`, line(1));
    const both = ['1 1', '1 2'];
    expect(await lake.served()).toEqual(both);
    expect(await lake.served()).toEqual(both);
    lake.put('day=1/job.log', line(1) + line(2));
    expect(await lake.served()).toEqual([...both, '2 1']);
    lake.put('day=2/job.log', line(1) + line(2));
    // A copy of a log is the same log, whatever its name.
    lake.put('day=2/copy.log', line(1) + line(2));
    expect(await lake.served()).toEqual([...both, '2 1', '2 2']);
    expect(await lake.served()).toEqual([...both, '2 1', '2 2']);
  });

  it('are one file for a load that names them, unless their folders give other values', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    const paths = ['day=1/a.parquet', 'day=1/b.parquet', 'day=2/a.parquet', 'c.parquet'].map((name) =>
      lake.put(name, bytesOf(1n)),
    );
    const { summary, records } = await lake.loaded(paths);
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['loaded', 'known', 'loaded', 'known']);
    expect(records).toEqual(['1 1', '1 2', '2 1', '2 2']);
    // A load of the archive's files takes each for a file of its own.
    const all = await lake.loaded(paths, paths);
    expect(all.summary.files.map(({ outcome }) => outcome)).toEqual(['known', 'loaded', 'known', 'loaded']);
    expect((await lake.loaded(paths, paths)).summary).toMatchObject({ loaded: 0, known: 4 });
  });

  it('take the place of their own attached file, not of an equal one', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    const days = [1, 2].map((day) => ({ day, path: lake.put(`day=${day}/part.parquet`, bytesOf(1n)) }));
    const [first, second] = await lake.use(async (store) => {
      const adds = days.map(({ day, path }) => ({
        path,
        format: 'parquet' as const,
        constants: { day: `${day}` },
      }));
      await store.attach({ adds, moves: [], removes: [] });
      return days.map(({ path }) => path);
    });
    const all = ['1 1', '1 2', '2 1', '2 2'];
    expect((await lake.loaded([second!], [first!, second!])).records).toEqual(all);
    expect((await lake.use((store) => store.stats())).attached.files).toBe(1);
    expect(await lake.served()).toEqual(all);
    expect((await lake.use((store) => store.stats())).attached.files).toBe(0);
  });

  it('are removed with their own load, and are stored again after it', async () => {
    const lake = new Lake(await temporaryFolder(), '**/*.parquet');
    lake.put('a.parquet', bytesOf(1n));
    lake.put('b.parquet', bytesOf(1n));
    const twice = ['1 -', '1 -', '2 -', '2 -'];
    expect(await lake.served()).toEqual(twice);
    await lake.use(async (store) => {
      const [load] = await store.loads();
      await store.remove({ kind: 'load', id: load!.id });
    });
    expect(await lake.served()).toEqual(twice);
  });
});
