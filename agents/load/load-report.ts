import type { LogstrataError } from '../../engine/index.js';
import {
  joinUnreadable,
  type UnreadableField,
  valueCountNames,
  type ValueCounters,
} from '../decode/value-writer.js';
import { shellWord, shownLine } from '../decode/line-text.js';
import { SourceError } from '../sources/byte-source.js';

/**
 * Result of loading a file:
 *
 * - `loaded`: its records are in the archive, visible and durable.
 * - `known`: all of it was stored before, though some of it may have been removed since.
 * - `restored`: known, but some of its records had been lost and have been restored.
 * - `empty`: there is nothing in it.
 * - `failed`: nothing of it was stored; `error` gives the reason.
 * - `still_rejected`: none of its rejected lines became a record; it is unchanged.
 * - `not_stored`: nothing of it was stored, because of another file that is merged with it or that stopped the load.
 */
export type LoadOutcome =
  'loaded' | 'known' | 'restored' | 'empty' | 'still_rejected' | 'failed' | 'not_stored';

/** Counts of lines that were read. */
export interface LineCounts extends ValueCounters {
  readonly records: number;
  readonly rejected: number;
  /** Rejected lines that were counted but not kept, because there was no room for them. */
  readonly notKept: number;
  /** Bytes of content that were decoded, uncompressed and without content that was known already. */
  readonly contentBytes: number;
  /** The fields of the unreadable values. */
  readonly unreadable: readonly UnreadableField[];
}

/** Counts lines while they are read. */
export class LineTally implements LineCounts {
  records = 0;
  rejected = 0;
  notKept = 0;
  contentBytes = 0;
  unreadableValues = 0;
  replacedBytes = 0;
  nulBytes = 0;
  skippedLines = 0;
  maskedTexts = 0;
  readonly #unreadable = new Map<number, UnreadableField>();

