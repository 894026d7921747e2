import { describe, expect, it } from 'vitest';
import { fc } from '../../cases.js';
import { proposeRewrite, type CompactionPolicy } from '../../../engine/maintenance/compaction.js';
import { rowGroupRowsMax, segmentFanIn, smallSegmentsMax } from '../../../engine/core/limits.js';
import {
  segmentsToRefilter,
  versionToWrite,
  type SegmentEntry,
} from '../../../engine/store/manifest/manifest.js';
import type { Field } from '../../../engine/core/schema.js';
import { manifestOf, rewritten, segmentOf } from './segments.js';

const dayMs = 86_400_000;
const today = 20_000;

function policyAt(day: number, more: Partial<CompactionPolicy> = {}): CompactionPolicy {
  return { nowMs: (day + 0.5) * dayMs, zstdAfterMs: 7 * dayMs, thorough: false, ...more };
}

/** Simulates a store: segments arrive, and every proposed rewrite is carried out. Counts how many records were rewritten. */
class Simulation {
  segments: SegmentEntry[] = [];
  rowsCommitted = 0;
  rowsRewritten = 0;
  jobs = 0;

  commit(day: number, rows: number, of = day): void {
    this.segments.push(segmentOf(of, rows));
    this.rowsCommitted += rows;
    this.settle(day);
  }

  settle(day: number): void {
    const highest = Math.max(...this.segments.map((segment) => segment.runs[0]!.partition), day * 24 + 23);
    for (;;) {
      const rewrite = proposeRewrite(manifestOf(this.segments, highest), policyAt(day));
      if (rewrite === undefined) return;
      this.jobs++;
      const merged = rewritten(rewrite);
      this.rowsRewritten += merged.rows;
      this.segments = [...this.segments.filter((segment) => !rewrite.segments.includes(segment)), merged];
      expect(this.jobs).toBeLessThan(100_000);
    }
  }

  filesOf(day: number): number {
    return this.segments.filter((segment) => Math.floor(segment.runs[0]!.partition / 24) === day).length;
  }
}

describe('rewrites that are proposed in the background', () => {
  it('leave a quiet agent with at most two files a day, and with at most 800 after a year', () => {
    const life = new Simulation();
    for (let day = today; day < today + 365; day++) {
      for (let commit = 0; commit < 24; commit++) life.commit(day, 42);
      life.commit(day, 3, day - 1);
    }
    for (let day = today; day < today + 365; day++) expect(life.filesOf(day)).toBeLessThanOrEqual(2);
    expect(life.segments.length).toBeLessThanOrEqual(800);
  });

  it('rewrite a record at most three times at ten million records a day, and merge small segments that have waited long', () => {
    const life = new Simulation();
    const days = 12;
    for (let day = today; day < today + days; day++) {
      for (let rows = 0; rows < 10_000_000; rows += rowGroupRowsMax) life.commit(day, rowGroupRowsMax);
    }
    expect(life.rowsRewritten / life.rowsCommitted).toBeLessThanOrEqual(3);
    expect(life.filesOf(today)).toBeLessThanOrEqual(4);
    expect(life.filesOf(today + days - 1)).toBeLessThanOrEqual(3 * segmentFanIn);
    for (const { codec, runs } of life.segments) {
      expect(codec).toBe(Math.floor(runs[0]!.partition / 24) <= today + days - 9 ? 'zstd' : 'lz4');
    }
  });

  it('come to an end with a bounded number of files a day, whatever was committed', () => {
    const commits = fc.array(
      fc.record({ day: fc.nat(12), rows: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.nat(3_000_000)) }),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(commits, (list) => {
        const life = new Simulation();
        for (const { day, rows } of list) life.commit(today + 12, rows + 1, today + day);
        for (let day = today; day <= today + 12; day++) {
          const open = life.segments.filter(
            (segment) => Math.floor(segment.runs[0]!.partition / 24) === day && segment.rows < 2_000_000,
          );
          expect(open.length).toBeLessThanOrEqual(smallSegmentsMax + 3 * (segmentFanIn - 1));
        }
      }),
    );
  });

  it('give ZSTD to days of the configured age, counted from the clock or from the newest position, whichever is lower', () => {
    const old = segmentOf(today - 8, 50_000);
    const young = segmentOf(today - 7, 50_000);
    const newest = segmentOf(today, 50_000, {}, 12);
    const manifest = manifestOf([old, young, newest]);
    expect(proposeRewrite(manifest, policyAt(today))).toEqual({ segments: [old], codec: 'zstd' });
    // A clock that has jumped ahead does not make any segment older.
    expect(proposeRewrite(manifest, policyAt(today + 300))).toEqual({ segments: [old], codec: 'zstd' });
    expect(proposeRewrite(manifest, policyAt(today - 5))).toBeUndefined();
    expect(proposeRewrite(manifest, policyAt(today, { zstdAfterMs: null }))).toBeUndefined();
    expect(proposeRewrite(manifest, policyAt(today), new Set([old.file]))).toBeUndefined();
  });

  it('leave out a segment that is too small to gain from ZSTD, and never go back from ZSTD', () => {
    const small = segmentOf(today - 30, 500);
    const dense = segmentOf(today, 50_000, { codec: 'zstd' });
    expect(proposeRewrite(manifestOf([small, dense]), policyAt(today))).toBeUndefined();
  });

  it('merge neither different days nor different schema versions', () => {
    const segments = [0, 1, 2, 3, 4, 5].map((i) =>
      segmentOf(today - (i % 2), 10, { schemaVersion: 1 + (i % 3) }),
    );
    expect(proposeRewrite(manifestOf(segments), policyAt(today))).toBeUndefined();
    const third = [...segments, segmentOf(today, 10), segmentOf(today, 10)];
    const { segments: merged } = proposeRewrite(manifestOf(third), policyAt(today))!;
    expect(merged.map(({ schemaVersion }) => schemaVersion)).toEqual([1, 1, 1]);
  });
});

