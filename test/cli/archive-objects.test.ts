import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeSchema } from '../../engine/core/schema.js';
import { parquetBytes } from '../foreign/write-parquet.js';
import { environment } from '../objects/object-storage.js';
import { S3Server } from '../objects/s3-server.js';
import { fetchAlone, freePort, recordsOf, start, workFolder, type Finished } from './process.js';

const columns = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
  { name: 'message', type: 'string' },
]);

function parquetOf(from: number, rows: number): Uint8Array {
  const day = Date.UTC(2026, 0, 1);
  const values = Array.from({ length: rows }, (_, i) => [
    BigInt(day + 1000 * (from + i)),
    BigInt(from + i),
    `m${from + i}`,
  ]);
  return parquetBytes(columns, values, { rowGroupRows: 100, pageBytes: 1000 });
}

const lines = Array.from(
  { length: 50 },
  (_, i) => `2026-01-01T00:00:${String(i).padStart(2, '0')}Z ${i}\n`,
).join('');

const agents = {
  web: "archive: { path: 's3://logs/web/**/*.parquet' }\nfields: [{ name: time, type: time, unit: ms }, { name: n, type: int }, { name: message }, { name: day }]\n",
  text: "archive: { path: 's3://logs/text/*.gz', format: plain, regex: '^(?P<time>\\S+) (?P<n>\\d+)$' }\nfields: [{ name: time, timestamp: {} }, { name: n, type: int }]\n",
};

async function bucket(): Promise<{ server: S3Server; folder: string }> {
  const server = await S3Server.start();
  onTestFinished(() => server.stop());
  for (const day of [1, 2]) server.put(`web/day=${day}/a.parquet`, parquetOf(200 * day, 200));
  server.put('text/a.gz', gzipSync(lines));
  const folder = workFolder();
  rmSync(join(folder, 'agents'), { recursive: true });
  mkdirSync(join(folder, 'agents'));
  for (const [name, text] of Object.entries(agents)) writeFileSync(join(folder, `agents/${name}.yaml`), text);
  writeFileSync(join(folder, 'config.yaml'), `s3: { endpoint: '${server.endpoint}', cache: 1mb }\n`);
  return { server, folder };
}

function run(
  folder: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const { child, finished } = start(folder, args, { ...environment, ...more });
  child.stdin.end();
  return finished;
}

describe('an archive of objects', () => {
  it('is checked, attached, loaded, queried, counted and verified like one of files', async () => {
    const { folder } = await bucket();
    const check = await run(folder, ['check']);
    expect(check).toMatchObject({ code: 0, stderr: '' });
    expect(check.stdout).toContain('archive: 2 files of parquet');
    expect(check.stdout).toContain('archive: 1 file of lines');
    // The check creates no data folder.
    expect(readdirSync(join(folder, 'data'))).toEqual(['samples']);
    const index = await run(folder, ['index', 'web']);
    expect(index).toMatchObject({ code: 0, stderr: '' });
    expect(index.stdout).toContain('attached 2 files, 400 rows');
    expect(index.stdout).toContain('indexed  2 files');
    expect((await run(folder, ['load', 'text'])).stdout).toContain('50 records of 1 file stored');
    expect((await run(folder, ['load', 'text', 's3://logs/text/*.gz'])).stderr).toContain(
      'known    s3://logs/text/a.gz',
    );
    const { stdout } = await run(folder, ['query', 'web', 'message__exact=m450', 'day__exact=2']);
    expect(recordsOf(stdout)).toMatchObject([{ n: 450, message: 'm450', day: '2' }]);
    expect((await run(folder, ['query', 'text', '--limit', '1'])).stdout).toContain('"n":49');
    expect((await run(folder, ['stats', 'web'])).stdout).toMatch(/2 files/);
    const verify = await run(folder, ['verify']);
    expect(verify.code).toBe(0);
    expect(verify.stdout).toMatch(/ok +web: /);
  });

  it('is served, and objects that are added later are found', async () => {
    const { server, folder } = await bucket();
    const port = await freePort();
    const serving = start(folder, ['serve', '--listen', `127.0.0.1:${port}`], environment);
    await serving.shows('serving');
    const numbers = async (agent: string): Promise<number> => {
      const answer = await fetchAlone(`http://127.0.0.1:${port}/api/query/${agent}?limit=1000`);
      return recordsOf(await answer.text()).length;
    };
    await expect.poll(() => numbers('web')).toBe(400);
    await expect.poll(() => numbers('text')).toBe(50);
    server.put('web/day=3/a.parquet', parquetOf(600, 100));
    await expect.poll(() => numbers('web')).toBe(500);
    serving.child.kill('SIGTERM');
    expect((await serving.finished).code).toBe(0);
  });

  it('reports mistakes in the place of the credentials, and a missing client', async () => {
    const { folder } = await bucket();
    const wrong = await run(folder, ['index', 'web'], { AWS_SECRET_ACCESS_KEY: 'another' });
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('cannot list s3://logs/web/: 403 SignatureDoesNotMatch');
    expect(wrong.stderr).not.toContain('    at ');
    const hooks = `export const resolve = (name, context, next) => {
      if (name === '@aws-sdk/client-s3') throw Object.assign(new Error('no such package'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(name, context);
    };`;
    const url = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;
    const register = url(`import { register } from 'node:module'; register(${JSON.stringify(url(hooks))});`);
    const without = await run(folder, ['index', 'web'], { NODE_OPTIONS: `--import=${register}` });
    expect(without.code).toBe(1);
    expect(without.stderr).toContain('npm install @aws-sdk/client-s3');
    expect(without.stderr).not.toContain('    at ');
  });
});
