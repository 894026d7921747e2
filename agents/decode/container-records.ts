import { type BatchBuilder, lineBytesMax, rowGroupRowsMax } from '../../engine/index.js';
import type { LineFormat } from '../definition/definition.js';
import type { Written } from '../definition/timestamp.js';
import { blankLine, ContainerLine } from './container-line.js';
import type { LinesOrigin, RecordDecoder, RecordTextDecoder, RejectLine } from './line-decoder.js';
import {
  joinLines,
  MultilineRecords,
  type RecordEnds,
  singleLines,
  textStart,
  type TextRange,
} from './line-framing.js';
import { requireGoing, type StopFlag } from './stop-flag.js';

const lineFeed = 0x0a;

/** Time after which a record ends where no `multiline.timeout` says so. The parts of a line are written at once. */
const timeoutMsDefault = 1000;

/** The record of a stream that may continue in its next line. */
class OpenRecord {
  /** Beginning of its first line; -1 where no record is open. */
  start = -1;
  lastStart = 0;
  lastMs = NaN;
  /** Whether its last line is a part of a line. */
  isPartial = false;
  lines = 0;
  sizeBytes = 0;
}

/**
 * Records of containers. The lines of the two streams are interleaved, so the lines of a record may lie apart: it begins with
 * the first line of its stream behind the record before, and ends with the part that ends its line, or as `multiline` says. It
 * also ends before a line of either stream that is newer by the timeout. The content may be cut where no record lies on both
 * sides, so that no stream has an open one behind a cut. All records end before a line with which what can't be cut would have
 * more than `lineBytesMax`. The records do not depend on the pieces in which the content comes.
 */
export class ContainerRecords implements RecordEnds {
  readonly timeoutMs: number;
  readonly long = singleLines.long;
  readonly line: ContainerLine;
  /** Last position so far at which the content may be cut. */
  cut = 0;
  /** Of the line that was taken last: why it is none of a container, and whether it begins a record. */
  problem: string | null = null;
  begins = false;
  readonly #multiline: LineFormat['multiline'];
  readonly #starts: MultilineRecords | null;
  /** By number of the stream. */
  readonly #open = [new OpenRecord(), new OpenRecord()] as const;

  /** Throws `invalid` for an invalid pattern. @param sources the parts from which fields are read */
  constructor({ format, multiline }: LineFormat, sources: readonly string[] = []) {
    this.line = new ContainerLine(format, sources);
    this.timeoutMs = multiline?.timeoutMs ?? timeoutMsDefault;
    this.#multiline = multiline;
    this.#starts = multiline === undefined ? null : new MultilineRecords(multiline);
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const content = bytes.subarray(0, end);
    this.endAll(start);
    for (let at = start; ;) {
      const feed = content.indexOf(lineFeed, at);
      if (feed < 0) {
        if (end - this.cut > lineBytesMax && at > this.cut) this.endAll(at);
        return this.cut;
      }
      this.take(content, at, feed);
      at = feed + 1;
    }
  }

  /** Takes the next line bytes[start, end), without its line feed. */
  take(bytes: Uint8Array, start: number, end: number): void {
    const next = end + 1;
    if (next - this.cut > lineBytesMax && start > this.cut) this.endAll(start);
    this.begins = false;
    this.problem = this.line.read(bytes, start, end);
    if (this.problem === null) this.#add(start, next);
    if (!this.#isOpen) this.cut = next;
  }

  #add(start: number, next: number): void {
    const { line } = this;
    const open = this.#open[line.stream]!;
    const mayContinue = line.isPartial || this.#starts !== null;
    const timeMs = mayContinue || this.#isOpen ? line.timeMs() : NaN;
    for (const each of this.#open)
      if (each.start >= 0 && timeMs - each.lastMs >= this.timeoutMs) this.#end(each, start);
    if (open.start >= 0 && !open.isPartial && this.#endsBefore(open, next - start)) this.#end(open, start);
    this.begins = open.start < 0;
    if (this.begins) {
      if (!this.#isOpen) this.cut = start;
      open.start = start;
      open.lines = open.sizeBytes = 0;
    }
    open.lastStart = start;
    open.lastMs = timeMs;
    open.isPartial = line.isPartial;
    open.sizeBytes += next - start;
    if (!line.isPartial) open.lines++;
    if (!mayContinue) this.#end(open, next);
  }

  /** Whether an open record ends before the line that was read last. */
  #endsBefore({ lines, sizeBytes }: OpenRecord, lineBytes: number): boolean {
    const { linesMax, bytesMax } = this.#multiline!;
    if (lines >= linesMax || sizeBytes + lineBytes - 1 > bytesMax) return true;
    const { bytes, start, end } = this.line.text();
    return this.#starts!.isStart(bytes, start, end, false);
  }

  get #isOpen(): boolean {
    return this.#open[0].start >= 0 || this.#open[1].start >= 0;
  }

  /** Ends a record before the line at `at`. The record of the other stream may be behind it. */
  #end(open: OpenRecord, at: number): void {
    open.start = -1;
    const other = open === this.#open[0] ? this.#open[1] : this.#open[0];
    if (other.start < 0) this.cut = at;
    else if (other.start > open.lastStart) this.cut = other.start;
  }

