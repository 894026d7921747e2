/** A unit of work that somebody builds and the writer publishes. */
export interface WriterUnit {
  /** Commits of sources before the unit began. */
  readonly since: number;
  /** Lets other commits go on; undefined while the unit does not hold them up. */
  release: (() => void) | undefined;
  /** Ends a reservation that takes too long. */
  timer: NodeJS.Timeout | undefined;
  expired: boolean;
  published: boolean;
}
