import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, test } from 'vitest';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { nextTick, SystemCollector } from '../../agents/collect/system-collector.js';
import { systemFigures } from '../../agents/collect/system-figures.js';
import type { SystemReading } from '../../agents/collect/system-reading.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { fetchAlone, freePort, recordsOf, run, start, workFolder } from '../cli/process.js';
import { answer, openOn } from '../engine/store/memory-archive.js';

const counters = {
  rx_bytes: 100,
  tx_bytes: 200,
  rx_packets: 3,
  tx_packets: 4,
  rx_errors: 0,
  tx_errors: 1,
  rx_dropped: 2,
  tx_dropped: null,
};

const reading: SystemReading = {
  uptimeSeconds: 1234.9,
  loadAverages: [0.5, 1, 2],
  processors: [
    { busyMs: 100, totalMs: 1000 },
    { busyMs: 300, totalMs: 1000 },
  ],
  memory: { totalBytes: 3000, availableBytes: 2000 },
  disk: {
    device: '/dev/a',
    totalBytes: 1000,
    usedBytes: 300,
    availableBytes: 600,
    readBytes: 10,
    writeBytes: 20,
  },
  net: { interface: 'eth0', counters },
};

describe('figures', () => {
  const later: SystemReading = {
    ...reading,
    processors: [
      { busyMs: 150, totalMs: 1100 },
      { busyMs: 310, totalMs: 1100 },
    ],
    disk: { ...reading.disk!, readBytes: 15, writeBytes: 4020 },
    net: { interface: 'eth0', counters: { ...counters, rx_bytes: 101, tx_bytes: 150, rx_packets: 9 } },
  };

  test('levels are reported as they are, and counters as differences', () => {
    expect(systemFigures(later, reading, 17)).toEqual({
      time: 17,
      uptime: 1234,
      la_1: 0.5,
      la_5: 1,
      la_15: 2,
      cpu_usage: 30,
      cpu_cores: 2,
      mem_usage: 33.33,
      mem_total: 3000,
      disk_dev: '/dev/a',
      disk_usage: 33.33,
      disk_total: 1000,
      disk_read_bytes: 5,
      disk_write_bytes: 4000,
      net_if: 'eth0',
      net_rx_bytes: 1,
      // The counter went back because the interface was set up again.
      net_tx_bytes: null,
      net_rx_packets: 6,
      net_tx_packets: 0,
      net_rx_errors: 0,
      net_tx_errors: 0,
      net_rx_dropped: 0,
      // The machine does not count this.
      net_tx_dropped: null,
    });
  });

  test('there is no difference without an earlier reading, or to another device', () => {
    const first = systemFigures(later, null, 17);
    expect(first).toMatchObject({ cpu_usage: null, disk_read_bytes: null, net_rx_bytes: null, uptime: 1234 });
    const moved = systemFigures(
      {
        ...later,
        disk: { ...later.disk!, device: '/dev/b' },
        net: { ...later.net!, interface: 'eth1' },
      },
      reading,
      17,
    );
    expect(moved).toMatchObject({
      disk_dev: '/dev/b',
      disk_read_bytes: null,
      net_if: 'eth1',
      net_rx_bytes: null,
    });
  });

  test('figures that the machine does not have are left out, and become null', () => {
    const bare = systemFigures({ ...reading, memory: null, disk: null, net: null }, reading, 17);
    expect(bare).toMatchObject({ mem_usage: null, mem_total: null });
    expect(Object.keys(bare)).toHaveLength(9);
  });

  test.each([
    [0, 20, 1000, 1],
    [1, 1020, 1000, 2],
    [1, 5500, 1000, 6],
    [1, 900, 1000, 2],
  ])('after tick %i, at %i ms of %i, the next is tick %i', (tick, elapsedMs, intervalMs, next) => {
    expect(nextTick(tick, elapsedMs, intervalMs)).toBe(next);
  });
});

