import { describe, expect, it } from 'vitest';
import { fc } from '../../cases.js';
import { extendRetention, proposeRetirement } from '../../../engine/store/manifest/retention-policy.js';
import { proposeRewrite } from '../../../engine/maintenance/compaction.js';
import {
  liveRows,
  type RetentionPolicy,
  type SegmentEntry,
} from '../../../engine/store/manifest/manifest.js';
import { manifestOf, rowBytes, segmentOf } from './segments.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const today = 20_000;
const forEver: RetentionPolicy = { periodMs: null, bytesMax: null };

/** A segment of `day` with the same number of records in each of the hours. */
function spread(
  day: number,
  hours: readonly number[],
  rowsEach: number,
  more: Partial<SegmentEntry> = {},
): SegmentEntry {
  const rows = rowsEach * hours.length;
  const runs = hours.map((hour, i) => {
    return { partition: day * 24 + hour, firstOrdinal: 1, firstRow: i * rowsEach, rows: rowsEach };
  });
  return { ...segmentOf(day, rows, more), runs };
}

const allDay = Array.from({ length: 24 }, (_, hour) => hour);

describe('retention', () => {
  it('removes expired segments, hides the expired part of a segment, and keeps all others', () => {
    const segments = [0, 1, 2, 3].map((back) => spread(today - back, allDay, 100));
    const manifest = manifestOf(segments);
    const nowMs = (today + 1) * dayMs;
    const policy = { ...forEver, periodMs: 2.5 * dayMs };
    const first = proposeRetirement({ ...manifest, hotBytes: 0, hotRuns: [] }, policy, nowMs)!;
    expect(first.removes).toEqual([segments[3]!.file]);
    expect(first.segments.slice(0, 2)).toEqual(segments.slice(0, 2));
    expect(first.segments[2]).toEqual({ ...segments[2], liveFrom: (today - 2) * 24 + 12 });
    expect(first.retired).toEqual({
      records: 3600,
      bytes: segments[3]!.bytes,
      segments: 1,
      below: (today - 2) * 24 + 12,
    });
    const after = { ...manifest, ...first };
    expect(proposeRetirement({ ...after, hotBytes: 0, hotRuns: [] }, policy, nowMs)).toBeUndefined();
    const later = proposeRetirement(
      { ...after, hotBytes: 0, hotRuns: [] },
      { ...forEver, periodMs: 2 * dayMs },
      nowMs,
    )!;
    expect(later.removes).toEqual([segments[2]!.file]);
    expect(later.retired).toMatchObject({ records: 4800, segments: 2 });
  });

  it('removes imported records in order of their times, and keeps those without a time', () => {
    const imported = (back: number | null, firstOrdinal: number): SegmentEntry => ({
      ...segmentOf(0, 1000, { timeMaxMs: back === null ? null : (today - back) * dayMs }, 0, firstOrdinal),
    });
    const old = imported(9, 1);
    const segments = [old, imported(3, 2001), imported(null, 4001), spread(today, allDay, 100)];
    const target = { ...manifestOf(segments), hotBytes: 0, hotRuns: [] };
    const nowMs = (today + 1) * dayMs;
    const left = (policy: RetentionPolicy): number[] => {
      const proposed = proposeRetirement(target, policy, nowMs);
      return segments.flatMap((segment, i) =>
        (proposed?.segments ?? segments).includes(segment) ? [i] : [],
      );
    };
    expect(left({ ...forEver, periodMs: 20 * dayMs })).toEqual([0, 1, 2, 3]);
    expect(left({ ...forEver, periodMs: 5 * dayMs })).toEqual([1, 2, 3]);
    expect(left({ ...forEver, periodMs: 2 * dayMs })).toEqual([2, 3]);
    const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    expect(left({ ...forEver, bytesMax: bytes - 1 })).toEqual([1, 2, 3]);
    const proposed = proposeRetirement(target, { ...forEver, periodMs: 5 * dayMs }, nowMs)!;
    expect(proposed.removes).toEqual([old.file]);
    expect(proposed.taken).toMatchObject({ records: 1000, fromMs: (today - 9) * dayMs });
  });

  it('counts age from the newest position if the clock is ahead of it, and from the clock if the clock is behind', () => {
    const manifest = manifestOf([spread(today, allDay, 10), spread(today - 1, allDay, 10)]);
    const policy = { ...forEver, periodMs: 2 * dayMs };
    expect(
      proposeRetirement({ ...manifest, hotBytes: 0, hotRuns: [] }, policy, (today + 4000) * dayMs),
    ).toBeUndefined();
    expect(
      proposeRetirement(
        { ...manifest, hotBytes: 0, hotRuns: [] },
        { ...forEver, periodMs: dayMs },
        (today + 4000) * dayMs,
      ),
    ).toBeDefined();
    expect(
      proposeRetirement(
        { ...manifest, hotBytes: 0, hotRuns: [] },
        { ...forEver, periodMs: dayMs },
        today * dayMs,
      ),
    ).toBeUndefined();
  });

  it('by size removes the oldest hours and no more than necessary, and never the newest', () => {
    const manifest = manifestOf([spread(today, [0, 1, 2, 3], 1000), spread(today - 1, [5, 6], 1000)]);
    const keep = (rows: number, hotBytes = 0) =>
      proposeRetirement(
        { ...manifest, hotBytes, hotRuns: [] },
        { ...forEver, bytesMax: rows * rowBytes },
        today * dayMs,
      );
    expect(keep(6000)).toBeUndefined();
    expect(keep(5999)).toMatchObject({
      removes: [],
      retired: { records: 1000, below: (today - 1) * 24 + 6 },
    });
    expect(keep(6000, 1)).toMatchObject({ retired: { records: 1000 } });
    expect(keep(4000)).toMatchObject({ removes: [manifest.segments[1]!.file], retired: { records: 2000 } });
    expect(keep(1)).toMatchObject({ retired: { records: 5000, below: today * 24 + 3 } });
  });

  it('by size does not count records that are already removed', () => {
    const rest = spread(today - 1, [5, 6], 1000, { liveFrom: (today - 1) * 24 + 6 });
    // Records that were loaded although they were older than the period lie below the removed ones.
    const old = spread(today - 300, [0], 1000);
    const manifest = { ...manifestOf([spread(today, [0], 1000), rest, old]), hotBytes: 0, hotRuns: [] };
    const keep = (rows: number) =>
      proposeRetirement(manifest, { ...forEver, bytesMax: rows * rowBytes }, today * dayMs);
    expect(keep(3000)).toBeUndefined();
    expect(keep(2999)).toMatchObject({ removes: [old.file], retired: { records: 1000 } });
  });

  it('never lowers the recorded limit, even when it removes older records after the clock went back', () => {
    const below = today * 24;
    const manifest = {
      ...manifestOf([segmentOf(today - 300, 5), segmentOf(today, 1)]),
      retired: { records: 7, bytes: 0, segments: 0, below },
      ...{ hotBytes: 0, hotRuns: [] },
    };
    const policy = { ...forEver, periodMs: 7 * dayMs };
    expect(proposeRetirement(manifest, policy, today * dayMs)).toMatchObject({
      retired: { records: 12, segments: 1, below },
    });
  });

  it('keeps records that were loaded although older than the period for that period from their load on', () => {
    const counts = [[(today - 300) * 24, 5] as const, [today * 24, 7] as const];
    const load = {
      agent: 'web',
      counts,
      highestPartition: 0,
      nowMs: today * dayMs + 1,
      beyondRetention: false,
    };
    expect(() => extendRetention(load, 7 * dayMs)).toThrow(/5 of 12 records are older.*--beyond-retention/);
    expect(extendRetention(load, 301 * dayMs)).toBeUndefined();
    expect(extendRetention(load, null)).toBeUndefined();
    const extension = extendRetention({ ...load, beyondRetention: true }, 7 * dayMs)!;
    expect(extension).toEqual({ below: (today - 7) * 24, keepUntilMs: (today + 7) * dayMs + hourMs });

    const old = segmentOf(today - 300, 5, { keepUntilMs: extension.keepUntilMs });
    const at = (day: number) => {
      const manifest = manifestOf([old, segmentOf(day, 1)]);
      return proposeRetirement(
        { ...manifest, hotBytes: 0, hotRuns: [] },
        { ...forEver, periodMs: 7 * dayMs },
        day * dayMs + 2 * hourMs,
      );
    };
    expect(at(today + 6)).toBeUndefined();
    expect(at(today + 7)).toMatchObject({ removes: [old.file] });
  });

  it('removes exactly the records of the expired hours, whatever the segments', () => {
    const segments = fc.array(
      fc.record({
        day: fc.integer({ min: 0, max: 9 }),
        hours: fc
          .uniqueArray(fc.nat(23), { minLength: 1, maxLength: 6 })
          .map((all) => all.sort((a, b) => a - b)),
      }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(segments, fc.integer({ min: 1, max: 240 }), fc.nat(300), (list, periodHours, nowHours) => {
        const manifest = manifestOf(list.map(({ day, hours }) => spread(today + day, hours, 3)));
        const nowMs = today * dayMs + nowHours * hourMs + 1;
        const found = proposeRetirement(
          { ...manifest, hotBytes: 0, hotRuns: [] },
          { ...forEver, periodMs: periodHours * hourMs },
          nowMs,
        );
        const newest = Math.max(
          0,
          ...manifest.segments.flatMap(({ runs }) => runs.map(({ partition }) => partition)),
        );
        const referenceMs = Math.min(nowMs, (newest + 1) * hourMs);
        let expected = 0;
        for (const { runs } of manifest.segments)
          for (const { partition, rows } of runs)
            if ((partition + 1) * hourMs + periodHours * hourMs > referenceMs) expected += rows;
        const left = (found?.segments ?? manifest.segments).reduce((sum, entry) => sum + liveRows(entry), 0);
        expect(left).toBe(expected);
        expect(found?.segments.every((entry) => liveRows(entry) > 0) ?? true).toBe(true);
      }),
    );
  });
});

describe('space of records that retention removed from a file', () => {
  it('is reclaimed once it exceeds a sixth of the live bytes', () => {
    const policy = { nowMs: today * dayMs, zstdAfterMs: null, thorough: false };
    const part = spread(today - 6, allDay, 100, { liveFrom: (today - 6) * 24 + 20 });
    const days = (count: number) =>
      [0, 1, 2, 3, 4].slice(0, count).map((back) => spread(today - back, allDay, 100));
    expect(proposeRewrite(manifestOf([part, ...days(5)]), policy)).toBeUndefined();
    expect(proposeRewrite(manifestOf([part, ...days(4)]), policy)).toEqual({
      segments: [part],
      codec: 'lz4',
    });
    expect(proposeRewrite(manifestOf([part, ...days(5)]), { ...policy, thorough: true })).toBeDefined();
  });
});
