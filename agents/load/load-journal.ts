import type { LogstrataError } from '../../engine/index.js';
import {
  summarize,
  FileTally,
  type FileReport,
  type LoadEvent,
  type LoadOutcome,
  type LoadProgress,
  type LoadSummary,
} from './load-report.js';

/** A file that is being loaded. */
export interface JournalItem {
  readonly path: string;
  readonly index: number;
  readonly tally: FileTally;
  readonly startedMs: number;
}

/** Reports the results of one load's files: by events while it runs, and in a summary at the end. */
export class LoadJournal {
  private readonly startedMs = performance.now();
  private readonly reports: FileReport[] = [];

  /** @param files number of files */
  constructor(
    private readonly files: number,
    private readonly onEvent: ((event: LoadEvent) => void) | undefined,
  ) {}

  /** Begins an entry. `isBegun` is false for a file that is not tried because the load has stopped: it gets no start event. */
  item(path: string, index: number, isBegun: boolean): JournalItem {
    if (isBegun) this.onEvent?.({ kind: 'start', path, index, files: this.files });
    return { path, index, tally: new FileTally(), startedMs: performance.now() };
  }

  /** Reports the progress of a file. */
  progress({ path, index, tally }: JournalItem, phase: LoadProgress['phase'], fraction: number): void {
    const { fileBytesRead, fileBytes, contentBytes, records, rejected } = tally;
    const place = { path, index, phase, fraction };
    this.onEvent?.({
      kind: 'progress',
      ...place,
      fileBytesRead,
      fileBytes,
      contentBytes,
      records,
      rejected,
    });
  }

  /** Reports the result of a file. */
  report(
    item: JournalItem,
    outcome: LoadOutcome,
    error: LogstrataError | null,
    stored: { readonly load: string | null; readonly bytesOnDisk?: number | undefined } = { load: null },
  ): void {
    const { tally, path, index } = item;
    const report: FileReport = {
      path,
      outcome: outcome === 'known' && tally.restored > 0 ? 'restored' : outcome,
      ...tally.counts(),
      restored: tally.restored,
      fileBytes: tally.fileBytes,
      continuedAt: tally.continuedAt,
      seconds: (performance.now() - item.startedMs) / 1000,
      load: stored.load,
      bytesOnDisk: stored.bytesOnDisk ?? null,
      error,
    };
    this.reports.push(report);
    this.onEvent?.({ kind: 'end', index, report });
  }

  /**
   * Sums up the reports of all files. `mergedBytesOnDisk` is the size of segments that hold records of several files;
   * `stopped` is the error that ended the load early, null for none.
   */
  summary(mergedBytesOnDisk: number, stopped: LogstrataError | null): LoadSummary {
    const seconds = (performance.now() - this.startedMs) / 1000;
    return summarize(this.reports, seconds, mergedBytesOnDisk, stopped);
  }
}
