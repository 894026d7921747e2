import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import { cpus, loadavg, uptime } from 'node:os';
import { basename } from 'node:path';
import type Library from 'systeminformation';
import { taskIn, type Finished, orDeadline, type WorkerPool } from '../../engine/index.js';

/** What to read besides processors and memory. */
export interface SystemJob {
  /** A path on the file system to report; null for none. */
  readonly diskPath: string | null;
  /** Name of a network interface, or `default` for that of the default route; null for none. */
  readonly interface: string | null;
}

/** A count since the machine started; null where it is not available. */
export type Counter = number | null;

/** State of the machine at one moment: levels, and counters, of which only differences are meaningful. */
export interface SystemReading {
  readonly uptimeSeconds: number;
  readonly loadAverages: readonly number[];
  /** Per processor: milliseconds busy, and milliseconds in total. */
  readonly processors: readonly { readonly busyMs: number; readonly totalMs: number }[];
  readonly memory: { readonly totalBytes: number; readonly availableBytes: number } | null;
  readonly disk: DiskReading | null;
  readonly net: NetReading | null;
}

/** Figures of a file system and of its device. */
export interface DiskReading {
  readonly device: string | null;
  readonly totalBytes: number;
  readonly usedBytes: number;
  /** Bytes that an unprivileged user may still write. */
  readonly availableBytes: number;
  readonly readBytes: Counter;
  readonly writeBytes: Counter;
}

/** Counters of a network interface. */
export interface NetReading {
  readonly interface: string;
  /** By direction (`rx` or `tx`) and what is counted. */
  readonly counters: Readonly<Record<NetCounter, Counter>>;
}

/** Names of the counters of a network interface. */
export const netCounters = [
  'rx_bytes',
  'tx_bytes',
  'rx_packets',
  'tx_packets',
  'rx_errors',
  'tx_errors',
  'rx_dropped',
  'tx_dropped',
] as const;

export type NetCounter = (typeof netCounters)[number];

/** A figure that takes longer is null in this record, e.g. that of a network file system whose server is gone. */
const patienceMs = 5000;

/** Size of the sectors in `/sys/block/<device>/stat`, whatever sector size the device has (kernel: Documentation/block/stat.rst). */
const sectorBytes = 512;

/** Loaded on demand: the library takes longer to load than the rest of the server, and few agents need it. */
async function loadLibrary(): Promise<typeof Library> {
  return (await import('systeminformation')).default;
}

/** Reads the figures on a worker thread: the library starts other programs and waits for some of them, which must not delay queries. */
export const systemTask = taskIn(import.meta.url, { work });

/** Reads the figures on a thread of the pool. */
export function readSystem(workers: WorkerPool, job: SystemJob): Promise<SystemReading> {
  return workers.run(systemTask, job);
}

/** Runs on the worker thread: reads the figures. */
export async function work({ diskPath, interface: wanted }: SystemJob): Promise<Finished<SystemReading>> {
  const [memory, disk, net] = await Promise.all([
    orNull('memory', readMemory),
    diskPath === null ? null : orNull(`disk ${diskPath}`, () => readDisk(diskPath)),
    wanted === null ? null : orNull(`net ${wanted}`, () => readNet(wanted)),
  ]);
  const processors = cpus().map(({ times }) => {
    const totalMs = times.user + times.nice + times.sys + times.idle + times.irq;
    return { busyMs: totalMs - times.idle, totalMs };
  });
  const result = { uptimeSeconds: uptime(), loadAverages: loadavg(), processors, memory, disk, net };
  return { result, transfer: [] };
}

interface Reading<T> {
  readonly figure: Promise<T | null>;
  readonly begunMs: number;
}

/** Readings that have not ended yet, by key. A reading that hangs is not started a second time. */
const underWay = new Map<string, Reading<unknown>>();

/**
 * Returns the result of `read`; null when it fails or takes too long. Only one call per key is under way, so a hanging
 * source does not pile up readings in memory.
 */
