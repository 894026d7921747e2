import { describe, expect, it } from 'vitest';
import {
  filesToFree,
  leastFilledShard,
  leftoversToDrop,
  segmentsToShip,
} from '../../engine/far/ship-agent.js';
import { proposeRewrite } from '../../engine/maintenance/compaction.js';
import type { FarCopy } from '../../engine/store/manifest/manifest.js';
import { manifestOf, segmentOf } from '../engine/maintenance/segments.js';

const dayMs = 86_400_000;
const today = 20_000;
const nowMs = (today + 1) * dayMs - 1;
const policy = { afterMs: 7 * dayMs, keepLocalMs: dayMs };

const copyOf = (more: Partial<FarCopy> = {}): FarCopy => ({
  unit: '0'.repeat(16),
  attempt: '1'.repeat(16),
  shard: 0,
  rows: 10,
  bytes: 100,
  checksum: '2'.repeat(16),
  shippedMs: nowMs,
  isOnly: false,
  ...more,
});

describe('the segments to ship', () => {
  it('are those of days that ended long enough ago, the oldest first, each once', () => {
    const old = segmentOf(today - 9, 10);
    const older = segmentOf(today - 20, 10);
    const shipped = segmentOf(today - 30, 10, { far: copyOf() });
    const young = segmentOf(today - 7, 10);
    const manifest = manifestOf([segmentOf(today, 1, {}, 23), old, young, shipped, older]);
    expect(segmentsToShip(manifest, policy, nowMs)).toEqual([older, old]);
  });

  it('do not become more when a clock jumps ahead', () => {
    const manifest = manifestOf([segmentOf(today, 10)]);
    expect(segmentsToShip(manifest, policy, nowMs + 1000 * dayMs)).toEqual([]);
  });

  it('exclude segments that were brought back, unless all are asked for', () => {
    const back = segmentOf(today - 9, 10, { stays: true });
    const manifest = manifestOf([segmentOf(today, 1, {}, 23), back]);
    expect(segmentsToShip(manifest, policy, nowMs)).toEqual([]);
    expect(segmentsToShip(manifest, { ...policy, shipsAll: true }, nowMs)).toEqual([back]);
  });

  it('are chosen by the times of imported records, whose positions say nothing about time', () => {
    const imported = (day: number) => {
      const segment = segmentOf(day, 10, { timeMinMs: 0, timeMaxMs: day * dayMs });
      return { ...segment, runs: [{ ...segment.runs[0]!, partition: 0 }] };
    };
    const [young, old] = [imported(today - 1), imported(today - 20)];
    const manifest = manifestOf([segmentOf(today, 1, {}, 23), young, old]);
    expect(segmentsToShip(manifest, policy, nowMs)).toEqual([old]);
  });

  it('are freed on this machine after a delay, and dropped in the cluster after a longer one', () => {
    const fresh = segmentOf(today - 9, 10, { far: copyOf() });
    const due = segmentOf(today - 9, 10, { far: copyOf({ shippedMs: nowMs - dayMs }) });
    const gone = segmentOf(today - 9, 10, { far: copyOf({ isOnly: true, shippedMs: 0 }) });
    const leftover = { unit: '0'.repeat(16), attempt: '3'.repeat(16), shard: 1, sinceMs: nowMs - 60_000 };
    const manifest = { ...manifestOf([fresh, due, gone]), farLeftovers: [leftover] };
    expect(filesToFree(manifest, policy, nowMs)).toEqual([due.file]);
    expect(leftoversToDrop(manifest, nowMs, 60_000)).toEqual([leftover]);
    expect(leftoversToDrop(manifest, nowMs, 60_001)).toEqual([]);
  });

  it('go to the shard with the fewest rows', () => {
    const manifest = manifestOf([
      segmentOf(1, 10, { far: copyOf({ shard: 0, rows: 10 }) }),
      segmentOf(2, 10, { far: copyOf({ shard: 2, rows: 5 }) }),
    ]);
    expect(leastFilledShard(manifest, 3)).toBe(1);
    expect(leastFilledShard(manifest, 1)).toBe(0);
  });

  it('are not compacted once they are shipped', () => {
    const small = Array.from({ length: 30 }, () => segmentOf(today - 9, 10, { far: copyOf() }));
    const thorough = { nowMs, zstdAfterMs: null, thorough: true };
    expect(proposeRewrite(manifestOf(small), thorough)).toBeUndefined();
    expect(
      proposeRewrite(manifestOf([...small, segmentOf(today - 9, 5), segmentOf(today - 9, 6)]), thorough)
        ?.segments,
    ).toHaveLength(2);
  });
});
