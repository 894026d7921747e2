/** The writer's view of a unit of work: another part of the engine, or another process, builds it; the writer publishes it. */
export interface WriterUnit {
  /** Number of commits with checkpoints before the unit began (`SourceClaims.count`). */
  readonly since: number;
  /** Releases the commit lock; undefined while the unit does not hold it. */
  release: (() => void) | undefined;
  /** Releases a reservation after `reservationMsMax`. */
  timer: NodeJS.Timeout | undefined;
  expired: boolean;
  published: boolean;
}
