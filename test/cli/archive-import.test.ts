import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import { isRoot, itUnless } from '../needs.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder, type Running } from './process.js';

const agentFile = `archive:
  path: '../old/**/*.log*'
  format: json
fields:
  - { name: time, type: time, source: t }
  - { name: region }
  - { name: n, type: int }
`;

const hour = 3_600_000;
const base = Date.UTC(2026, 0, 1);

/** Lines of records numbered from `from` up to but not including `to`, an hour apart. */
function lines(from: number, to: number): string {
  return Array.from(
    { length: to - from },
    (_, i) => `{"t":${base + (from + i) * hour},"n":${from + i}}\n`,
  ).join('');
}

/** Writes a file with a modification time that many hours ago. */
function put(folder: string, path: string, content: string | Buffer, hoursAgo: number): void {
  const place = join(folder, 'old', path);
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(`${place}.part`, content);
  const atS = Date.now() / 1000 - hoursAgo * 3600;
  utimesSync(`${place}.part`, atS, atS);
  renameSync(`${place}.part`, place);
}

/** The folder of an agent `web` whose archive has these files. */
function archiveFolder(): string {
  const folder = workFolder();
  writeFileSync(join(folder, 'agents/web.yaml'), agentFile);
  put(folder, 'region=eu/a.log.2.gz', gzipSync(lines(0, 10)), 48);
  put(folder, 'region=eu/a.log.1.gz', gzipSync(lines(10, 20)), 24);
  put(folder, 'region=us/b.log', `${lines(20, 25)}no JSON\n`, 12);
  return folder;
}

async function serve(folder: string): Promise<{ server: Running; url: string }> {
  const port = await freePort();
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  return { server, url: `http://127.0.0.1:${port}/api/query/web?limit=1000` };
}

async function stop(server: Running): Promise<string> {
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.finished;
  expect(code).toBe(0);
  return stderr;
}

