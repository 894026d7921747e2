import { setTimeout } from 'node:timers/promises';
import { compareLine, type ResultLine } from '../result.js';
import { quantile, spreadOf } from '../spread.js';
import { askAndLeave, driveRequests, type Leaving } from './client.js';
import type { ServerProcess } from './server-process.js';

/** Requests to a server that is busy with other requests. */
export interface BesidePlan {
  /** A path with a short response. */
  readonly newest: string;
  /** A path whose query examines every record before anything is sent. */
  readonly scan: string;
  /** A path with a long response, whose first bytes are sent at once. */
  readonly bulk: string;
  readonly turns: number;
  readonly seconds: number;
}

/** Milliseconds for which the server is observed after a client has left, and for which it is idle before. */
const watchedMs = 500;
const restMs = 200;
/**
 * Minimum number of turns. Garbage collection or JIT compilation during some of them is not work for the client, so it must not affect the
 * median.
 */
const leavingTurnsMin = 7;
/** Milliseconds after which a client leaves during a scan: a scan over millions of records takes longer. */
const scanLeftMs = 10;

function percentile99(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.99,
  );
}

/** Measures the 99th percentile of the times of short responses: alone, and while another client causes scans of all records without a pause. */
export async function measureBeside(server: ServerProcess, plan: BesidePlan): Promise<ResultLine> {
  const newest = new URL(plan.newest, server.origin);
  const scan = new URL(plan.scan, server.origin);
  const alone: number[] = [];
  const beside: number[] = [];
  for (let turn = 0; turn < plan.turns; turn++) {
    alone.push(percentile99((await driveRequests([newest], 1, plan.seconds)).answeredMs));
    const [{ answeredMs }] = await Promise.all([
      driveRequests([newest], 1, plan.seconds),
      driveRequests([scan], 1, plan.seconds),
    ]);
    beside.push(percentile99(answeredMs));
  }
  return compareLine({
    id: 'http-beside',
    title: 'HTTP, newest 100 beside scans of every record, 99th percentile',
    set: 'web',
    unit: 'ms',
    isLowerBetter: true,
    ours: 'logstrata',
    figures: { logstrata: spreadOf(beside), 'logstrata alone': spreadOf(alone) },
  });
}

/**
 * Measures how much a server still works for a client that has left: the CPU time of all threads within half a second. Empty where the
 * system does not provide it.
 */
export async function measureLeaving(server: ServerProcess, plan: BesidePlan): Promise<ResultLine[]> {
  if (Number.isNaN(server.busyMs)) return [];
  const cases: readonly [id: string, title: string, path: string, leaving: Leaving][] = [
    ['http-left-bulk', 'in the middle of a long answer', plan.bulk, 'first bytes'],
    ['http-left-scan', 'in the middle of a scan', plan.scan, { afterMs: scanLeftMs }],
  ];
  const lines: ResultLine[] = [];
  for (const [id, title, path, leaving] of cases) {
    const url = new URL(path, server.origin);
    // Loads what the scan reads into memory, so that the first client does not wait for the disk.
    await driveRequests([url], 1, 0);
    const workedMs: number[] = [];
    for (let turn = 0; turn < Math.max(plan.turns, leavingTurnsMin); turn++) {
      await setTimeout(restMs);
      await askAndLeave(url, leaving);
      const leftMs = server.busyMs;
      await setTimeout(watchedMs);
      workedMs.push(server.busyMs - leftMs);
    }
    lines.push(
      compareLine({
        id,
        title: `HTTP, processor time after the client has left ${title}`,
        set: 'web',
        unit: 'ms',
        isLowerBetter: true,
        ours: 'logstrata',
        figures: { logstrata: spreadOf(workedMs) },
        target: '≤ 50',
      }),
    );
  }
  return lines;
}
