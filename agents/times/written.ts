/** When lines were written; used to complete times without a year. */
export interface Written {
  /** Latest possible time, in milliseconds: now for lines that have just come, the file's modification time for lines of a file. */
  readonly byMs: number;
  /**
   * For lines of a file that is read in order: by field with undated times, the state of year counting before these lines,
   * where years are counted.
   */
  readonly years?: readonly (YearPlace | undefined)[] | undefined;
}

/** State of year counting for one field between two lines of a file. Times are those in the latest possible year. */
export interface YearPlace {
  /** The first time that was seen; null for none. */
  readonly firstMs: number | null;
  /** The time of the previous line; null for none. */
  readonly lastMs: number | null;
  /** Number of years that the following lines are before the latest possible year. */
  readonly yearsBack: number;
  /** Whether the lines are in chronological order, as in a log. */
  readonly isOrdered: boolean;
}

/** State before the first line of a file whose lines are all within one year. */
export const yearsBegin: YearPlace = { firstMs: null, lastMs: null, yearsBack: 0, isOrdered: true };

const dayMs = 86_400_000;
const yearMs = 365.2425 * dayMs;

/** How much older a line in a log may be than a line before it. */
const latenessMsMax = 30 * dayMs;

/** The latest time at which a line was written, in milliseconds, as precisely as a single time can tell. */
export function latestOf({ byMs, years }: Written): number {
  return Math.round(byMs - Math.max(0, years?.[0]?.yearsBack ?? 0) * yearMs);
}

/**
 * Joins the states of two consecutive ranges of lines: `place` is the state after the first range, `next` the state after the
 * second, counted as if the second range began the file. Returns the state after both.
 *
 * With times in the latest possible year, the times of a file that was filled within one year ascend to its end. A fall by
 * more than half a year means that a year ended there, and that the lines before were written a year earlier. A rise by nearly
 * a year after that is a late line of the year before. A fall of more than `latenessMsMax` and at most half a year does not
 * occur in a log: the lines are not in order then, and years can't be counted.
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

/** Counts the years of one field along a file, from a given state on. */
export class YearWalk {
  constructor(public place: YearPlace) {}

  /** Takes the next line. Returns how many years before the latest possible year it was written. */
  step(latestMs: number): number {
    this.place = placeBehind(this.place, { ...yearsBegin, firstMs: latestMs, lastMs: latestMs });
    return Math.max(0, this.place.yearsBack);
  }
}
