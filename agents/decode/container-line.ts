import { lineBytesMax } from '../../engine/index.js';
import { containerParts, type LineFormat } from '../definition/definition.js';
import { compileTimestamp } from '../../engine/times/timestamp.js';
import { EscapedTexts } from './escaped-texts.js';
import { JsonLineParser } from './json-decoder.js';
import { noName, ofLine } from './json-lines.js';
import { closeBrace, JsonScanner } from './json-scanner.js';
import { textStart, type TextRange } from './line-framing.js';
import { skipSpace } from './line-text.js';
import { bytesText, type GivenParts, Kind, ParsedLine } from './parsed-line.js';

const carriageReturn = 0x0d;
const blank = 0x20;
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
const noLine = 'is not a line of a container';

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
  readonly #scan = new JsonScanner();
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

  /** Lines of this format with another text in place of that of the line that was read last. */
  withText(text: Uint8Array): Uint8Array {
    const { sources, starts, ends, kinds } = this.line;
    const value = (i: number): string => bytesText(sources[i]!, starts[i]!, ends[i]!);
    const whole = bytesText(text, 0, text.length);
    const head = `${value(time)} ${value(stream)} F `;
    if (this.format === 'cri') return Buffer.from(head + whole.replaceAll('\n', `\n${head}`));
    const attrs = this.names.slice(keys.length).flatMap((name, i) => {
      const at = keys.length + i;
      return kinds[at] === Kind.absent ? [] : [[name.slice(attributePrefix.length), value(at)]];
    });
    const fixed = { log: `${whole}\n`, stream: value(stream), time: value(time) };
    const all = attrs.length === 0 ? fixed : { ...fixed, attrs: Object.fromEntries(attrs) as unknown };
    return Buffer.from(JSON.stringify(all));
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
    let at = start;
    while (at < end && bytes[at] !== blank) at++;
    const timeEnd = at;
    const isTime = at - start >= timeBytesMin && bytes[start + 4] === 0x2d && bytes[start + 10] === 0x54;
    const streamEnd = this.#readStream(bytes, at + 1, end);
    const tag =
      streamEnd < 0 || bytes[streamEnd] !== blank || streamEnd + 1 >= end ? 0 : bytes[streamEnd + 1];
    at = streamEnd + 2;
    const isTag = (tag === 0x50 || tag === 0x46) && (at >= end || bytes[at] === blank || bytes[at] === 0x3a);
    if (!isTime || !isTag) return `${noLine}: expected TIME, stdout or stderr, P or F, and a text`;
    while (at < end && bytes[at] !== blank) at++;
    this.isPartial = tag === 0x50;
    this.line.set(time, Kind.text, bytes, start, timeEnd);
    this.line.set(log, Kind.text, bytes, Math.min(at + 1, end), end);
    return null;
  }

  /** Reads a line of Docker in its usual form; returns false for another. */
  #readUsual(bytes: Uint8Array, from: number, end: number): boolean {
    if (this.names.length > keys.length || !hasAt(bytes, from, end, logBegin)) return false;
    const start = from + logBegin.length;
    const close = this.#scan.stringEnd(bytes, start, end);
    const { hasEscape } = this.#scan;
    // A line feed that is written in digits is for the other parser.
    const isDigits = bytes[close - 2] === 0x30 && (bytes[close - 1]! | 0x20) === 0x61;
    if (close < 0 || isDigits || !hasAt(bytes, close, end, streamBegin)) return false;
    const streamEnd = this.#readStream(bytes, close + streamBegin.length, end);
    if (streamEnd < 0 || !hasAt(bytes, streamEnd, end, timeBegin)) return false;
    const timeStart = streamEnd + timeBegin.length;
    const timeEnd = this.#scan.stringEnd(bytes, timeStart, end);
    if (this.#scan.hasEscape || timeEnd !== end - 2 || bytes[end - 1] !== closeBrace) return false;
    let at = close - 2;
    while (at >= start && bytes[at] === backslash) at--;
    // Of an odd number of backslashes before the n, the last is not escaped itself.
    this.isPartial = bytes[close - 1] !== 0x6e || (close - at) % 2 === 0;
    const textEnd = this.isPartial ? close : close - 2;
    this.#isEscaped = hasEscape && bytes.indexOf(backslash, start) < textEnd;
    this.line.set(log, Kind.text, bytes, start, textEnd);
    this.line.set(time, Kind.text, bytes, timeStart, timeEnd);
    return true;
  }

  #readJson(bytes: Uint8Array, start: number, end: number): string | null {
    const { sources, starts, ends, kinds } = this.line;
    const problem = this.#parser.parse(bytes, start, end, false, this.line);
    if (problem !== null) return problem;
    const isWhole = keys.every((_, i) => kinds[i] === Kind.text);
    if (!isWhole || this.#readStream(sources[stream]!, starts[stream]!, ends[stream]!) !== ends[stream])
      return `${noLine}: expected a log, a time, and stdout or stderr as its stream`;
    const textEnd = ends[log]!;
    this.isPartial = textEnd === starts[log] || sources[log]![textEnd - 1] !== 0x0a;
    if (!this.isPartial) ends[log] = textEnd - 1;
    return null;
  }
}

function hasAt(bytes: Uint8Array, at: number, end: number, text: Uint8Array): boolean {
  if (at + text.length > end) return false;
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}
