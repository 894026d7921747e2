import type { MachineDescription } from './machine.js';
import type { SetName } from './question.js';
import { isIndexed } from './side.js';
import type { Spread } from './spread.js';

/** What a line's figures count. */
export type Unit = 'ms' | 'records/s' | 'bytes' | 'requests/s' | 'bytes/s';

/** A peer, and how many times better than it we are (below 1: worse). */
export interface Rival {
  readonly side: string;
  readonly advantage: number;
}

/** One line of the table: one thing that was measured, on every side that can do it. */
export interface ResultLine {
  readonly id: string;
  readonly title: string;
  readonly set: SetName;
  readonly unit: Unit;
  readonly isLowerBetter: boolean;
  /** The side of ours that the line is about. */
  readonly ours: string;
  /** Figures by side, ours among them. A side that can't do it is not there. */
  readonly figures: Readonly<Record<string, Spread>>;
  /** The answer that all sides gave, where the line is about a question. */
  readonly answer?: { readonly rows: number; readonly bytes: number; readonly digest: string };
  /** The best peer without an index. Null without a peer. */
  readonly best: Rival | null;
  /** The peers with an index for needles, the best first. */
  readonly indexed: readonly Rival[];
  /** What we want to reach with 10 M records. */
  readonly target?: string;
}

/** A peer that is not in the table, and why. */
export interface MissingPeer {
  readonly peer: string;
  readonly reason: string;
}

/** The machine-readable record of a run. */
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

/** Finds the best peer of a line, and how we compare with it and with those that have an index. */
export function compareLine(line: Omit<ResultLine, 'best' | 'indexed'>): ResultLine {
  const ours = line.figures[line.ours];
  const rivals: Rival[] = [];
  for (const [side, { median }] of Object.entries(line.figures)) {
    if (isOurs(side) || ours === undefined) continue;
    // Figures of 0 are below the clock's resolution.
    const advantage = line.isLowerBetter
      ? Math.max(median, 1e-6) / Math.max(ours.median, 1e-6)
      : ours.median / Math.max(median, 1e-6);
    rivals.push({ side, advantage });
  }
  // The best peer is the one that leaves us the smallest advantage.
  rivals.sort((a, b) => a.advantage - b.advantage);
  return {
    ...line,
    best: rivals.find(({ side }) => !isIndexed(side)) ?? null,
    indexed: rivals.filter(({ side }) => isIndexed(side)),
  };
}
