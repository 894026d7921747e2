import { rowsBefore } from './sorted-page.js';
import type { SpillFile } from '../disk/spill.js';

/** The placement times of a row group in the temporary file. */
interface TimesPlace {
  readonly firstRow: number;
  readonly rows: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly offset: number;
}

/**
 * The placement times of the rows that a load has handed on to be encoded. They are kept in the load's temporary file, because they are
 * needed only if late rows come.
 */
export class StreamedTimes {
  private readonly places: TimesPlace[] = [];
  private rows = 0;
  private ended = false;

  constructor(private readonly spill: () => Promise<SpillFile>) {}

  get minMs(): number {
    return this.places[0]!.minMs;
  }

  get maxMs(): number {
    return this.places.at(-1)!.maxMs;
  }

  /** Stops collecting. Called when no late row can come any more. */
  end(): void {
    this.ended = true;
  }

  /** Adds the times of the next row group, which ascend. */
  async add(timesMs: Float64Array): Promise<void> {
    if (this.ended) return;
    const spill = await this.spill();
    const offset = await spill.writeTimes(timesMs);
    const { rows } = this;
    const bounds = { minMs: timesMs[0]!, maxMs: timesMs.at(-1)! };
    this.places.push({ firstRow: rows, rows: timesMs.length, ...bounds, offset });
    this.rows += timesMs.length;
  }

  /** Reads the times of a row group. */
  async read(rowGroup: number): Promise<Float64Array> {
    const { offset, rows } = this.places[rowGroup]!;
    return (await this.spill()).readTimes(offset, rows);
  }

  /** For each of `timesMs`, which ascend, the number of rows whose time is at most that. */
  async countBefore(timesMs: Float64Array): Promise<number[]> {
    const counts: number[] = [];
    let rowGroup = 0;
    let times: Float64Array | undefined;
    for (const timeMs of timesMs) {
      while (rowGroup < this.places.length && this.places[rowGroup]!.maxMs <= timeMs) {
        rowGroup++;
        times = undefined;
      }
      if (rowGroup === this.places.length) {
        counts.push(this.rows);
        continue;
      }
      times ??= await this.read(rowGroup);
      counts.push(this.places[rowGroup]!.firstRow + rowsBefore(times, timeMs + 1));
    }
    return counts;
  }
}
