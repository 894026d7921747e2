import { LogstrataError } from '../../core/errors.js';
import { type FarCopy, type FarLeftover, isFarOnly, type Manifest, type SegmentEntry } from './manifest.js';

/** The changes to the far tier that one commit makes. */
export interface FarChanges {
  /**
   * Attempts that begin, with their segments. They are recorded before anything is sent, so that the cluster never has rows of an unknown
   * attempt. An attempt without a segment has ended. One whose copy counts is left unchanged.
   */
  readonly attempts?: readonly FarLeftover[] | undefined;
  /** Files of segments, each with its new copy, which was counted on every replica. */
  readonly shipped: readonly { readonly file: string; readonly copy: FarCopy }[];
  /** Files of shipped segments that are no longer read locally. */
  readonly freed: readonly string[];
  /** Attempts whose rows have been dropped in the cluster. */
  readonly dropped: readonly string[];
  /** Files of segments that are local and whose copies are given up. They are not shipped again by themselves. */
  readonly home?: readonly string[] | undefined;
}

/** Applies the changes to a manifest. Returns what changes, and the files that leave it. Throws `conflict` if a segment has changed since. */
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
      // Of several attempts for one segment only the last can become its copy.
      const next = told.find(({ file }) => file !== undefined && file === leftover.file);
      return next === undefined ? leftover : overSince(next.sinceMs, leftover);
    });
  return { changes: { segments: changed, farLeftovers: [...left, ...told] }, leaving };
}

function changedMeanwhile(file: string): LogstrataError {
  return new LogstrataError('conflict', `segment ${file} was replaced or shipped in the meantime`, {
    path: file,
  });
}

function overSince(sinceMs: number, { unit, attempt, shard }: FarLeftover): FarLeftover {
  return { unit, attempt, shard, sinceMs };
}

/**
 * The far-tier attempts that have to be dropped once `segments` replace those of `before`. An attempt for a segment that was replaced can
 * no longer become a copy.
 */
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