async function orNull<T>(key: string, read: () => Promise<T>): Promise<T | null> {
  const { figure, begunMs } = (underWay.get(key) as Reading<T> | undefined) ?? begin(key, read);
  const leftMs = begunMs + patienceMs - performance.now();
  if (leftMs <= 0) return null;
  const result = await orDeadline(figure, leftMs);
  return result === 'deadline' ? null : result;
}

function begin<T>(key: string, read: () => Promise<T>): Reading<T> {
  const figure = read()
    .catch(() => null)
    .finally(() => underWay.delete(key));
  const reading = { figure, begunMs: performance.now() };
  underWay.set(key, reading);
  return reading;
}

async function readMemory(): Promise<SystemReading['memory']> {
  const { total, available } = await (await loadLibrary()).mem();
  return { totalBytes: total, availableBytes: available };
}

async function readDisk(path: string): Promise<DiskReading> {
  const [{ bsize, blocks, bfree, bavail }, device] = await Promise.all([statfs(path), deviceOf(path)]);
  const moved = device === null ? null : await movedBytes(device);
  return {
    device,
    totalBytes: bsize * blocks,
    usedBytes: bsize * (blocks - bfree),
    availableBytes: bsize * bavail,
    readBytes: moved?.readBytes ?? null,
    writeBytes: moved?.writeBytes ?? null,
  };
}

/** The device that is mounted at the path; null where there is none, e.g. for a file system in memory. */
async function deviceOf(path: string): Promise<string | null> {
  const [{ dev }, place, mounts] = await Promise.all([
    stat(path),
    realpath(path),
    (await loadLibrary()).fsSize(),
  ]);
  const below = mounts
    .filter(({ mount }) => `${place}/`.startsWith(mount.endsWith('/') ? mount : `${mount}/`))
    .toSorted((a, b) => b.mount.length - a.mount.length);
  const found = below[0];
  // The library omits some file systems; then the mount found is not the one that holds the path.
  if (found === undefined || (await stat(found.mount)).dev !== dev) return null;
  return found.fs;
}

/** Bytes that the device has read and written, from Linux's sysfs; null elsewhere. */
async function movedBytes(device: string): Promise<{ readBytes: number; writeBytes: number } | null> {
  const name = basename(await realpath(device).catch(() => device));
  const text = await readFile(`/sys/class/block/${name}/stat`, 'utf8').catch(() => null);
  if (text === null) return null;
  const numbers = text.trim().split(/\s+/).map(Number);
  return { readBytes: numbers[2]! * sectorBytes, writeBytes: numbers[6]! * sectorBytes };
}

async function readNet(wanted: string): Promise<NetReading | null> {
  const library = await loadLibrary();
  const name = wanted === 'default' ? await library.networkInterfaceDefault() : wanted;
  if (name === '') return null;
  const [stats, rxPackets, txPackets] = await Promise.all([
    library.networkStats(name),
    packets(name, 'rx'),
    packets(name, 'tx'),
  ]);
  const counted = stats.find(({ iface }) => iface === name);
  // For an interface that does not exist, the library reports zero traffic.
  const isThere = rxPackets !== null || (counted !== undefined && counted.operstate !== 'unknown');
  if (counted === undefined || !isThere) return null;
  const all = { ...counted, rx_packets: rxPackets, tx_packets: txPackets };
  const counters = Object.fromEntries(netCounters.map((each) => [each, all[each]]));
  return { interface: name, counters: counters as Record<NetCounter, Counter> };
}

/** A counter that the library does not give, from Linux's sysfs (kernel: Documentation/ABI/testing/sysfs-class-net-statistics). */
async function packets(name: string, direction: 'rx' | 'tx'): Promise<Counter> {
  if (name.includes('/')) return null;
  const path = `/sys/class/net/${name}/statistics/${direction}_packets`;
  const text = await readFile(path, 'utf8').catch(() => null);
  return text === null ? null : Number(text);
}
