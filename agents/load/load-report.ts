import type { LogstrataError } from '../../engine/index.js';
import { joinUnreadable, type UnreadableField } from '../decode/value-writer.js';
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

/** Report on one file. */
export interface FileReport {
  readonly path: string;
  readonly outcome: LoadOutcome;
  readonly records: number;
  readonly rejected: number;
  /** Rejected lines that were counted but not kept, because there was no room for them. */
  readonly notKept: number;
  /** Lost records of earlier loads that were restored, of all files that were merged with this one. */
  readonly restored: number;
  /** Bytes of content that were decoded, uncompressed and without content that was known already. */
  readonly contentBytes: number;
  /** Size of the file on disk. */
  readonly fileBytes: number;
  /** Content offset from which a file that has grown was read; null for one that was read from its beginning. */
  readonly continuedAt: number | null;
  /** Id of the load that stored it, by which it can be removed; null where nothing was stored. */
  readonly load: string | null;
  readonly seconds: number;
  /** Bytes of the segments written for it; null where they also hold other files' records. */
  readonly bytesOnDisk: number | null;
  readonly unreadableValues: number;
  /** The fields of the unreadable values. */
  readonly unreadable: readonly UnreadableField[];
  readonly replacedBytes: number;
  /** NULs before lines, which were left out. */
  readonly nulBytes: number;
  readonly error: LogstrataError | null;
}

/** Report on all files of one command. */
export interface LoadSummary {
  readonly files: readonly FileReport[];
  /** Sums over the files that were loaded. */
  readonly records: number;
  /** Includes files of rejected lines that are unchanged. */
  readonly rejected: number;
  readonly notKept: number;
  readonly restored: number;
  readonly contentBytes: number;
  readonly bytesOnDisk: number;
  readonly unreadableValues: number;
  readonly unreadable: readonly UnreadableField[];
  readonly replacedBytes: number;
  readonly nulBytes: number;
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
  const loaded = files.filter(({ outcome }) => outcome === 'loaded');
  const known = files.filter(({ outcome }) => outcome === 'known').length;
  const failed = files.filter(({ outcome }) => outcome === 'failed').length;
  const still = files.filter(({ outcome }) => outcome === 'still_rejected');
  const sum = (value: (file: FileReport) => number, of = loaded): number =>
    of.reduce((total, file) => total + value(file), 0);
  const restored = sum(({ restored }) => restored, [...files]);
  const nothingNew =
    loaded.length === 0 && restored === 0 && (files.length === 0 || known + still.length > 0);
  return {
    files,
    records: sum(({ records }) => records),
    rejected: sum(({ rejected }) => rejected, [...loaded, ...still]),
    notKept: sum(({ notKept }) => notKept),
    restored,
    contentBytes: sum(({ contentBytes }) => contentBytes),
    bytesOnDisk: mergedBytesOnDisk + sum(({ bytesOnDisk }) => bytesOnDisk ?? 0),
    unreadableValues: sum(({ unreadableValues }) => unreadableValues),
    unreadable: unreadableOf(loaded),
    replacedBytes: sum(({ replacedBytes }) => replacedBytes),
    nulBytes: sum(({ nulBytes }) => nulBytes),
    seconds,
    loaded: loaded.length,
    known,
    failed,
    stopped,
    exitCode: failed > 0 || stopped !== null || nothingNew ? 1 : 0,
  };
}

function unreadableOf(files: readonly FileReport[]): UnreadableField[] {
  const fields = new Map<number, UnreadableField>();
  for (const { unreadable } of files) joinUnreadable(fields, unreadable);
  return [...fields.values()];
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
  readonly firstLineCommand?: string;
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