describe('segments whose filters differ from those that the fields ask for', () => {
  const fieldsOf = (...names: string[]): Field[] => names.map((name) => ({ name, type: 'string' }));
  const schemas = [
    { version: 1, schema: { fields: fieldsOf('message') } },
    { version: 2, schema: { fields: fieldsOf('message', 'host') } },
    { version: 3, schema: { fields: [{ ...fieldsOf('message')[0]!, index: 'full' as const }] } },
  ];
  const segments = [1, 2, 3].map((schemaVersion) => segmentOf(today - schemaVersion, 10, { schemaVersion }));
  const manifest = { ...manifestOf(segments, 24 * today), schemas };

  it('have the same columns, and are rewritten for that reason by `compact` only', () => {
    expect([1, 2, 3].map((version) => versionToWrite(manifest, version))).toEqual([3, 2, 3]);
    expect(segmentsToRefilter(manifest)).toEqual([segments[0]]);
    expect(proposeRewrite(manifest, policyAt(today))).toBeUndefined();
    expect(proposeRewrite(manifest, policyAt(today, { thorough: true }))?.segments).toEqual([segments[0]]);
  });

  it('are merged with segments that have the wanted filters', () => {
    const same = [1, 3, 1, 3, 1].map((schemaVersion) => segmentOf(today, 10, { schemaVersion }));
    const rewrite = proposeRewrite({ ...manifestOf(same), schemas }, policyAt(today));
    expect(rewrite?.segments).toHaveLength(5);
  });
});

describe('the rewrites that `compact` proposes', () => {
  it('leave at most one segment a day that is not full, and the requested codec in all segments', () => {
    const segments = [segmentOf(today, 10), segmentOf(today, 70_000), segmentOf(today, 3_000_000)];
    const thorough = policyAt(today, { thorough: true });
    const merge = proposeRewrite(manifestOf(segments), thorough)!;
    expect(merge.segments).toEqual([segments[0], segments[1]]);
    const left = [segments[2]!, rewritten(merge)];
    expect(proposeRewrite(manifestOf(left), thorough)).toBeUndefined();
    expect(proposeRewrite(manifestOf(left), { ...thorough, codec: 'zstd' })).toMatchObject({ codec: 'zstd' });
  });
});
