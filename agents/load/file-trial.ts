import type { WorkerPool } from '../../engine/index.js';
import type { AgentDefinition } from '../definition/definition.js';
import { pathCaptures } from '../decode/path-captures.js';
import { decodeSettings } from '../frames/decode-task.js';
import { FileLines, type FileFrame, type FrameConsumer } from '../frames/file-lines.js';
import type { DecodedBatch } from '../frames/lent-decoding.js';
import type { RejectedPlaces } from '../frames/rejected-lines.js';
import { openFromStart } from '../sources/source-identity.js';
import { FieldTally, type FieldSummary } from './field-tally.js';
import { fileWritten } from './file-years.js';

/** Limit on the shown lines that become no record, and on the bytes of each that are shown. */
const unmatchedShownMax = 5;
const lineBytesShown = 500;

/** Limit on the reasons that are counted separately. */
const reasonsMax = 20;

/** Limit on the values of a field that are shown. */
const valuesShownMax = 10;

const lineFeed = 0x0a;

/** Options of a trial. */
export interface FileTrialOptions {
  readonly definition: AgentDefinition;
  /** Time zone of times that have none. */
  readonly timezone: string;
  readonly workers: WorkerPool;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress: (fraction: number, records: number) => void;
}

/** A line that becomes no record. */
export interface UnmatchedText {
  /** Number of the line in the file, from 1. */
  readonly line: number;
  readonly reason: string;
  readonly text: string;
}

/** What a load of a file would give. */
export interface FileTrial {
  readonly path: string;
  readonly contentBytes: number;
  readonly records: number;
  readonly rejected: number;
  /** Rejected lines by reason, the most frequent first. */
  readonly reasons: readonly { readonly reason: string; readonly lines: number }[];
  /** The first lines that become no record. */
  readonly unmatched: readonly UnmatchedText[];
  readonly replacedBytes: number;
  readonly fields: readonly FieldSummary[];
}

/**
 * Reads a file as a load does, without storing anything. Throws `SourceError` for a file that can't be read, and `invalid`
 * for a definition that is not valid.
 */
export async function tryFile(path: string, options: FileTrialOptions): Promise<FileTrial> {
  const source = { ...(await openFromStart(path)), known: null };
  try {
    const { definition, timezone, workers, signal } = options;
    const read = { captures: pathCaptures(definition, path), workers, signal };
    const decode = decodeSettings(definition, timezone);
    const fraction = (bytes: number): number => bytes / Math.max(1, source.reader.fileBytes);
    const trial = new TrialReading(definition, (records) =>
      options.onProgress(fraction(source.content.bytesTaken), records),
    );
    const onRead = (bytes: number): void => options.onProgress(fraction(bytes), 0);
    const writtenAt = await fileWritten(source, decode, { ...read, onRead });
    await new FileLines(source, { ...read, decode, writtenAt }, trial).run();
    return trial.result(path, source.content.offset);
  } finally {
    await source.reader.close();
  }
}

class TrialReading implements FrameConsumer {
  private records = 0;
  private rejected = 0;
  private replacedBytes = 0;
  /** Number of lines before the current frame; counted only while more lines are to be shown. */
  private linesBefore = 0;
  private readonly reasons = new Map<string, number>();
  private readonly unmatched: UnmatchedText[] = [];
  private readonly fields: readonly FieldTally[];

  constructor(
    { fields }: AgentDefinition,
    private readonly onRead: (records: number) => void,
  ) {
    this.fields = fields.map((field) => new FieldTally(field));
  }

  reject({ bytes }: FileFrame, { reasons, starts, ends }: RejectedPlaces): Promise<void> {
    this.rejected += reasons.length;
    reasons.forEach((reason, i) => {
      const known = this.reasons.get(reason);
      if (known !== undefined || this.reasons.size < reasonsMax) this.reasons.set(reason, (known ?? 0) + 1);
      if (this.unmatched.length >= unmatchedShownMax) return;
      const [start, end] = [starts[i]!, ends[i]!];
      const text = Buffer.from(bytes.subarray(start, Math.min(end, start + lineBytesShown))).toString();
      this.unmatched.push({ line: this.linesBefore + feedsIn(bytes, start) + 1, reason, text });
    });
    return Promise.resolve();
  }

  take({ bytes, end }: FileFrame, decoded: DecodedBatch, isLast: boolean): Promise<void> {
    const { batch, unreadable, replacedBytes } = decoded;
    this.replacedBytes += replacedBytes;
    for (const each of unreadable) this.fields[each.field]!.addUnreadable(each);
    if (batch !== null) {
      this.records += batch.length;
      this.fields.forEach((field, i) => field.addColumn(batch, i));
      batch.lease?.free();
    }
    if (isLast && this.unmatched.length < unmatchedShownMax) this.linesBefore += feedsIn(bytes, end);
    return Promise.resolve();
  }

  hasRead(): void {
    this.onRead(this.records);
  }

  result(path: string, contentBytes: number): FileTrial {
    const { records, rejected, unmatched, replacedBytes } = this;
    const reasons = [...this.reasons]
      .toSorted((a, b) => b[1] - a[1])
      .map(([reason, lines]) => ({ reason, lines }));
    const fields = this.fields.map((field) => field.summary(valuesShownMax));
    return { path, contentBytes, records, rejected, reasons, unmatched, replacedBytes, fields };
  }
}

/** Number of line feeds before a position. */
function feedsIn(bytes: Uint8Array, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0 && at < end; at = bytes.indexOf(lineFeed, at + 1)) count++;
  return count;
}