describe('a collector of figures', () => {
  const workers = new WorkerPool(1);
  afterEach(() => workers.close());

  it('stores them under the configured names; a figure that one record lacks is in the next', async () => {
    const text = `
fields:
  - name: at
    type: time
    source: time
  - name: cores
    type: int
    source: cpu_cores
  - name: cpu_usage
    type: float
  - name: memory
    template: '{{.mem_total}} bytes'
  - name: disk_write_bytes
    type: int
  - name: net_rx_bytes
    type: int
system: { disk: { path: ${import.meta.dirname} }, net: { interface: none-such } }`;
    const definition = parseAgentFile(text, '/etc/agents/host.yaml');
    const disk = new MemoryDirectory();
    let nowMs = Date.UTC(2026, 10, 20);
    const archive = await openOn(disk, () => nowMs);
    const store: AgentStore = await archive.agent('host', definition.schema);
    const told: string[] = [];
    const say = (_facts: unknown, message: string): number => told.push(message);
    const log = { info: say, warn: say, error: say };
    const collector = new SystemCollector({
      store,
      definition,
      system: definition.system!,
      timezone: 'UTC',
      now: () => nowMs,
      workers,
      log,
    });
    await collector.take();
    nowMs += 60_000;
    disk.setFaults({ freeBytes: 0 });
    await expect(collector.take()).rejects.toThrow(/full/);
    disk.setFaults({});
    // Uses processor time, which the next record must show.
    for (const start = process.cpuUsage(); process.cpuUsage(start).user < 50_000;);
    await collector.take();
    const records = recordsOf(await answer(store));
    expect(records).toHaveLength(2);
    expect(records[0]).toMatchObject({
      at: Date.UTC(2026, 10, 20),
      cores: cpus().length,
      cpu_usage: null,
      memory: `${totalmem()} bytes`,
      net_rx_bytes: null,
    });
    expect(records[1]).toMatchObject({ at: nowMs, net_rx_bytes: null });
    expect(records[1]!['cpu_usage']).toBeGreaterThan(0);
    expect(records[1]!['cpu_usage']).toBeLessThanOrEqual(100);
    expect(told).toEqual([
      'the network interface none-such (net.interface) does not exist: its figures are null',
    ]);
    expect(collector.status()).toMatchObject({ records: 2, rejected: 0, files: [], paused: null });
    await archive.close();
  });
});

it('a server stores the figures of its machine', async () => {
  const folder = workFolder();
  writeFileSync(
    join(folder, 'agents/host.yaml'),
    'system: { interval: 1s, disk: { path: / }, net: { interface: lo } }\n',
  );
  const checked = await run(folder, ['check', 'host']);
  expect(checked.stdout).toContain('takes figures every 1.0 s: this machine, disk /, network lo');
  const port = await freePort();
  const startMs = Date.now();
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  let records = [];
  let received;
  // The queries use the network; on a busy machine the first may come after some records.
  do {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/host`);
    records = recordsOf(await response.text());
    received = records.find((record) => Number(record['net_rx_bytes']) > 0);
  } while (records.length < 3 || received === undefined);
  // One record at its start, and at most one per second since. On a busy machine one may be late, and the next punctual.
  expect(records.length - 1).toBeLessThanOrEqual((Date.now() - startMs) / 1000);
  const [first] = records;
  expect(Object.keys(first!)).toHaveLength(24);
  expect(first).toMatchObject({ net_if: 'lo', net_rx_bytes: null, cpu_cores: cpus().length });
  expect(first!['disk_total']).toBeGreaterThan(0);
  expect(received['net_rx_packets']).toBeGreaterThan(0);
  const shown = await run(folder, ['stats', 'host', '--json']);
  expect(JSON.parse(shown.stdout)).toMatchObject({ collecting: { files: [], paused: null } });
  server.child.kill('SIGTERM');
  expect((await server.finished).code).toBe(0);
});
