import { lineBytesMax } from '../../engine/index.js';
import { containerParts, type LineFormat } from '../definition/definition.js';
import { compileTimestamp } from '../definition/timestamp.js';
import { byteFlags, EscapedTexts, hexValue } from './escaped-texts.js';
import { JsonLineParser } from './json-decoder.js';
import { noName, ofLine } from './json-lines.js';
import { textStart, type TextRange } from './line-framing.js';
import { expectedAt, skipSpace } from './line-text.js';
import { bytesText, type GivenParts, Kind, ParsedLine } from './parsed-line.js';

const carriageReturn = 0x0d;
const blank = 0x20;
const quote = 0x22;
const backslash = 0x5c;

/** What an empty line has in place of a problem. */
export const blankLine = '';

/** Numbers of the values that all lines have. */
const [log, stream, time] = [0, 1, 2];
const keys = ['log', 'stream', 'time'];
const attributePrefix = 'container.attrs.';
const readTime = compileTimestamp({ format: 'rfc3339' }, 'UTC');

/** A time has at least the form 2026-11-28T05:00Z. */
const timeBytesMin = 17;

const streams = ['stdout', 'stderr'].map((name) => Buffer.from(name));
const logBegin = Buffer.from('{"log":"');
const streamBegin = Buffer.from('","stream":"');
const timeBegin = Buffer.from('","time":"');
const isEscape = byteFlags('"\\/bfnrtu');

/**
 * A line of a container's log: a line that the container wrote, or a part of one. Filled again for each line.
 * - `docker`, of the driver json-file: `{"log":"TEXT\n","stream":"stdout","attrs":{…},"time":"TIME"}`. A text that does not end
 *   with `\n` is a part of a line. Lines of this form without `attrs` are read at once, others by the parser of JSON.
 * - `cri`, of containerd and CRI-O: `TIME STREAM TAGS TEXT`, where the first tag is `F`, or `P` for a part of a line.
 */
export class ContainerLine implements GivenParts {
  /** Number of the stream: 0 for stdout, 1 for stderr. */
  stream = 0;
  /** Whether the next line of the stream continues the text. */
  isPartial = false;
  /** Names of the values. That of the text may have escapes. */
  readonly names: readonly string[];
  readonly line: ParsedLine;
  readonly #parser: JsonLineParser;
  readonly #texts = new EscapedTexts();
  #isEscaped = false;

