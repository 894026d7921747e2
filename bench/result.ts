import type { MachineDescription } from './machine.js';
import type { SetName } from './question.js';
import { isIndexed } from './side.js';
import type { Spread } from './spread.js';

/** The unit of a line's figures. */
export type Unit = 'ms' | 'records/s' | 'bytes' | 'requests/s' | 'bytes/s';

/** A peer, and the factor by which our side is better; below 1 it is worse. */
export interface Rival {
  readonly side: string;
  readonly advantage: number;
}

/** A line of the table: a measurement on every side that can do it. */
export interface ResultLine {
  readonly id: string;
  readonly title: string;
  readonly set: SetName;
  readonly unit: Unit;
  readonly isLowerBetter: boolean;
  /** Our side that the line is about. */
  readonly ours: string;
  /** The figures by side, ours included. A side that can't do it is missing. */
  readonly figures: Readonly<Record<string, Spread>>;
  /** The answer of all sides, where the line is about a question. */
  readonly answer?: { readonly rows: number; readonly bytes: number; readonly digest: string };
  /** The best peer without an index; null where there is none. */
  readonly best: Rival | null;
  /** The peers with an index for needles, best first. */
  readonly indexed: readonly Rival[];
  /** The target with 10 M records. */
  readonly target?: string;
}

/** A peer that is not in the table, and the reason. */
export interface MissingPeer {
  readonly peer: string;
  readonly reason: string;
}

/** The result of a run as it is written to the JSON file. */
export interface BenchResult {
  readonly format: 'logstrata-bench/1';
  readonly name: string;
  readonly startedAt: string;
  readonly seconds: number;
  readonly machine: MachineDescription;
  readonly settings: {
    readonly threads: number;
    readonly cacheBytes: number;
    readonly turns: number;
    readonly httpSeconds: number;
  };
  readonly sets: readonly {
    readonly name: SetName;
    readonly rows: number;
    readonly bytes: number;
    readonly days: number;
  }[];
  readonly versions: Readonly<Record<string, string>>;
  readonly missing: readonly MissingPeer[];
  readonly lines: readonly ResultLine[];
}

/** Whether a side is one of ours. */
export function isOurs(side: string): boolean {
  return side.startsWith('logstrata');
}

/** Adds the comparison with the best peer, and with the peers that have an index. */
export function compareLine(line: Omit<ResultLine, 'best' | 'indexed'>): ResultLine {
  const ours = line.figures[line.ours];
  const rivals: Rival[] = [];
  for (const [side, { median }] of Object.entries(line.figures)) {
    if (isOurs(side) || ours === undefined) continue;
    // A figure of 0 is below the resolution of the clock.
    const advantage = line.isLowerBetter
      ? Math.max(median, 1e-6) / Math.max(ours.median, 1e-6)
      : ours.median / Math.max(median, 1e-6);
    rivals.push({ side, advantage });
  }
  // The best peer is the one over which our advantage is smallest.
  rivals.sort((a, b) => a.advantage - b.advantage);
  return {
    ...line,
    best: rivals.find(({ side }) => !isIndexed(side)) ?? null,
    indexed: rivals.filter(({ side }) => isIndexed(side)),
  };
}