/** Waits until the server's records satisfy the condition. */
async function answers(
  url: string,
  isReached: (records: ReturnType<typeof recordsOf>) => boolean,
): Promise<ReturnType<typeof recordsOf>> {
  for (;;) {
    const records = recordsOf(await (await fetchAlone(url)).text());
    if (isReached(records)) return records;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function importing(folder: string): Promise<ImportStatus> {
  const { stdout } = await run(folder, ['stats', 'web', '--json']);
  return (JSON.parse(stdout) as { importing: ImportStatus }).importing;
}

const numbersOf = (records: ReturnType<typeof recordsOf>): number[] =>
  records.map(({ n }) => Number(n)).sort((a, b) => a - b);

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('text files of an archive', () => {
  it('are stored while the server answers, each once, including files that are added later', async () => {
    const folder = archiveFolder();
    put(folder, 'region=us/torn.log.gz', gzipSync(lines(900, 950)).subarray(0, 60), 30);
    put(folder, 'region=us/young.log', lines(800, 810), 0);
    const { server, url } = await serve(folder);
    const records = await answers(url, ({ length }) => length === 25);
    expect(numbersOf(records)).toEqual(upTo(25));
    expect(new Set(records.filter(({ n }) => Number(n) < 20).map(({ region }) => region))).toEqual(
      new Set(['eu']),
    );
    expect(new Set(records.filter(({ n }) => Number(n) >= 20).map(({ region }) => region))).toEqual(
      new Set(['us']),
    );
    await server.shows('all archive files are stored');
    expect(await importing(folder)).toMatchObject({
      files: 5,
      filesLeft: 0,
      filesWaiting: 1,
      records: 25,
      rejected: 1,
      path: null,
      paused: null,
      problems: 1,
      problemsListed: [{ path: join(folder, 'old/region=us/torn.log.gz') }],
    });
    // A new file, a file that is complete now, and a file that was stored before under another name.
    put(folder, 'region=asia/c.log.gz', gzipSync(lines(25, 30)), 100);
    put(folder, 'region=us/torn.log.gz', gzipSync(lines(30, 40)), 30);
    put(folder, 'copy/of-a.log.1', lines(10, 20), 90);
    expect(numbersOf(await answers(url, ({ length }) => length === 40))).toEqual(upTo(40));
    const told = await stop(server);
    expect(told.match(/truncated gzip file/g)).toHaveLength(1);
    expect(told.match(/lines of an archive file were rejected/g)).toHaveLength(1);
  });

  it('are stored in order from the newest to the oldest', async () => {
    const folder = archiveFolder();
    const { server, url } = await serve(folder);
    const records = await answers(url, ({ length }) => length === 25);
    await stop(server);
    expect(numbersOf(records)).toEqual(upTo(25));
    const { stdout } = await run(folder, ['load', 'web', '--json']);
    const { files } = JSON.parse(stdout) as { files: { path: string; outcome: string }[] };
    expect(files.map(({ path, outcome }) => `${outcome} ${path.split('/').at(-1)}`)).toEqual([
      'known b.log',
      'known a.log.1.gz',
      'known a.log.2.gz',
    ]);
  });

  it('are read again by the next server only if they have changed', async () => {
    const folder = archiveFolder();
    // So long that the hashed beginning does not reach the end of the file.
    const long = gzipSync(
      Array.from(
        { length: 10 },
        (_, n) => `{"t":${base + n * hour},"n":${n},"x":"${randomBytes(60_000).toString('hex')}"}\n`,
      ).join(''),
    );
    put(folder, 'region=eu/a.log.2.gz', long, 48);
    const first = await serve(folder);
    await answers(first.url, ({ length }) => length === 25);
    await stop(first.server);
    put(folder, 'region=us/b.log', `${lines(20, 25)}no JSON\n${lines(25, 27)}`, 11);
    const second = await serve(folder);
    expect(numbersOf(await answers(second.url, ({ length }) => length === 27))).toEqual(upTo(27));
    await second.server.shows('all archive files are stored');
    expect(await importing(folder)).toMatchObject({ files: 3, filesLeft: 0, records: 2, rejected: 0 });
    await stop(second.server);
    // Stored files are recognised by their beginning and length, so later damage behind the beginning is not noticed.
    long[long.length - 6]! ^= 1;
    put(folder, 'region=eu/a.log.2.gz', long, 48);
    const third = await serve(folder);
    await third.server.shows('checking the archive files');
    while ((await importing(folder)).filesLeft > 0);
    expect(await importing(folder)).toMatchObject({ records: 0, problems: 0 });
    await stop(third.server);
  });

  it('are loaded by a command, whether or not they are still being written', async () => {
    const folder = archiveFolder();
    put(folder, 'region=us/young.log', lines(25, 30), 0);
    const loaded = await run(folder, ['load', 'web']);
    expect(loaded.stdout).toContain('30 records of 4 files stored');
    expect(loaded.code).toBe(0);
    const again = await run(folder, ['load', 'web']);
    expect(again.stdout).toContain('nothing to do: everything is already stored');
  });

  it('that are not text are reported', async () => {
    const folder = workFolder();
    writeFileSync(join(folder, 'agents/web.yaml'), agentFile);
    const loaded = await run(folder, ['load', 'web']);
    expect(loaded.code).toBe(1);
    expect(loaded.stderr).toContain(`the folder ${join(folder, 'old')} is not there`);
    expect(loaded.stderr).toContain('archive.path (../old/**/*.log*) names no file');
    const { server } = await serve(folder);
    await server.shows(`the folder ${join(folder, 'old')} is not there`);
    expect(await importing(folder)).toMatchObject({ files: 0, problems: 1 });
    await stop(server);
  });

  itUnless(isRoot, 'without read permission are reported, and are stored once they can be read', async () => {
    const folder = archiveFolder();
    chmodSync(join(folder, 'old/region=us/b.log'), 0);
    const { server, url } = await serve(folder);
    await answers(url, ({ length }) => length === 20);
    await server.shows('has no permission');
    await stop(server);
  });
});
