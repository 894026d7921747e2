import { LogstrataError } from '../../terms/errors.js';
import type { FarCopy, FarLeftover } from './far-copy.js';
import { isFarOnly, type Manifest, type SegmentEntry } from './manifest.js';

/** What one commit changes of the far tier. */
export interface FarChanges {
  /**
   * Attempts that begin, with their segments: they are named before anything is sent, so that no row is ever there that nobody knows of.
   * Without a segment, those that are over; one that counts is left as it is.
   */
  readonly attempts?: readonly FarLeftover[] | undefined;
  /** Segments, by their files, that have a copy now which was counted on every replica. */
  readonly shipped: readonly { readonly file: string; readonly copy: FarCopy }[];
  /** Segments with a copy whose files are no longer read here. */
  readonly freed: readonly string[];
  /** Attempts that have been dropped in the cluster. */
  readonly dropped: readonly string[];
  /** Segments, by their files, that are here and whose copies are given up: they stay here. */
  readonly home?: readonly string[] | undefined;
}

/** Those changes made to a manifest, and the files that leave it. Throws `conflict` where a segment is not what it was. */
export function changeFar(
  { segments, farLeftovers = [] }: Manifest,
  { attempts = [], shipped, freed, dropped, home = [] }: FarChanges,
): { readonly changes: Partial<Manifest>; readonly leaving: readonly string[] } {
  const copies = new Map(shipped.map(({ file, copy }) => [file, copy]));
  const underWay = new Set(
    farLeftovers.flatMap(({ file, attempt }) => (file === undefined ? [] : [attempt])),
  );
  const toFree = new Set(freed);
  const toKeep = new Set(home);
  const gone = new Set([...dropped, ...shipped.map(({ copy }) => copy.attempt)]);
  const leaving: string[] = [];
  const changed = segments.map((entry): SegmentEntry => {
    if (toKeep.delete(entry.file)) {
      if (entry.far === undefined || isFarOnly(entry)) throw changedMeanwhile(entry.file);
      const { far: _, ...own } = entry;
      return { ...own, stays: true };
    }
    const copy = copies.get(entry.file);
    copies.delete(entry.file);
    const far = copy ?? entry.far;
    const isOpen = entry.far === undefined && (copy === undefined || underWay.has(copy.attempt));
    if (copy !== undefined && !isOpen) throw changedMeanwhile(entry.file);
    if (!toFree.delete(entry.file)) return far === entry.far ? entry : { ...entry, far };
    if (far === undefined || far.rows !== entry.rows) throw changedMeanwhile(entry.file);
    if (isFarOnly(entry)) return entry;
    leaving.push(entry.file);
    return { ...entry, far: { ...far, isOnly: true } };
  });
  for (const file of [...copies.keys(), ...toFree, ...toKeep]) throw changedMeanwhile(file);
  for (const { attempt } of attempts) gone.add(attempt);
  const counting = new Set(segments.flatMap(({ far }) => (far === undefined ? [] : [far.attempt])));
  const told = attempts.filter(({ attempt }) => !counting.has(attempt));
  const left = farLeftovers
    .filter(({ attempt }) => !gone.has(attempt))
    .map((leftover) => {
      // Of the attempts for one segment only the last can come to count.
      const next = told.find(({ file }) => file !== undefined && file === leftover.file);
      return next === undefined ? leftover : overSince(next.sinceMs, leftover);
    });
  return { changes: { segments: changed, farLeftovers: [...left, ...told] }, leaving };
}

function changedMeanwhile(file: string): LogstrataError {
  return new LogstrataError('conflict', `segment ${file} was replaced, or shipped, meanwhile`, {
    path: file,
  });
}

function overSince(sinceMs: number, { unit, attempt, shard }: FarLeftover): FarLeftover {
  return { unit, attempt, shard, sinceMs };
}

/** What is to be dropped in the far tier once these are the segments. Of a segment that was replaced no attempt can count any more. */
export function leftoversOf(
  before: Pick<Manifest, 'segments' | 'farLeftovers'> | undefined,
  segments: readonly SegmentEntry[],
  known: readonly FarLeftover[] | undefined,
  nowMs: number,
): readonly FarLeftover[] {
  const all = known ?? before?.farLeftovers ?? [];
  if (before === undefined || before.segments === segments) return all;
  const isUnderWay = all.some(({ file }) => file !== undefined);
  const files = new Set(isUnderWay ? segments.map(({ file }) => file) : []);
  const leftovers = all.map((leftover) => {
    const { file } = leftover;
    return file === undefined || files.has(file) ? leftover : overSince(nowMs, leftover);
  });
  const named = new Set(segments.flatMap(({ far }) => (far === undefined ? [] : [far.attempt])));
  const added = before.segments.flatMap(({ far }): FarLeftover[] => {
    if (far === undefined || named.has(far.attempt)) return [];
    return [{ unit: far.unit, attempt: far.attempt, shard: far.shard, sinceMs: nowMs }];
  });
  return added.length === 0 ? leftovers : [...leftovers, ...added];
}
