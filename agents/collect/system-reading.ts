import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import { cpus, loadavg, uptime } from 'node:os';
import { basename } from 'node:path';
import type Library from 'systeminformation';
import { builtModule, type Finished, orDeadline, type Task, type WorkerPool } from '../../engine/index.js';

/** What to read beside processor and memory. */
export interface SystemJob {
  /** A path on the file system to read of; null for none. */
  readonly diskPath: string | null;
  /** A network interface, or `default` for the one that the default route takes; null for none. */
  readonly interface: string | null;
}

/** Counts up since the machine started; null where they can't be had. */
export type Counter = number | null;

/** The machine at one moment, as it tells it itself: levels, and counters that only their differences say something of. */
export interface SystemReading {
  readonly uptimeSeconds: number;
  readonly loadAverages: readonly number[];
  /** One for each processor: milliseconds that it worked, and all milliseconds. */
  readonly processors: readonly { readonly busyMs: number; readonly totalMs: number }[];
  readonly memory: { readonly totalBytes: number; readonly availableBytes: number } | null;
  readonly disk: DiskReading | null;
  readonly net: NetReading | null;
}

export interface DiskReading {
  readonly device: string | null;
  readonly totalBytes: number;
  readonly usedBytes: number;
  /** What a user without privileges may still write. */
  readonly availableBytes: number;
  readonly readBytes: Counter;
  readonly writeBytes: Counter;
}

export interface NetReading {
  readonly interface: string;
  /** By the direction, `rx` or `tx`, and what is counted. */
  readonly counters: Readonly<Record<NetCounter, Counter>>;
}

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

/** A figure that takes longer is null in this record, as that of a network file system whose server is gone. */
const patienceMs = 5000;

/** Sectors of `/sys/block/<device>/stat` have this size, whatever those of the device have (kernel: Documentation/block/stat.rst). */
const sectorBytes = 512;

/** It takes longer to load than all else of a server, and few agents need it. */
async function loadLibrary(): Promise<typeof Library> {
  return (await import('systeminformation')).default;
}

/** The library starts other programs and waits for some of them: that must not hold up queries. */
export const systemTask: Task<SystemJob, SystemReading> = { module: builtModule(import.meta.url), work };

/** Reads the figures on a thread of the pool. */
export function readSystem(workers: WorkerPool, job: SystemJob): Promise<SystemReading> {
  return workers.run(systemTask, job);
}

/** `systemTask`. */
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

/** Readings that have not ended yet, by what they read. One that hangs is not begun again beside itself. */
const underWay = new Map<string, Reading<unknown>>();

/** What `read` gives; null when it fails, or takes too long. One that hangs is waited for once, or waiting would fill the memory. */
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

/** The device that is mounted where the path lies; null where there is none, as behind a file system in memory. */
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
  // The library leaves some file systems out: then what it names lies under another one.
  if (found === undefined || (await stat(found.mount)).dev !== dev) return null;
  return found.fs;
}

/** What the device has read and written, on Linux. */
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
  // The library gives an interface that is not there as one that has moved nothing.
  const isThere = rxPackets !== null || (counted !== undefined && counted.operstate !== 'unknown');
  if (counted === undefined || !isThere) return null;
  const all = { ...counted, rx_packets: rxPackets, tx_packets: txPackets };
  const counters = Object.fromEntries(netCounters.map((each) => [each, all[each]]));
  return { interface: name, counters: counters as Record<NetCounter, Counter> };
}

/** What the library does not count, on Linux (kernel: Documentation/ABI/testing/sysfs-class-net-statistics). */
async function packets(name: string, direction: 'rx' | 'tx'): Promise<Counter> {
  if (name.includes('/')) return null;
  const path = `/sys/class/net/${name}/statistics/${direction}_packets`;
  const text = await readFile(path, 'utf8').catch(() => null);
  return text === null ? null : Number(text);
}
