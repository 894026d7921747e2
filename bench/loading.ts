import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchOptions } from './options.js';
import { packageRoot } from '../server/cli/options.js';
import type { RecordSet } from './record-set.js';
import { compareLine, type MissingPeer, type ResultLine, type Unit } from './result.js';
import { SideClient } from './side-client.js';
import {
  archiveSides,
  isOverFiles,
  peerOf,
  sideNames,
  type LoadFigures,
  type PeerName,
  type SideName,
  type SideOptions,
} from './side.js';
import { spreadOf } from './spread.js';

/** A side after loading a set. */
export interface LoadedSide {
  readonly options: SideOptions;
  readonly figures: LoadFigures;
}

/** Installs the packages of the peers. Returns the peers that could not be installed. */
export function installPeers(options: BenchOptions): MissingPeer[] {
  if (!options.mayInstall) return [];
  const script = join(packageRoot(), 'bench/peers/install.mjs');
  const missing: MissingPeer[] = [];
  for (const peer of options.peers.filter((name) => needsInstall(name))) {
    const { status } = spawnSync(process.execPath, [script, peer], { stdio: ['ignore', 2, 2] });
    if (status !== 0) missing.push({ peer, reason: 'it could not be installed; npm says above why' });
  }
  return missing;
}

function needsInstall(peer: PeerName): boolean {
  return peer !== 'sqlite' || process.getBuiltinModule?.('node:sqlite') === undefined;
}

/** The sides that take part with a set, ours first. */
function sidesFor(set: RecordSet, options: BenchOptions, missing: readonly MissingPeer[]): SideName[] {
  if (options.archive) return set.name === 'web' ? [...archiveSides] : [];
  return sideNames.filter((side) => {
    if (isOverFiles(side)) return false;
    if (side === 'logstrata-unindexed') return set.name === 'web';
    const peer = peerOf(side);
    return peer === null || (options.peers.includes(peer) && missing.every((each) => each.peer !== peer));
  });
}

/**
 * Loads a set into every side, one after the other, each in a process of its own. A peer that fails is added to `missing` with its error
 * message; a failure of our own side ends the benchmark.
 */
export async function loadSides(
  set: RecordSet,
  options: BenchOptions,
  missing: MissingPeer[],
  say: (what: string) => void,
): Promise<LoadedSide[]> {
  const loaded: LoadedSide[] = [];
  for (const side of sidesFor(set, options, missing)) {
    say(`loading ${set.name} into ${side}`);
    const folder = join(options.dataFolder, 'stores', `${set.name}-${set.rows}`, side);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const { threads, cacheBytes } = options;
    const sideOptions: SideOptions = { side, set, folder, threads, cacheBytes };
    try {
      loaded.push(await loadSide(sideOptions));
    } catch (error) {
      if (peerOf(side) === null) throw error;
      missing.push({ peer: side, reason: firstLine(error) });
    }
  }
  return loaded;
}

async function loadSide(options: SideOptions): Promise<LoadedSide> {
  const client = await SideClient.start(options);
  const figures = await client.request({ kind: 'load' }).finally(() => client.stop());
  return { options, figures };
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}

/** A line of the result about loading, and how its value is computed. */
interface LoadingLine {
  readonly id: string;
  readonly title: string;
  readonly unit: Unit;
  readonly isLowerBetter: boolean;
  readonly ours: SideName;
  readonly target: string;
  value(figures: LoadFigures, rows: number): number;
}

const loadingLines: readonly LoadingLine[] = [
  {
    id: 'load',
    title: 'loading JSON Lines',
    unit: 'records/s',
    isLowerBetter: false,
    ours: 'logstrata',
    target: '≥ 800,000',
    value: ({ seconds }, rows) => rows / seconds,
  },
  {
    id: 'load-memory',
    title: 'resident memory while loading',
    unit: 'bytes',
    isLowerBetter: true,
    ours: 'logstrata',
    target: '≤ 1.5 GB',
    value: ({ rssBytes }) => rssBytes,
  },
  {
    id: 'size-lz4',
    title: 'size on disk, LZ4',
    unit: 'bytes',
    isLowerBetter: true,
    ours: 'logstrata',
    target: '≤ 1.5 × DuckDB zstd Parquet',
    value: ({ bytes }) => bytes,
  },
  {
    id: 'size-zstd',
    title: 'size on disk, ZSTD',
    unit: 'bytes',
    isLowerBetter: true,
    ours: 'logstrata-zstd',
    target: '≤ 1.03 × DuckDB zstd Parquet',
    value: ({ bytes }) => bytes,
  },
];

/** Sides that load nothing of their own: they read the file that the others load, our store, or files that others wrote. */
const withoutStore: readonly SideName[] = ['ripgrep', 'duckdb-our-parquet', 'clickhouse-files'];

/** The lines about attaching and indexing files, compared with loading the same records. */
function describeAttaching(set: RecordSet, loaded: readonly LoadedSide[]): ResultLine[] {
  const line = (
    about: Pick<LoadingLine, 'id' | 'title' | 'unit' | 'isLowerBetter' | 'ours'>,
    value: LoadingLine['value'],
  ): ResultLine =>
    compareLine({
      ...about,
      set: set.name,
      figures: Object.fromEntries(
        loaded
          .filter(({ options }) => !withoutStore.includes(options.side))
          .map(({ options, figures }) => [options.side, spreadOf([value(figures, set.rows)])]),
      ),
    });
  const attach = { id: 'attach', title: 'attaching files', unit: 'records/s', isLowerBetter: false } as const;
  const memory = { id: 'index-memory', title: 'memory while indexing', unit: 'bytes' } as const;
  const size = { id: 'index-size', title: 'size beside the files', unit: 'bytes' } as const;
  const indexed = { isLowerBetter: true, ours: 'logstrata-in-place-indexed' } as const;
  return [
    line({ ...attach, ours: 'logstrata-in-place' }, ({ seconds }, rows) => rows / seconds),
    line(
      { ...attach, id: 'index', title: 'attaching and indexing files', ours: indexed.ours },
      ({ seconds }, rows) => rows / seconds,
    ),
    line({ ...memory, ...indexed }, ({ rssBytes }) => rssBytes),
    line({ ...size, ...indexed }, ({ bytes }) => bytes),
  ];
}

/** The lines about loading and size on disk for a set. */
export function describeLoading(set: RecordSet, loaded: readonly LoadedSide[]): ResultLine[] {
  if (loaded.some(({ options: { side } }) => isOverFiles(side))) return describeAttaching(set, loaded);
  const prefix = set.name === 'web' ? '' : `${set.name}-`;
  const counted = loaded.filter(({ options }) => !withoutStore.includes(options.side));
  return loadingLines.map(({ id, title, unit, isLowerBetter, ours, target, value }) =>
    compareLine({
      id: `${prefix}${id}`,
      title: prefix === '' ? title : `${set.name}: ${title}`,
      set: set.name,
      unit,
      isLowerBetter,
      ours,
      figures: Object.fromEntries(
        counted.map(({ options, figures }) => [options.side, spreadOf([value(figures, set.rows)])]),
      ),
      ...(prefix === '' ? { target } : {}),
    }),
  );
}
