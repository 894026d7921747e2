import { lineBytesMax } from '../../engine/index.js';
import {
  type AgentDefinition,
  type Encoding,
  isOfContainers,
  type LineFormat,
  lineFormatOf,
} from '../definition/definition.js';
import { ContainerRecords } from './container-records.js';
import { encodingOf, ReencodedEnds } from './encodings.js';
import { JsonValues } from './json-values.js';
import { MultilineRecords, singleLines, textStart, type RecordEnds } from './line-framing.js';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;

/** How an agent's lines form records, by the first bytes of their content, which tell its encoding. */
export type RecordEndsOf = (head: Uint8Array) => RecordEnds;

/** Tells how an agent's lines form records. */
export function recordEndsOf(definition: AgentDefinition): RecordEndsOf {
  const lines = lineFormatOf(definition);
  const known = new Map<Encoding | undefined, RecordEnds>();
  return (head) => {
    const encoding = encodingOf(head, lines?.encoding);
    const ends = known.get(encoding) ?? textEndsOf(lines);
    const found =
      encoding === undefined || ends.encoding === encoding ? ends : new ReencodedEnds(ends, encoding);
    known.set(encoding, found);
    return found;
  };
}

function textEndsOf(lines: LineFormat | undefined): RecordEnds {
  if (lines?.values !== undefined) return new JsonValues(lines.values.records);
  if (lines !== undefined && isOfContainers(lines)) return new ContainerRecords(lines);
  if (lines?.format === 'csv') return new QuotedRecords(separatorOf(lines));
  return lines?.multiline === undefined ? singleLines : new MultilineRecords(lines.multiline);
}

/** The character between the values of CSV. */
export function separatorOf({ separator = ',' }: LineFormat): number {
  return separator.charCodeAt(0);
}

/** What the scan of a record found instead of its end: the end of the content, an open value there, or a mark that is out of place. */
const atEnd = -1;
const inQuotes = -2;
const outOfPlace = -3;

/**
 * Records of CSV (RFC 4180): a line end in quotation marks belongs to the value. Where a mark is not at the beginning or the
 * end of a value, or none closes a value within `lineBytesMax` bytes of the record, the record is its first line: a mark too
 * many costs one line and not all that follow. So the work is linear: every mark of records of several lines opens or closes
 * a value, so if one record is open at each line end, the one from its second line on is not.
 */
export class QuotedRecords implements RecordEnds {
  /** A program may pause between the lines of a value, but hardly for so long. */
  readonly timeoutMs = 60_000;
  readonly long = singleLines.long;

  /** @param separator the ASCII character between values */
  constructor(private readonly separator: number) {}

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const content = bytes.subarray(0, end);
    const first = content.indexOf(quote, start);
    if (first < 0) return singleLines.wholeTo(content, start, end);
    let at = singleLines.wholeTo(content, start, first);
    for (;;) {
      let feed = this.#feed(content, at);
      if ((feed === atEnd || feed === inQuotes) && end - at <= lineBytesMax) return at;
      if (feed < 0) feed = content.indexOf(lineFeed, at);
      if (feed < 0) return at;
      at = feed + 1;
    }
  }

  /** End of the record that begins at `from`, in content that ends with a record. */
  recordEnd(content: Uint8Array, from: number): number {
    let feed = this.#feed(content, from);
    if (feed === atEnd && content.length - from <= lineBytesMax) return content.length;
    if (feed < 0) feed = content.indexOf(lineFeed, from);
    return feed < 0 ? content.length : feed + 1;
  }

  /** Position of the line feed that ends the record from `from` on, or what was found instead. */
  #feed(bytes: Uint8Array, from: number): number {
    const limit = Math.min(bytes.length, from + lineBytesMax + 1);
    const { separator } = this;
    let isOpen = false;
    // The only position at which a mark may open a value; right behind a closing mark it is the second one of two that mean one.
    let opensAt = textStart(bytes, from, limit);
    let closedAt = -1;
    for (let at = opensAt; at < limit; at++) {
      const byte = bytes[at]!;
      if (isOpen) {
        if (byte !== quote) continue;
        isOpen = false;
        closedAt = opensAt = at + 1;
      } else if (byte === quote) {
        if (at !== opensAt) return outOfPlace;
        isOpen = true;
      } else if (byte === lineFeed) {
        return at;
      } else if (byte === separator) {
        opensAt = at + 1;
      } else if (at === closedAt && byte !== carriageReturn) {
        return outOfPlace;
      }
    }
    return isOpen ? inQuotes : atEnd;
  }
}
