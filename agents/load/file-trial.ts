import { closing, columnValue, type RecordBatch, type WorkerPool } from '../../engine/index.js';
import type { FieldDefinition, AgentDefinition } from '../definition/definition.js';
import type { UnreadableField } from '../decode/value-writer.js';
import { pathCaptures } from '../decode/path-captures.js';
import { decodeSettings } from '../decode/decode-task.js';
import { FileLines, type FileFrame, type FrameConsumer } from '../decode/file-lines.js';
import type { DecodedBatch } from '../decode/lent-decoding.js';
import { rejectedText, type RejectedPlaces } from '../decode/rejected-lines.js';
import { SourceCursor } from '../sources/source-cursor.js';
import { fileWritten } from './load-file.js';

/** Limit on the distinct values of a field that are counted at a time, and on the length of a text that is kept. */
const valuesCountedMax = 1000;
const valueLengthMax = 200;

type Value = bigint | number | string;

/** A value and how often it occurs. */
export interface ValueCount {
  readonly value: Value;
  readonly count: number;
}

/** Summary of the values of one field. */
export interface FieldSummary {
  readonly name: string;
  readonly type: FieldDefinition['type'];
  readonly nulls: number;
  /** Number of nulls whose text could not be read as the type, and the first such text (`example`). */
  readonly unreadable: number;
  readonly example: string | null;
  /** The smallest and the largest value; null for texts, and where there is none. */
  readonly min: bigint | number | null;
  readonly max: bigint | number | null;
  /** The most frequent values, in descending order. */
  readonly frequent: readonly ValueCount[];
  /** Number of distinct values; null where there are more than are counted. The counts of `frequent` are then lower bounds. */
  readonly distinct: number | null;
}

/** Summarises the values of one field in bounded memory. */
class FieldTally {
  #nulls = 0;
  #unreadable = 0;
  #example: string | null = null;
  #min: bigint | number | null = null;
  #max: bigint | number | null = null;
  #isExact = true;
  readonly #counts = new Map<Value, number>();

  constructor(private readonly definition: FieldDefinition) {}

  /** Adds unreadable values. */
  addUnreadable({ values, example }: UnreadableField): void {
    this.#unreadable += values;
    this.#example ??= example;
  }

  /** Adds the values of a column. */
  addColumn({ columns, length }: RecordBatch, field: number): void {
    const column = columns[field]!;
    for (let row = 0; row < length; row++) {
      const value = columnValue(column, row);
      if (value === null) this.#nulls++;
      else if (typeof value === 'string') this.#count(value.slice(0, valueLengthMax));
      else this.#addNumber(value);
    }
  }

  #addNumber(value: bigint | number): void {
    if (this.#min === null || value < this.#min) this.#min = value;
    if (this.#max === null || value > this.#max) this.#max = value;
    this.#count(value);
  }

  /**
   * Counts a value. If too many values are being counted, all counts are lowered by one instead, and those that reach zero
   * are dropped, so that frequent values stay (Misra and Gries, "Finding repeated elements", 1982).
   */
  #count(value: Value): void {
    const counts = this.#counts;
    const known = counts.get(value);
    if (known !== undefined) counts.set(value, known + 1);
    else if (counts.size < valuesCountedMax) counts.set(value, 1);
    else {
      this.#isExact = false;
      for (const [other, count] of counts) {
        if (count === 1) counts.delete(other);
        else counts.set(other, count - 1);
      }
    }
  }

  /** @param shownMax limit on the most frequent values to return */
  summary(shownMax: number): FieldSummary {
    const { name, type } = this.definition;
    const frequent = [...this.#counts]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, shownMax)
      .map(([value, count]) => ({ value, count }));
    return {
      name,
      type,
      nulls: this.#nulls,
      unreadable: this.#unreadable,
      example: this.#example,
      min: this.#min,
      max: this.#max,
      frequent,
      distinct: this.#isExact ? this.#counts.size : null,
    };
  }
}

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
  return closing(SourceCursor.open(path), async (source) => {
    const { definition, timezone, workers, signal } = options;
    const read = { captures: pathCaptures(definition, path), workers, signal };
    const decode = decodeSettings(definition, timezone);
    const fraction = (bytes: number): number => bytes / Math.max(1, source.file.size);
    const trial = new TrialReading(definition, (records) =>
      options.onProgress(fraction(source.bytesTaken), records),
    );
    const onRead = (bytes: number): void => options.onProgress(fraction(bytes), 0);
    const writtenAt = await fileWritten(source, decode, { ...read, onRead });
    await new FileLines(source, { ...read, decode, writtenAt }, trial).run();
    return trial.result(path, source.offset);
  });
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

  reject({ bytes }: FileFrame, rejected: RejectedPlaces): Promise<void> {
    const { reasons, starts } = rejected;
    this.rejected += reasons.length;
    reasons.forEach((reason, i) => {
      const known = this.reasons.get(reason);
      if (known !== undefined || this.reasons.size < reasonsMax) this.reasons.set(reason, (known ?? 0) + 1);
      if (this.unmatched.length >= unmatchedShownMax) return;
      const text = Buffer.from(rejectedText(rejected, i, bytes).subarray(0, lineBytesShown)).toString();
      this.unmatched.push({ line: this.linesBefore + feedsIn(bytes, starts[i]!) + 1, reason, text });
    });
    return Promise.resolve();
  }

  take({ bytes, end }: FileFrame, decoded: DecodedBatch, isLast: boolean): Promise<void> {
    const { batch, unreadable, replacedBytes } = decoded;
    this.replacedBytes += replacedBytes;
    for (const each of unreadable) if (each.values > 0) this.fields[each.field]!.addUnreadable(each);
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