  /** @param sources the parts from which fields are read; attributes among them may have points in their names */
  constructor(
    private readonly format: LineFormat['format'],
    sources: readonly string[],
  ) {
    const wanted = [...new Set(sources)].filter((name) => name.startsWith(attributePrefix));
    this.names = [...containerParts, ...wanted];
    this.line = new ParsedLine(this.names.length);
    const own = [...keys, ...wanted].map((name, field) => ({ name, parent: ofLine, field }));
    const attrs = { name: 'attrs', parent: ofLine, field: noName };
    const inside = wanted.map((name, i) => {
      return { name: name.slice(attributePrefix.length), parent: own.length, field: keys.length + i };
    });
    this.#parser = new JsonLineParser(
      this.names,
      undefined,
      inside.length === 0 ? own : [...own, attrs, ...inside],
    );
  }

  /** Reads bytes[start, end), a line without its line feed. Returns null, why it is no line of a container, or `blankLine`. */
  read(bytes: Uint8Array, start: number, end: number): string | null {
    if (end - start > lineBytesMax) return `has ${end - start} bytes, more than ${lineBytesMax}`;
    const from = textStart(bytes, start, end);
    this.#isEscaped = false;
    if (skipSpace(bytes, from, end) === end) return blankLine;
    if (this.format === 'cri') return this.#readCri(bytes, from, end);
    const textEnd = bytes[end - 1] === carriageReturn ? end - 1 : end;
    return this.#readUsual(bytes, from, textEnd) ? null : this.#readJson(bytes, from, textEnd);
  }

  /** The text of the line that was read last, without its line end. Valid until the next line is read. */
  text(): TextRange {
    const { sources, starts, ends } = this.line;
    if (this.#isEscaped) {
      this.#texts.clear();
      this.#texts.keep(sources[log]!, starts[log]!, ends[log]!, log, this.line);
      this.#isEscaped = false;
    }
    const [bytes, start, end] = [sources[log]!, starts[log]!, ends[log]!];
    const hasReturn = !this.isPartial && end > start && bytes[end - 1] === carriageReturn;
    return { bytes, start, end: hasReturn ? end - 1 : end };
  }

  /** The time of the line that was read last, in milliseconds since the epoch; NaN where it can't be read. */
  timeMs(): number {
    const { sources, starts, ends } = this.line;
    return readTime(bytesText(sources[time]!, starts[time]!, ends[time]!), 0) ?? NaN;
  }

  /** Sets the stream to the name at `at`; returns the position behind it, or -1 where it is none. */
  #readStream(bytes: Uint8Array, at: number, end: number): number {
    this.stream = streams.findIndex((name) => hasAt(bytes, at, end, name));
    if (this.stream < 0) return -1;
    this.line.set(stream, Kind.text, bytes, at, at + streams[this.stream]!.length);
    return this.line.ends[stream]!;
  }

  #readCri(bytes: Uint8Array, start: number, end: number): string | null {
    const fail = (at: number, expected: string): string =>
      `is not a line of a container: ${expectedAt(bytes, start, end, Math.min(at, end), expected)}`;
    let at = start;
    while (at < end && bytes[at] !== blank) at++;
    if (at - start < timeBytesMin || bytes[start + 4] !== 0x2d || bytes[start + 10] !== 0x54)
      return fail(start, 'a time such as 2026-11-28T05:00:00.123Z');
    this.line.set(time, Kind.text, bytes, start, at);
    const streamEnd = this.#readStream(bytes, at + 1, end);
    if (streamEnd < 0 || streamEnd === end || bytes[streamEnd] !== blank)
      return fail(at + 1, 'stdout or stderr, and a blank');
    const tag = streamEnd + 1 < end ? bytes[streamEnd + 1] : 0;
    at = streamEnd + 2;
    const isAlone = at >= end || bytes[at] === blank || bytes[at] === 0x3a;
    if (!isAlone || (tag !== 0x50 && tag !== 0x46)) return fail(streamEnd + 1, 'P or F');
    this.isPartial = tag === 0x50;
    while (at < end && bytes[at] !== blank) at++;
    this.line.set(log, Kind.text, bytes, Math.min(at + 1, end), end);
    return null;
  }

  /** Reads a line of Docker in its usual form; returns false for another. */
  #readUsual(bytes: Uint8Array, from: number, end: number): boolean {
    if (this.names.length > keys.length || !hasAt(bytes, from, end, logBegin)) return false;
    const start = from + logBegin.length;
    let at = start;
    let escapes = 0;
    let lastEscape = -1;
    for (let byte = bytes[at]!; byte !== quote; byte = bytes[++at]!) {
      if (at >= end || byte < blank) return false;
      if (byte !== backslash) continue;
      escapes++;
      lastEscape = at++;
      if (isEscape[bytes[at]!] === 0) return false;
      if (bytes[at] !== 0x75) continue;
      // A line feed that is written in digits, or digits that are none, are for the other parser.
      if (hexValue(bytes, at + 1, end, 4) <= 0x0a) return false;
      at += 4;
    }
    const streamEnd = hasAt(bytes, at, end, streamBegin)
      ? this.#readStream(bytes, at + streamBegin.length, end)
      : -1;
    if (streamEnd < 0 || !hasAt(bytes, streamEnd, end, timeBegin)) return false;
    const timeStart = streamEnd + timeBegin.length;
    let timeEnd = timeStart;
    while (bytes[timeEnd] !== quote && bytes[timeEnd] !== backslash && bytes[timeEnd]! >= blank) timeEnd++;
    if (timeEnd !== end - 2 || bytes[timeEnd] !== quote || bytes[end - 1] !== 0x7d) return false;
    this.line.set(time, Kind.text, bytes, timeStart, timeEnd);
    this.isPartial = lastEscape < 0 || lastEscape !== at - 2 || bytes[at - 1] !== 0x6e;
    this.#isEscaped = escapes > (this.isPartial ? 0 : 1);
    this.line.set(log, Kind.text, bytes, start, this.isPartial ? at : at - 2);
    return true;
  }

  #readJson(bytes: Uint8Array, start: number, end: number): string | null {
    const { line } = this;
    const problem = this.#parser.parse(bytes, start, end, false, line);
    if (problem !== null) return problem;
    const lacking = keys.findIndex((_, i) => line.kinds[i] !== Kind.text);
    if (lacking >= 0) return `is not a line of a container: it has no text under the key "${keys[lacking]!}"`;
    const streamEnd = line.ends[stream]!;
    if (this.#readStream(line.sources[stream]!, line.starts[stream]!, streamEnd) !== streamEnd)
      return 'is not a line of a container: its stream is neither stdout nor stderr';
    const logEnd = line.ends[log]!;
    this.isPartial = logEnd === line.starts[log] || line.sources[log]![logEnd - 1] !== 0x0a;
    if (!this.isPartial) line.ends[log] = logEnd - 1;
    return null;
  }
}

function hasAt(bytes: Uint8Array, at: number, end: number, text: Uint8Array): boolean {
  if (at + text.length > end) return false;
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}
