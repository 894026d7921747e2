import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addressesOf, anyPorts } from '../cli/serving.js';
import { fetchAlone, root, run, start, workFolder } from '../cli/process.js';
import { describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { freshName } from './far-store.js';

describeWithClickHouse('the command line with a far tier', () => {
  let bed: FarClusterBed;

  beforeAll(async () => {
    bed = await FarClusterBed.start(1, 1);
  });
  afterAll(() => bed.close());

  /** A folder with a sample loaded, and a configuration that ships days as soon as they end. */
  async function loaded(): Promise<string> {
    const folder = workFolder();
    writeFileSync(
      join(folder, 'config.yaml'),
      `storage:
  far:
    clickhouse: { url: '${bed.servers[0]![0]!.url}', database: ${freshName()} }
    after: 1s
    keep_local: 0s
`,
    );
    const load = await run(folder, ['load', 'nginx', join(root, 'data/samples/nginx.log')]);
    expect(load.code, load.stderr).toBe(0);
    return folder;
  }

  const segments = (folder: string): number =>
    readdirSync(join(folder, 'data/store/nginx'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.parquet'),
    ).length;

  const query = ['query', 'nginx', 'status__gte=200', '--limit', '20000'];

  it('ships by hand, answers the same, and reports what was shipped', async () => {
    const folder = await loaded();
    const before = await run(folder, query);
    const files = segments(folder);
    const shipped = await run(folder, ['far', 'ship', 'nginx']);
    expect(shipped.stderr).toBe('');
    expect(shipped.stdout).toMatch(/^nginx: [\d,]+ records shipped in \d units .*, \d files removed here\n$/);
    expect((await run(folder, query)).stdout).toBe(before.stdout);
    const stats = await run(folder, ['stats', 'nginx']);
    expect(stats.stdout).toMatch(/far tier +[\d,]+ records in \d units/);
    expect(segments(folder)).toBeLessThan(files);
    expect((await run(folder, ['far', 'ship'])).stdout).toBe('nginx: nothing to ship\n');
    expect((await run(folder, ['verify', 'nginx'])).code).toBe(0);
    writeFileSync(join(folder, 'config.yaml'), '');
    const without = await run(folder, ['query', 'nginx', '--limit', '20000']);
    expect(without.code).toBe(1);
    expect(without.stderr).toContain('storage.far');
  });

  it('ships beside a server, which answers 503 and names the servers when the cluster is unreachable', async () => {
    const folder = await loaded();
    const before = await run(folder, ['query', 'nginx', '--limit', '20000']);
    const server = start(folder, ['serve', ...anyPorts]);
    const { route, operators } = await addressesOf(server);
    await server.shows('shipped to the far tier');
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetchAlone(`${operators}/metrics`)).text();
      return Number(new RegExp(`^${name}\\{agent="nginx"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? NaN);
    };
    await expect.poll(() => metric('logstrata_far_only_records')).toBeGreaterThan(0);
    const all = `${route}/api/query/nginx?limit=20000`;
    expect(await (await fetchAlone(all)).text()).toBe(before.stdout);
    // A reader queries the cluster itself, and the server for the other records.
    const own = workFolder();
    const far = readFileSync(join(folder, 'config.yaml'), 'utf8');
    writeFileSync(
      join(own, 'config.yaml'),
      `server: { reader: { writer: '${operators}', lag: 0s } }\n${far}`,
    );
    const reader = start(own, ['serve', ...anyPorts]);
    const away = `${(await addressesOf(reader)).route}/api/query/nginx`;
    expect(await (await fetchAlone(`${away}?limit=20000`)).text()).toBe(before.stdout);
    const [clickhouse] = bed.servers[0]!;
    await clickhouse!.end();
    const gone = await fetchAlone(all);
    expect(gone.status).toBe(503);
    expect(await gone.json()).toMatchObject({
      status: 503,
      detail: expect.stringContaining(clickhouse!.url) as string,
    });
    expect(await (await fetchAlone(`${away}?limit=20000`)).json()).toMatchObject({
      status: 503,
      detail: expect.stringContaining(clickhouse!.url) as string,
    });
    // Records on this machine are still answered.
    expect((await fetchAlone(`${route}/api/query/nginx?limit=5`)).status).toBe(200);
    await clickhouse!.start();
    await expect.poll(async () => (await fetchAlone(all)).status).toBe(200);
    server.child.kill('SIGTERM');
    expect((await server.finished).code).toBe(0);
    expect(existsSync(join(folder, 'data/store/nginx'))).toBe(true);
  });
});
