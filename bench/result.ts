import type { MachineDescription } from './machine.js';
import type { SetName } from './question.js';
import type { Spread } from './spread.js';

/** What a line's figures count. */
export type Unit = 'ms' | 'records/s' | 'bytes' | 'requests/s' | 'bytes/s';

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
  /** The peer that was best, and how many times better than it we are (below 1: worse). Null without a peer. */
  readonly best: { readonly side: string; readonly advantage: number } | null;
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

/** Finds the best peer of a line and how we compare with it. */
export function compareLine(line: Omit<ResultLine, 'best'>): ResultLine {
  const ours = line.figures[line.ours];
  let best: ResultLine['best'] = null;
  for (const [side, { median }] of Object.entries(line.figures)) {
    if (isOurs(side) || ours === undefined) continue;
    // The best peer is the one that leaves us the smallest advantage. Figures of 0 are below the clock's resolution.
    const advantage = line.isLowerBetter
      ? Math.max(median, 1e-6) / Math.max(ours.median, 1e-6)
      : ours.median / Math.max(median, 1e-6);
    if (best === null || advantage < best.advantage) best = { side, advantage };
  }
  return { ...line, best };
}
