/** When lines were written: what completes times that name no year. */
export interface Written {
  /** No later than this (ms): now for lines that have just come, the last change of a file for what stands in it. */
  readonly byMs: number;
  /** For lines of a file that is read in order: where the years of each field with undated times stand before them, if they are counted. */
  readonly years?: readonly (YearPlace | undefined)[] | undefined;
}

/** Where the years of one field stand between two lines of a file. Times are those in the latest year possible. */
export interface YearPlace {
  /** The first time that was seen; null for none. */
  readonly firstMs: number | null;
  /** The time of the line before; null for none. */
  readonly lastMs: number | null;
  /** Years that the lines from here on lie before the latest possible. */
  readonly yearsBack: number;
  /** Whether the lines are in the order of time, as a log's are. */
  readonly isOrdered: boolean;
}

/** Before the first line of a file that lies within one year. */
export const yearsBegin: YearPlace = { firstMs: null, lastMs: null, yearsBack: 0, isOrdered: true };

const dayMs = 86_400_000;
const yearMs = 365.2425 * dayMs;

/** A line that stands in a log behind a later one may be so much older than that. */
const latenessMsMax = 30 * dayMs;

/** When a line was written at the latest (ms), as far as one time can say that. */
export function latestOf({ byMs, years }: Written): number {
  return Math.round(byMs - Math.max(0, years?.[0]?.yearsBack ?? 0) * yearMs);
}

/**
 * The place behind `next`, which was counted from its own beginning and follows `place`.
 *
 * In the latest year possible, the times of a file that was filled within a year rise to its end. Where they fall by more than half
 * a year one year has ended, and what stands before that was written a year earlier; where they then rise by nearly a year, a line
 * came late and belongs to the year before. Times that fall by anything between are no log's: then years can't be counted.
 */
export function placeBehind(place: YearPlace, next: YearPlace): YearPlace {
  const { firstMs, lastMs } = next;
  const fall = place.lastMs === null || firstMs === null ? 0 : place.lastMs - firstMs;
  const turn = fall > yearMs / 2 ? -1 : fall < latenessMsMax - yearMs ? 1 : 0;
  return {
    firstMs: place.firstMs ?? firstMs,
    lastMs: lastMs ?? place.lastMs,
    yearsBack: place.yearsBack + turn + next.yearsBack,
    isOrdered: place.isOrdered && next.isOrdered && (turn === -1 || fall <= latenessMsMax),
  };
}

/** Counts the years of one field along a file, from a place on. */
export class YearWalk {
  constructor(public place: YearPlace) {}

  /** Takes the next line. Returns how many years before the latest possible one it was written. */
  step(latestMs: number): number {
    this.place = placeBehind(this.place, { ...yearsBegin, firstMs: latestMs, lastMs: latestMs });
    return Math.max(0, this.place.yearsBack);
  }
}
