import type { CollectLog } from './logs/collect-log.js';

/** Limits how often it warns: a log whose lines are all rejected would otherwise cause a message per commit. */
const everyMsDefault = 60_000;

/** Warns of rejected lines that were counted but not kept. */
export class NotKeptReport {
  private untold = 0;
  private toldMs = -Infinity;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
    private readonly everyMs = everyMsDefault,
  ) {}

  /** Counts the lines of a commit that were not kept. */
  add(lines: number): void {
    this.untold += lines;
    const nowMs = performance.now();
    if (this.untold === 0 || nowMs - this.toldMs < this.everyMs) return;
    this.log.warn(
      { agent: this.agent, lines: this.untold },
      'rejected lines were counted but not kept: the kept ones have reached rejected.max_bytes. Correct the pattern ' +
        `and load them (logstrata load ${this.agent} --rejected), or raise rejected.max_bytes`,
    );
    this.untold = 0;
    this.toldMs = nowMs;
  }
}
