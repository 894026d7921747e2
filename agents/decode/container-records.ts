import { type BatchBuilder, lineBytesMax, rowGroupRowsMax } from '../../engine/index.js';
import type { LineFormat } from '../definition/definition.js';
import { blankLine, ContainerLine } from './container-line.js';
import { OuterDecoder, type LinesOrigin, type RecordTextDecoder, type RejectLine } from './line-decoder.js';
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

/** Lines of a record of one stream, or a line that is none of a container. */
interface FoundLines {
  readonly problem: string | null;
  readonly lines: TextRange[];
  sizeBytes: number;
  /** Of the last line: its time, and whether it is a part of a line. */
  lastMs: number;
  isPartial: boolean;
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
  readonly multiline: LineFormat['multiline'];
  /** Last position so far at which the content may be cut. */
  cut = 0;
  /** What was found since `begin` by its first lines, except what `take` returned. */
  found: FoundLines[] = [];
  /** The records that may continue, by number of the stream. */
  readonly #open: [FoundLines | null, FoundLines | null] = [null, null];
  readonly #starts: MultilineRecords | null;

  /** Throws `invalid` for an invalid pattern. @param sources the parts from which fields are read */
  constructor({ format, multiline }: LineFormat, sources: readonly string[] = []) {
    this.line = new ContainerLine(format, sources);
    this.timeoutMs = multiline?.timeoutMs ?? timeoutMsDefault;
    this.multiline = multiline;
    this.#starts = multiline === undefined ? null : new MultilineRecords(multiline);
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const content = bytes.subarray(0, end);
    this.begin(start);
    for (let at = start; ;) {
      const feed = content.indexOf(lineFeed, at);
      if (feed < 0) {
        if (end - this.cut > lineBytesMax && at > this.cut) this.endAll(at);
        return this.cut;
      }
      this.take({ bytes: content, start: at, end: feed });
      at = feed + 1;
    }
  }

  /** Begins at a position where no record is open. */
  begin(start: number): void {
    this.found = [];
    this.endAll(start);
  }

  /** Ends all records before `at`. */
  endAll(at: number): void {
    this.#open.fill(null);
    this.cut = at;
  }

  /** Takes the next line, without its line feed. Returns it where it is by itself, and nothing before it is open or found. */
  take(line: TextRange): FoundLines | null {
    const next = line.end + 1;
    if (next - this.cut > lineBytesMax && line.start > this.cut) this.endAll(line.start);
    const problem = this.line.read(line.bytes, line.start, line.end);
    const { isPartial, stream } = this.line;
    const isWhole = problem !== null || (!isPartial && this.#starts === null);
    const lines = { problem, lines: [line], sizeBytes: next - line.start, lastMs: NaN, isPartial };
    if (isWhole && !this.#isOpen) {
      this.cut = next;
      if (this.found.length === 0) return lines;
      this.found.push(lines);
    } else if (problem !== null) this.found.push(lines);
    else {
      lines.lastMs = this.line.timeMs();
      this.#add(lines, stream);
      if (isWhole) this.#end(stream, next);
    }
    return null;
  }

  /** Adds a line to the open record of its stream, or as the next one. */
  #add(line: FoundLines, stream: number): void {
    const { start } = line.lines[0]!;
    for (const each of [0, 1])
      if (line.lastMs - (this.#open[each]?.lastMs ?? NaN) >= this.timeoutMs) this.#end(each, start);
    if (this.#open[stream] !== null && this.#endsBefore(this.#open[stream]!, line)) this.#end(stream, start);
    const open = this.#open[stream]!;
    if (open === null) {
      if (!this.#isOpen) this.cut = start;
      this.#open[stream] = line;
      this.found.push(line);
      return;
    }
    open.lines.push(line.lines[0]!);
    open.sizeBytes += line.sizeBytes;
    open.lastMs = line.lastMs;
    open.isPartial = line.isPartial;
  }

  /** Whether an open record ends before the line that was read last. */
  #endsBefore({ isPartial, lines, sizeBytes }: FoundLines, line: FoundLines): boolean {
    if (isPartial) return false;
    const { linesMax, bytesMax } = this.multiline!;
    if (lines.length >= linesMax || sizeBytes + line.sizeBytes - 1 > bytesMax) return true;
    const { bytes, start, end } = this.line.text();
    return this.#starts!.isStart(bytes, start, end, false);
  }

  get #isOpen(): boolean {
    return this.#open[0] !== null || this.#open[1] !== null;
  }

  /** Ends the open record of a stream before `at`. The record of the other stream may be behind it. */
  #end(stream: number, at: number): void {
    const { lines } = this.#open[stream]!;
    const other = this.#open[1 - stream]!;
    this.#open[stream] = null;
    if (other === null) this.cut = at;
    else if (other.lines[0]!.start > lines.at(-1)!.start) this.cut = other.lines[0]!.start;
  }
}

/** Decodes the records of containers. Records of one line, which most are, are decoded where they lie. */
export class ContainerDecoder extends OuterDecoder<RecordTextDecoder> {
  #stop: StopFlag | undefined;
  #joined = new Uint8Array(4096);

