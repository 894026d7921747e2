import { expect, it } from 'vitest';
import { fc } from '../cases.js';
import { placeRuns } from '../../engine/store/load/gathered-rows.js';
import type { Run } from '../../engine/store/manifest/manifest.js';

const partitionMs = 3_600_000;

interface Placed {
  readonly timeMs: number;
  readonly late: boolean;
  readonly row: number;
}

/** Cuts rows into segments of at most `rowsMax` rows, given as row counts by partition. */
function segmentsOf(times: readonly number[], rowsMax: number): [number, number][][] {
  const segments: [number, number][][] = [];
  for (let i = 0; i < times.length; i++) {
    if (i % rowsMax === 0) segments.push([]);
    const partition = Math.floor(times[i]! / partitionMs);
    const last = segments.at(-1)!.at(-1);
    if (last?.[0] === partition) last[1]++;
    else segments.at(-1)!.push([partition, 1]);
  }
  return segments;
}

/** The ordinal of each row, taken from the runs of its segment. */
function ordinalsOf(segments: readonly (readonly Run[])[]): string[] {
  return segments.flatMap((runs) => {
    let rows = 0;
    return runs.flatMap((run) => {
      expect(run.firstRow).toBe(rows);
      rows += run.rows;
      return Array.from({ length: run.rows }, (_, i) => `${run.partition}:${run.firstOrdinal + i}`);
    });
  });
}

it('late and punctual rows share the ordinals of each partition in order of time', () => {
  const times = fc
    .array(fc.integer({ min: 1, max: 60 }).map((step) => partitionMs + step * 300_000))
    .map((list) => list.sort((a, b) => a - b));
  fc.assert(
    fc.property(times, times, fc.integer({ min: 1, max: 9 }), fc.nat(5), (inTime, late, rowsMax, first) => {
      const all: Placed[] = [
        ...inTime.map((timeMs, row) => ({ timeMs, late: false, row })),
        ...late.map((timeMs, row) => ({ timeMs, late: true, row })),
      ].sort((a, b) => a.timeMs - b.timeMs);
      const next = new Map<number, number>();
      const wanted: Record<'in' | 'late', string[]> = { in: [], late: [] };
      for (const placed of all) {
        const partition = Math.floor(placed.timeMs / partitionMs);
        const ordinal = next.get(partition) ?? 1 + first;
        next.set(partition, ordinal + 1);
        wanted[placed.late ? 'late' : 'in'][placed.row] = `${partition}:${ordinal}`;
      }
      const after = late.map((timeMs) => inTime.filter((other) => other <= timeMs).length);
      const starts = [...next.keys()].map((partition) => [partition, 1 + first] as const);
      const runs = placeRuns(segmentsOf(inTime, rowsMax), segmentsOf(late, rowsMax), after, starts);
      expect(ordinalsOf(runs.inTime)).toEqual(wanted.in);
      expect(ordinalsOf(runs.late)).toEqual(wanted.late);
    }),
  );
});
