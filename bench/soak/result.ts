import type { MachineDescription } from '../machine.js';
import { meanOf, slopeOf } from '../slope.js';

/** The options of the soak test. */
export interface SoakOptions {
  readonly minutes: number;
  /** Lines per second. */
  readonly rate: number;
  readonly clients: number;
  /** Bound on the decoded columns of queries in MiB. With the default, the growing cache would hide other growth of memory. */
  readonly cacheMib: number;
}

/** The values that are sampled each second. */
export const gauges = ['rssBytes', 'lagMs', 'handles', 'diskBytes', 'cpuCores'] as const;
export type Gauge = (typeof gauges)[number];

/** The values at a time, in seconds since the start. */
export type Sample = { readonly seconds: number } & Readonly<Record<Gauge, number>>;

/** The result of a soak test as it is written to the JSON file. */
export interface SoakResult {
  readonly format: 'logstrata-soak/1';
  readonly startedAt: string;
  readonly machine: MachineDescription;
  readonly settings: SoakOptions;
  readonly lines: {
    readonly written: number;
    readonly stored: number;
    /** Removed by retention. */
    readonly removed: number;
    readonly rejected: number;
    readonly perSecond: number;
  };
  readonly rotations: number;
  /** Number of sealed segments at the end. */
  readonly segments: number;
  readonly clients: { readonly count: number; readonly pages: number; readonly records: number };
  /** Figures after the warm-up, which is the first third of the run. */
  readonly steady: {
    /** Slope of the linear regression of memory over time, per hour, relative to the mean. */
    readonly rssSlopePerHour: number;
    readonly rssMeanBytes: number;
    readonly handlesFirst: number;
    readonly handlesLast: number;
    readonly lagMedianMs: number;
    readonly lagP99Ms: number;
    readonly lagMaxMs: number;
    readonly cpuMeanCores: number;
  };
  readonly samples: readonly Sample[];
}

const warmUpPart = 1 / 3;

/** The figures of the samples after the warm-up. */
export function steadyState(samples: readonly Sample[]): SoakResult['steady'] {
  const steady = samples.slice(Math.floor(samples.length * warmUpPart));
  const of = (gauge: Gauge): number[] => steady.map((sample) => sample[gauge]);
  const perSecond = slopeOf(
    steady.map(({ seconds }) => seconds),
    of('rssBytes'),
  );
  const rssMeanBytes = meanOf(of('rssBytes'));
  const lags = of('lagMs').sort((a, b) => a - b);
  const lagAt = (part: number): number => lags[Math.floor((lags.length - 1) * part)] ?? NaN;
  const tenth = Math.ceil(steady.length / 10);
  return {
    rssSlopePerHour: (perSecond * 3600) / rssMeanBytes,
    rssMeanBytes,
    handlesFirst: meanOf(of('handles').slice(0, tenth)),
    handlesLast: meanOf(of('handles').slice(-tenth)),
    lagMedianMs: lagAt(0.5),
    lagP99Ms: lagAt(0.99),
    lagMaxMs: lagAt(1),
    cpuMeanCores: meanOf(of('cpuCores')),
  };
}