  get unreadable(): readonly UnreadableField[] {
    return [...this.#unreadable.values()];
  }

  /** Adds counts. Those that are absent are 0. */
  add(more: Partial<LineCounts>): void {
    this.records += more.records ?? 0;
    this.rejected += more.rejected ?? 0;
    this.notKept += more.notKept ?? 0;
    this.contentBytes += more.contentBytes ?? 0;
    for (const name of valueCountNames) this[name] += more[name] ?? 0;
    joinUnreadable(this.#unreadable, more.unreadable ?? []);
  }

  /** A copy of the counts. */
  counts(): LineCounts {
    const { records, rejected, notKept, contentBytes } = this;
    const { unreadable, unreadableValues, replacedBytes, nulBytes, skippedLines, maskedTexts } = this;
    const values = { unreadableValues, replacedBytes, nulBytes, skippedLines, maskedTexts };
    const lines = { records, rejected, notKept, contentBytes };
    return { ...lines, ...values, unreadable };
  }
}

/** Counts of one file while it is read. */
export class FileTally extends LineTally {
  /** Records without a time that places them, where the agent has a field for that time. */
  untimed = 0;
  fileBytes = 0;
  fileBytesRead = 0;
  continuedAt: number | null = null;
  /** Records of earlier loads that were lost and have been restored. */
  restored = 0;
}

/** Report on one file. */
export interface FileReport extends LineCounts {
  readonly path: string;
  readonly outcome: LoadOutcome;
  /** Lost records of earlier loads that were restored, of all files that were merged with this one. */
  readonly restored: number;
  /** Size of the file on disk. */
  readonly fileBytes: number;
  /** Content offset from which a file that has grown was read; null for one that was read from its beginning. */
  readonly continuedAt: number | null;
  /** Id of the load that stored it, by which it can be removed; null where nothing was stored. */
  readonly load: string | null;
  readonly seconds: number;
  /** Bytes of the segments written for it; null where they also hold other files' records. */
  readonly bytesOnDisk: number | null;
  readonly error: LogstrataError | null;
}

/** Report on all files of one command. The counts are sums over the files that were loaded; `rejected` includes unchanged rejected lines. */
export interface LoadSummary extends LineCounts {
  readonly files: readonly FileReport[];
  readonly restored: number;
  readonly bytesOnDisk: number;
  readonly seconds: number;
  readonly loaded: number;
  readonly known: number;
  readonly failed: number;
  /** The error that stopped the load before all files were tried (a full disk, a signal); null otherwise. */
  readonly stopped: LogstrataError | null;
  /** 0; 1 when a file failed, the load was stopped, or nothing new was stored. */
  readonly exitCode: 0 | 1;
}

/** Events during a load, for displaying its progress. `index` counts the files from 0. */
export type LoadEvent =
  | { readonly kind: 'start'; readonly path: string; readonly index: number; readonly files: number }
  | LoadProgress
  | { readonly kind: 'end'; readonly index: number; readonly report: FileReport };

/** Progress of a file. */
export interface LoadProgress {
  readonly kind: 'progress';
  readonly path: string;
  readonly index: number;
  /** `checking` skips known content and counts the years for times that lack one, `reading` decodes, `writing` sorts and seals. */
  readonly phase: 'checking' | 'reading' | 'writing';
  /** Progress of the phase, 0 … 1, by bytes of the file or by records. */
  readonly fraction: number;
  /** Bytes of the file that were read, without decompression, and its size (`fileBytes`). */
  readonly fileBytesRead: number;
  readonly fileBytes: number;
  readonly contentBytes: number;
  readonly records: number;
  readonly rejected: number;
}

/** Sums up the reports of all files. `stopped` is the error that ended the load early; null for none. */
export function summarize(
  files: readonly FileReport[],
  seconds: number,
  mergedBytesOnDisk: number,
  stopped: LogstrataError | null,
): LoadSummary {
  const total = new LineTally();
  const counts = { loaded: 0, known: 0, failed: 0, restored: 0, bytesOnDisk: mergedBytesOnDisk };
  let unchanged = 0;
  for (const file of files) {
    const { outcome } = file;
    if (outcome === 'loaded' || outcome === 'known' || outcome === 'failed') counts[outcome]++;
    counts.restored += file.restored;
    if (outcome === 'known' || outcome === 'still_rejected') unchanged++;
    if (outcome === 'still_rejected') total.rejected += file.rejected;
    if (outcome !== 'loaded') continue;
    total.add(file);
    counts.bytesOnDisk += file.bytesOnDisk ?? 0;
  }
  const { loaded, failed, restored } = counts;
  const nothingNew = loaded === 0 && restored === 0 && (files.length === 0 || unchanged > 0);
  const exitCode = failed > 0 || stopped !== null || nothingNew ? 1 : 0;
  return { files, ...total.counts(), ...counts, seconds, stopped, exitCode };
}

/** Content of which no line became a record. */
export interface ContentWithoutRecord {
  readonly path: string;
  /** Name of the content in messages, if not its path. */
  readonly title?: string;
  /** Number of rejected lines. */
  readonly lines: number;
  /** The first rejected line. */
  readonly first: { readonly reason: string; readonly line: Uint8Array };
  /** A shell command that prints the first line, for a line that can't be quoted as a shell word; absent for none. */
  readonly firstLineCommand?: string | undefined;
}

/** The error for content without a record. It is not stored as rejected lines, because it most likely belongs to another agent. */
export function noRecordError(agent: string, content: ContentWithoutRecord): SourceError {
  const { path, title = path, lines, first, firstLineCommand: command } = content;
  const none = lines === 1 ? 'Its one line did not become' : `None of its ${lines} lines became`;
  const word = shellWord(first.line) ?? (command === undefined ? null : `"$(${command})"`);
  const hint = word === null ? '' : `. Try: logstrata check ${agent} --line ${word}`;
  return new SourceError(
    'invalid',
    `${title} was not stored. ${none} a record of agent "${agent}"; the first one: ${first.reason}. ` +
      `The line: ${shownLine(first.line)}${hint}`,
    { path },
  );
}

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
