import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, start, workFolder } from './process.js';
import { addressesOf, anyPorts } from './serving.js';

/** The value of each series, by its name with its labels. */
async function metricsOf(operators: string): Promise<Map<string, number>> {
  const response = await fetchAlone(`${operators}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const lines = (await response.text()).split('\n').filter((line) => /^[a-z]/.test(line));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

const agentFile = (log: string): string => `fields:
  - name: n
    type: int
file:
  path: '../logs/${log}\\.log'
  format: json
`;

it('metrics show what a server has answered, stored and collected', async () => {
  const folder = workFolder();
  mkdirSync(join(folder, 'logs'));
  writeFileSync(join(folder, 'agents/live.yaml'), agentFile('app'));
  writeFileSync(join(folder, 'agents/later.yaml'), agentFile('later'));
  writeFileSync(join(folder, 'config.yaml'), 'server: { slow_query: 0s }\n');
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const log = join(folder, 'logs/app.log');
  writeFileSync(log, '{"n":1}\n{"n":2}\nnot JSON\n');
  const server = start(folder, ['serve', ...anyPorts]);
  const { operators, route } = await addressesOf(server);
  const before = await metricsOf(operators);
  expect(before.get('logstrata_ready')).toBe(1);
  expect(before.get('logstrata_records{agent="app"}')).toBe(2000);
  expect(before.get('logstrata_stored_records_total{agent="app"}')).toBe(2000);
  expect(before.get('logstrata_segments{agent="app",codec="lz4"}')).toBeGreaterThan(0);
  expect(before.get('logstrata_rows_returned_total{agent="app"}')).toBeUndefined();

  let bytes = 0;
  for (const [from, query] of [
    [route, 'limit=3'],
    [operators, 'limit=4&level__exact=error'],
    [route, 'limit=0'],
  ]) {
    const answer = await fetchAlone(`${from}/api/query/app?${query}`);
    bytes += (await answer.arrayBuffer()).byteLength;
  }
  // A server that has begun has read the newest records of some agent already, but not of one that had none.
  writeFileSync(join(folder, 'later.log'), '{"n":1}\n{"n":2}\n');
  expect((await run(folder, ['load', 'later', 'later.log'])).code).toBe(0);
  expect((await fetchAlone(`${route}/api/query/later?limit=1`)).status).toBe(200);
  expect((await fetchAlone(`${route}/api/query/app?nope=1`)).status).toBe(400);
  appendFileSync(log, '{"n":3}\nnor this\n');
  await expect
    .poll(async () => (await metricsOf(operators)).get('logstrata_collect_records_total{agent="live"}'), {
      timeout: 30_000,
    })
    .toBe(3);
  const after = await metricsOf(operators);
  expect(after.get('logstrata_query_duration_seconds_count{status="200"}')).toBe(4);
  expect(after.get('logstrata_query_duration_seconds_bucket{le="+Inf",status="400"}')).toBe(1);
  expect(after.get('logstrata_scans_total{agent="app"}')).toBe(3);
  expect(after.get('logstrata_rows_returned_total{agent="app"}')).toBe(7);
  expect(after.get('logstrata_rows_scanned_total{agent="app"}')).toBeGreaterThan(6);
  expect(after.get('logstrata_returned_bytes_total{agent="app"}')).toBe(bytes);
  expect(after.get('logstrata_read_bytes_total{agent="later"}')).toBeGreaterThan(0);
  expect(after.get('logstrata_pool_misses_total')).toBeGreaterThan(0);
  expect(after.get('logstrata_pool_bytes')).toBeGreaterThan(0);
  expect(after.get('logstrata_collect_lag_bytes{agent="live"}')).toBe(0);
  expect(after.get('logstrata_collect_files{agent="live"}')).toBe(1);
  expect(after.get('logstrata_rejected_lines_total{agent="live"}')).toBe(2);
  const reasons = [...after].filter(([name]) => name.startsWith('logstrata_collect_rejected_lines_total'));
  expect(reasons).toEqual([
    ['logstrata_collect_rejected_lines_total{agent="live",reason="is not a JSON object"}', 2],
  ]);
  const checkpoint = after.get('logstrata_collect_checkpoint_timestamp_seconds{agent="live"}')!;
  expect(Math.abs(Date.now() / 1000 - checkpoint)).toBeLessThan(3600);
  expect(after.get('logstrata_hot_records{agent="live"}')).toBe(3);
  expect(after.get('logstrata_commits_total{agent="live"}')).toBeGreaterThan(0);
  expect(after.get('logstrata_disk_free_bytes')).toBeGreaterThan(0);
  expect(after.get('process_resident_memory_bytes')).toBeGreaterThan(0);
  expect(after.get('nodejs_eventloop_lag_p99_seconds')).toBeDefined();

  // Slow queries are listed, and written to the log.
  const listed = (await (await fetchAlone(`${operators}/api/slow`)).json()) as { slow: object[] };
  expect(listed.slow).toMatchObject([
    { parameters: ['limit=1'], agent: 'later' },
    { parameters: ['limit=0'] },
    { parameters: ['limit=4', 'level__exact=error'], agent: 'app', figures: { rowsReturned: 4 } },
    { parameters: ['limit=3'] },
  ]);
  expect(after.get('logstrata_slow_queries_total')).toBe(4);
  server.child.kill('SIGTERM');
  const { stderr } = await server.finished;
  const lines = stderr.split('\n').filter((line) => line.includes('a query was slow'));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { query: 'limit=3' },
    {
      query: 'limit=4&level__exact=error',
      agent: 'app',
      client: '127.0.0.1',
      rowsReturned: 4,
      level: 40,
    },
    { query: 'limit=0' },
    { query: 'limit=1', agent: 'later' },
  ]);
});