  constructor(
    texts: RecordTextDecoder,
    private readonly records: ContainerRecords,
  ) {
    super(texts);
  }

  override use(origin: LinesOrigin): void {
    this.#stop = origin.stop;
    super.use(origin);
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const { records, lines: texts } = this;
    const content = bytes.subarray(0, end);
    records.begin(start);
    texts.beginTurn();
    let done = start;
    for (let at = start; at < end;) {
      requireGoing(this.#stop);
      const feed = content.indexOf(lineFeed, at);
      const lineEnd = feed < 0 ? end : feed;
      const alone = records.take({ bytes: content, start: at, end: lineEnd });
      if (alone !== null) this.#decode(alone, true, builder, reject);
      at = Math.min(lineEnd + 1, end);
      if (at === end) records.endAll(end);
      if (records.cut === done) continue;
      if (!this.#decodeFound(records.cut, builder, reject)) return done;
      done = records.cut;
      if (builder.full || texts.turnIsOver) return done;
    }
    return done;
  }

  /** Decodes what was found before `cut`; returns false where that is more than the builder has room for. */
  #decodeFound(cut: number, builder: BatchBuilder, reject: RejectLine): boolean {
    const { found } = this.records;
    const behind = found.findIndex(({ lines }) => lines[0]!.start >= cut);
    const count = behind < 0 ? found.length : behind;
    if (builder.rows > 0 && builder.rows + count > rowGroupRowsMax) {
      builder.close();
      return false;
    }
    for (const each of found.splice(0, count)) this.#decode(each, false, builder, reject);
    return true;
  }

  /** Decodes a record, or rejects a line that is none. `isRead` says that its only line was read last. */
  #decode({ problem, lines }: FoundLines, isRead: boolean, builder: BatchBuilder, reject: RejectLine): void {
    for (const line of lines) this.#countNuls(line);
    const { start } = lines[0]!;
    const { end } = lines.at(-1)!;
    if (problem === blankLine) return;
    if (problem !== null) return reject(problem, start, end, this.lines.kept({ ...lines[0]!, end }));
    const text = isRead ? this.records.line.text() : this.#join(lines);
    this.lines.decodeText(text, builder, (reason, kept) => {
      const isMasked = this.lines.masks === true && kept !== undefined;
      reject(reason, start, end, isMasked ? this.records.line.withText(kept) : linesApart(lines));
    });
  }

  #countNuls({ bytes, start, end }: TextRange): void {
    const textAt = textStart(bytes, start, end);
    for (let at = start; at < textAt; at++) if (bytes[at] === 0) this.counters.nulBytes++;
  }

  /** The text of a record: parts of a line without anything between them, lines with a line feed. Its first line is read last. */
  #join(lines: readonly TextRange[]): TextRange {
    const { line, multiline } = this.records;
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
    line.read(lines[0]!.bytes, lines[0]!.start, lines[0]!.end);
    return multiline === undefined
      ? { bytes: this.#joined, start: 0, end }
      : joinLines(this.#joined, 0, length);
  }
}

/** The lines of a record between which others lie, joined; undefined where there are none. */
function linesApart(lines: readonly TextRange[]): Uint8Array | undefined {
  if (lines.every(({ start }, i) => i === 0 || start === lines[i - 1]!.end + 1)) return undefined;
  const feed = Buffer.of(lineFeed);
  return Buffer.concat(lines.flatMap(({ bytes, start, end }) => [feed, bytes.subarray(start, end)]).slice(1));
}
