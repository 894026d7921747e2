import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { addressesOf, anyPorts } from '../cli/serving.js';
import { fetchAlone, freePort, root, run, start, workFolder } from '../cli/process.js';

/** A folder with nothing but the configuration of a reader. */
function readerFolder(writer: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-reader-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'config.yaml'), `server: { reader: { writer: '${writer}', lag: 0s } }\n`);
  return folder;
}

it('answers like the writer, names it while it is unreachable, and recovers with it', async () => {
  const folder = workFolder();
  expect((await run(folder, ['load', 'nginx', join(root, 'data/samples/nginx.log')])).code).toBe(0);
  const console = `127.0.0.1:${await freePort()}`;
  const serve = ['serve', '--no-follow', '--listen', '127.0.0.1:0', '--console', console];
  const own = readerFolder(`http://${console}`);
  // It waits for a writer that starts after it.
  const reader = start(own, ['serve', '--no-follow', ...anyPorts]);
  await reader.shows(`the writer http://${console} can't be reached`);
  const first = start(folder, serve);
  const { route } = await addressesOf(first);
  const at = await addressesOf(reader);
  for (const query of [
    'limit=3',
    'status__gte=400&format=csv',
    'after=0000000000000000&limit=2000&fields=path',
  ]) {
    const expected = await (await fetchAlone(`${route}/api/query/nginx?${query}`)).text();
    expect(await (await fetchAlone(`${at.route}/api/query/nginx?${query}`)).text()).toBe(expected);
  }
  const schema = await (await fetchAlone(`${at.operators}/api/schema/nginx`)).text();
  expect(schema).toContain('{"name":"status","type":"int"}');
  expect((await fetchAlone(`${at.operators}/readyz`)).status).toBe(200);
  const metrics = await (await fetchAlone(`${at.operators}/metrics`)).text();
  expect(metrics).toMatch(/^logstrata_reader_lag_seconds\{agent="nginx"\} \d/m);
  // A reader has no data for other readers.
  expect((await fetchAlone(`${at.operators}/api/border/nginx`)).status).toBe(404);

  const checked = await run(own, ['check']);
  expect(checked.stdout).toBe(
    `reader of the writer http://${console}, which serves these agents:\n  app: 0 records, 0 of them in the far tier\n` +
      '  nginx: 10,000 records, 0 of them in the far tier\n',
  );

  first.child.kill('SIGKILL');
  await first.finished;
  for (const url of [`${at.route}/api/query/nginx?limit=1`, `${at.operators}/readyz`]) {
    const away = await fetchAlone(url);
    expect(away.status).toBe(503);
    expect(away.headers.get('retry-after')).toBe('1');
    expect(await away.json()).toMatchObject({ detail: expect.stringContaining(console) as string });
  }
  // Its writer leaves out an agent, and the reader says the same of it.
  writeFileSync(join(folder, 'agents/lake.yaml'), "archive: { path: '../lake/*.parquet' }\n");
  const second = start(folder, serve);
  await second.shows('serving ');
  const reason = expect.stringContaining(`the folder ${join(folder, 'lake')} is not there`) as string;
  const troubles = async (): Promise<unknown> => (await fetchAlone(`${at.operators}/readyz`)).json();
  await expect.poll(troubles).toMatchObject({ reasons: [{ agent: 'lake', reason }] });
  for (const url of [`${at.route}/api/query/lake`, `${at.operators}/api/schema/lake`]) {
    const answer = await fetchAlone(url);
    expect([answer.status, await answer.json()]).toMatchObject([503, { detail: reason }]);
  }
  expect((await fetchAlone(`${at.route}/api/query/lakes`)).status).toBe(404);
  expect((await fetchAlone(`${at.route}/api/query/nginx?limit=1`)).status).toBe(200);
  reader.child.kill('SIGTERM');
  const ended = await reader.finished;
  expect(ended.code).toBe(0);
  expect(ended.stdout).toContain(`writer   http://${console}`);
  // It has the agents of its writer, and no folder of its own.
  expect(ended.stdout).not.toMatch(/^agents /m);
});

it('refuses commands that a reader cannot execute', async () => {
  const console = `127.0.0.1:${await freePort()}`;
  const folder = readerFolder(`http://${console}`);
  const itself = await run(folder, ['serve', '--listen', '127.0.0.1:0', '--console', console]);
  expect(itself.code).toBe(1);
  expect(itself.stderr).toContain('the console of this server');
  const stats = await run(folder, ['stats']);
  expect(stats.code).toBe(1);
  expect(stats.stderr).toContain(`it queries the writer http://${console} (server.reader)`);
});
