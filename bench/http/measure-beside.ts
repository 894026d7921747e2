import { setTimeout } from 'node:timers/promises';
import { compareLine, type ResultLine } from '../result.js';
import { quantile, spreadOf } from '../spread.js';
import { askAndLeave, driveRequests, type Leaving } from './client.js';
import type { ServerProcess } from './server-process.js';

/** Questions to a server that has both much and little to do. */
export interface BesidePlan {
  /** A short answer. */
  readonly newest: string;
  /** Every record is looked at; nothing is sent before that. */
  readonly scan: string;
  /** A long answer, whose first bytes come at once. */
  readonly bulk: string;
  readonly turns: number;
  readonly seconds: number;
}

/** A server is watched for so long after a client has left, and left alone for so long before. */
const watchedMs = 500;
const restMs = 200;
/** A collection of garbage or a compilation that falls into one of them is no work for the client: the median is to be without it. */
const leavingTurnsMin = 7;
/** Soon enough that a scan over millions of records has not ended. */
const scanLeftMs = 10;

function percentile99(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.99,
  );
}

/** How long the slowest of short answers take, alone and while another client has every record scanned without a pause. */
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
 * How much the server still works for a client that has left: processor time of all of its threads within half a second. None where the
 * system does not tell.
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
    // So that what the scan reads is in memory: otherwise the first to leave would wait for the disk.
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