  /** Ends the records of both streams, and cuts the content at `at`. */
  endAll(at: number): void {
    for (const open of this.#open) open.start = -1;
    this.cut = at;
  }
}

/** The lines of a record that is not decoded yet, or a line that is none of a container. */
interface WaitingLines {
  readonly problem: string | null;
  readonly lines: TextRange[];
}

/** Decodes the records of containers. Records of one line, which most are, are decoded where they lie. */
export class ContainerDecoder implements RecordDecoder {
  #stop: StopFlag | undefined;
  /** In the order of their first lines. */
  #waiting: WaitingLines[] = [];
  /** By number of the stream, its last record. */
  readonly #last: WaitingLines[] = [];
  #joined = new Uint8Array(4096);

  constructor(
    private readonly texts: RecordTextDecoder,
    private readonly records: ContainerRecords,
    private readonly isMultiline: boolean,
  ) {}

  get counters(): RecordTextDecoder['counters'] {
    return this.texts.counters;
  }

  use(origin: LinesOrigin): void {
    this.#stop = origin.stop;
    this.texts.use(origin);
  }

  get years(): NonNullable<Written['years']> {
    return this.texts.years;
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const { records, texts } = this;
    const content = bytes.subarray(0, end);
    this.#waiting = [];
    records.endAll(start);
    texts.beginTurn();
    let done = start;
    for (let at = start; at < end;) {
      requireGoing(this.#stop);
      const feed = content.indexOf(lineFeed, at);
      const line = { bytes: content, start: at, end: feed < 0 ? end : feed };
      records.take(content, at, line.end);
      const { problem, begins } = records;
      if (this.#waiting.length === 0 && records.cut > line.end)
        this.#decode(problem, [line], builder, reject, records.line.text());
      else if (problem !== null || begins) this.#waiting.push({ problem, lines: [line] });
      else this.#last[records.line.stream]!.lines.push(line);
      if (begins && this.#waiting.length > 0) this.#last[records.line.stream] = this.#waiting.at(-1)!;
      at = Math.min(line.end + 1, end);
      if (at === end) records.endAll(end);
      if (records.cut === done) continue;
      if (!this.#decodeTo(records.cut, builder, reject)) return done;
      done = records.cut;
      if (builder.full || texts.turnIsOver) return done;
    }
    return done;
  }

  /** Decodes what waits before `cut`; returns false where that is more than the builder has room for. */
  #decodeTo(cut: number, builder: BatchBuilder, reject: RejectLine): boolean {
    const found = this.#waiting.findIndex(({ lines }) => lines[0]!.start >= cut);
    const count = found < 0 ? this.#waiting.length : found;
    if (builder.rows > 0 && builder.rows + count > rowGroupRowsMax) {
      builder.close();
      return false;
    }
    for (const { problem, lines } of this.#waiting.splice(0, count))
      this.#decode(problem, lines, builder, reject);
    return true;
  }

  /** Decodes a record; the text of its only line may be there already. */
  #decode(
    problem: string | null,
    lines: readonly TextRange[],
    builder: BatchBuilder,
    reject: RejectLine,
    read?: TextRange,
  ): void {
    for (const line of lines) this.#countNuls(line);
    const { start } = lines[0]!;
    const { end } = lines.at(-1)!;
    if (problem === null) {
      const rejectRecord = (reason: string): void => reject(reason, start, end, linesApart(lines));
      this.texts.decodeText(read ?? this.#join(lines), builder, rejectRecord);
    } else if (problem !== blankLine) reject(problem, start, end);
  }

  #countNuls({ bytes, start, end }: TextRange): void {
    const textAt = textStart(bytes, start, end);
    for (let at = start; at < textAt; at++) if (bytes[at] === 0) this.counters.nulBytes++;
  }

  /** The text of a record: parts of a line without anything between them, lines with a line feed. Its first line is read last. */
  #join(lines: readonly TextRange[]): TextRange {
    const { line } = this.records;
    let length = 0;
    for (const { bytes, start, end } of lines) {
      line.read(bytes, start, end);
      const text = line.text();
      const needed = length + text.end - text.start + 1;
      if (needed > this.#joined.length) {
        const longer = new Uint8Array(2 * needed);
        longer.set(this.#joined.subarray(0, length));
        this.#joined = longer;
      }
      this.#joined.set(text.bytes.subarray(text.start, text.end), length);
      length = line.isPartial ? needed - 1 : needed;
      if (!line.isPartial) this.#joined[length - 1] = lineFeed;
    }
    const end = line.isPartial ? length : length - 1;
    const { bytes, start, end: firstEnd } = lines[0]!;
    line.read(bytes, start, firstEnd);
    return this.isMultiline ? joinLines(this.#joined, 0, length) : { bytes: this.#joined, start: 0, end };
  }
}

/** The lines of a record between which others lie, joined; undefined where there are none. */
function linesApart(lines: readonly TextRange[]): Uint8Array | undefined {
  if (lines.every(({ start }, i) => i === 0 || start === lines[i - 1]!.end + 1)) return undefined;
  const feed = Buffer.of(lineFeed);
  const joined = lines.flatMap(({ bytes, start, end }) => [feed, bytes.subarray(start, end)]);
  return Buffer.concat(joined.slice(1));
}
