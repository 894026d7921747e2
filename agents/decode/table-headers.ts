import {
  type AgentDefinition,
  type Encoding,
  type FieldDefinition,
  isTable,
  type LineFormat,
  lineFormatOf,
} from '../definition/definition.js';
import type { Reading } from '../sources/source-position.js';
import { reencoded } from './encodings.js';
import { byteFlags } from './escaped-texts.js';
import { sourcesOf } from './field-writers.js';
import { LineFramer, textStart, type FrameSource, type TextRange } from './line-framing.js';
import { bytesText } from './parsed-line.js';
import { QuotedRecords, recordEndsOf, separatorOf } from './record-ends.js';
import { TextPreparer } from './prepared-text.js';
import { RowSplitter, type RowForm, type TableHeader, withoutDoubled } from './table-rows.js';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;
const hash = 0x23;

/** Limit on the characters of a header in JSON: it is stored with each position of a file. */
const headerCharsMax = 60_000;

/** Lines with `#` that say how rows are read: of W3C's format, and of Zeek. */
const directive = /^#(fields|separator|empty_field|unset_field)\b(:?)/i;

/** A header in content: it takes the place of bytes[start, end). */
interface FoundHeader {
  readonly header: TableHeader;
  readonly start: number;
  readonly end: number;
}

/** Complete records, and what is known where they begin. */
interface RecordsRange {
  readonly start: number;
  readonly end: number;
  readonly reading?: Reading | undefined;
  /** The encoding of the bytes; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
  /** Whether they begin inside a line whose first part was read before. */
  readonly continuesLine: boolean;
}

/** Finds the headers of an agent's tables. Which one is in force at an offset depends on the bytes before it alone. */
export class TableHeaders {
  /** Tells which lines form a row; undefined where each is one. */
  readonly records: QuotedRecords | undefined;
  /** The state before any header. */
  readonly #first: TableHeader;
  /** The form of rows that no header declares. */
  readonly #form: RowForm;
  readonly #wanted: ReadonlySet<string>;
  readonly #row = new RowSplitter();
  readonly #texts: TextPreparer;
  #last: TableHeader;
  /** The longest text of a header's names that a row with these names contains as it is. */
  #needle: { readonly header: TableHeader; readonly bytes: Uint8Array } | undefined;

  constructor(
    readonly lines: LineFormat,
    fields: readonly FieldDefinition[],
  ) {
    const { format, columns } = lines;
    this.#texts = new TextPreparer(lines);
    const isCsv = format === 'csv';
    const separator = isCsv ? separatorOf(lines) : 0x09;
    if (isCsv) this.records = new QuotedRecords(separator);
    this.#wanted = new Set(fields.flatMap(sourcesOf));
    this.#form = {
      separators: byteFlags(String.fromCharCode(separator)),
      quotes: isCsv ? 'csv' : 'none',
      unset: '',
      empty: '',
    };
    const problem =
      columns === undefined ? 'comes before the first line with the names of the columns' : null;
    this.#first = { text: undefined, names: columns ?? [], form: this.#form, problem };
    this.#last = this.#first;
  }

  /** The header in force where content is read on. */
  of(reading: Reading | undefined): TableHeader {
    const text = reading?.header;
    if (text === undefined) return this.#first;
    if (text !== this.#last.text)
      this.#last = this.lines.format === 'w3c' ? this.#declared(text) : this.#named(Buffer.from(text));
    return this.#last;
  }

  /** What is known behind complete records. */
  behind(bytes: Uint8Array, { start, end, reading, encoding, continuesLine }: RecordsRange): Reading {
    const records = bytes.subarray(start, end);
    const text = encoding === undefined ? records : reencoded(records, encoding).bytes;
    const from = continuesLine && text[0] !== 0 ? lineEnd(text, 0) : 0;
    const rows = { bytes: text, start: from, end: text.length };
    return withHeader(reading, this.lastRows(rows, this.of(reading)).header);
  }

  /** The last header of complete records, which begin under the given one, and the records behind it. */
  lastRows(
    { bytes, start, end }: TextRange,
    first = this.#first,
  ): TextRange & { readonly header: TableHeader } {
    const content = bytes.subarray(0, end);
    let last = { header: first, end: start };
    for (
      let found: typeof last | null = last;
      found !== null;
      found = this.next(last.header, content, last.end)
    )
      last = found;
    return { bytes, start: last.end, end, header: last.header };
  }

  /**
   * The row at the end of a text that was kept with its header, and what is known there. `header` for a text without a row;
   * `no use` where its header names no source of a field.
   */
  keptRow(bytes: Uint8Array): { readonly row: Uint8Array; readonly reading: Reading } | 'header' | 'no use' {
    const { start, end, header } = this.lastRows({ bytes, start: 0, end: bytes.length });
    if (start === end && end > 0) return header.problem === null ? 'header' : 'no use';
    // An agent whose file has the columns does not take the first row for their names, as it may have done before.
    let from = start;
    for (let next = start; next < end; next = this.#endOf(bytes, from)) from = next;
    return { row: bytes.subarray(from), reading: withHeader(undefined, header) };
  }

  #endOf(content: Uint8Array, start: number): number {
    return this.records === undefined ? lineEnd(content, start) : this.records.recordEnd(content, start);
  }

  /** The next header in content of complete records from `start` on; null where the given one stays in force. */
  next(header: TableHeader, content: Uint8Array, start: number): FoundHeader | null {
    const isDeclared = this.lines.format === 'w3c';
    return isDeclared ? this.#nextDeclared(header, content, start) : this.#nextNamed(header, content, start);
  }

  /** The next line that begins with `#`. Most of them leave the header as it is. */
  #nextDeclared(header: TableHeader, content: Uint8Array, from: number): FoundHeader | null {
    for (let at = from; ; at = lineEnd(content, at)) {
      const found = content.indexOf(hash, at);
      if (found < 0) return null;
      const start = at + content.subarray(at, found).lastIndexOf(lineFeed) + 1;
      at = found;
      if (textStart(content, start, found) < found) continue;
      const end = lineEnd(content, found);
      const line = bytesText(content, found, rowEnd(content, found, end));
      const isDirective = directive.test(line);
      return { header: isDirective ? this.#declared(`${header.text ?? ''}\n${line}`) : header, start, end };
    }
  }

  /** The next row that is a header. */
  #nextNamed(header: TableHeader, content: Uint8Array, from: number): FoundHeader | null {
    const { records } = this;
    const needle = this.#needleOf(header);
    const searched = Buffer.from(content.buffer, content.byteOffset, content.length);
    let start = from;
    let quoteAt = records === undefined ? -1 : content.indexOf(quote, start);
    while (start < content.length) {
      const found = searched.indexOf(needle, start);
      if (found < 0) return null;
      if (quoteAt >= 0 && quoteAt < start) quoteAt = content.indexOf(quote, start);
      // Without a quotation mark between them, each line is a record.
      if (quoteAt < 0 || quoteAt > found) start += content.subarray(start, found).lastIndexOf(lineFeed) + 1;
      let end = this.#endOf(content, start);
      for (; end <= found; end = this.#endOf(content, end)) start = end;
      const named = this.#headerIn(header, content, start, end);
      if (named !== null) return { header: named, start, end };
      start = end;
    }
    return null;
  }

  #needleOf(header: TableHeader): Uint8Array {
    if (this.#needle?.header === header) return this.#needle.bytes;
    // A quotation mark in a name is doubled in the row, and masked texts are other ones there. Under a header without use, every
    // row may be the next one.
    const texts = header.problem === null ? header.names.flatMap((name) => name.split(/"|\*{3}/)) : [];
    const longest = texts.reduce((most, text) => (text.length > most.length ? text : most), '');
    this.#needle = { header, bytes: Buffer.from(longest) };
    return this.#needle.bytes;
  }

  /**
   * The header that a row is: the first row is one; under one that names no source of a field, the next row that does; else
   * one with the same names, in any order. Null for other rows.
   */
  #headerIn(header: TableHeader, content: Uint8Array, start: number, end: number): TableHeader | null {
    const from = textStart(content, start, end);
    const to = rowEnd(content, from, end);
    if (from === to) return null;
    const isFirst = header === this.#first;
    const { length } = header.names;
    const values = header.problem === null ? this.#valuesIn(content.subarray(from, to)) : length;
    const mayOmit = isFirst && length > 1 && values === length - 1;
    if (values !== length && !mayOmit) return null;
    // What a header has is kept with positions, and it may be a row whose header is missing.
    const row = this.#texts.prepare({ bytes: content, start: from, end: to });
    if (row === null) return null;
    const named = this.#named(row.bytes.subarray(row.start, row.end));
    if (isFirst && header.problem !== null) return named;
    // The event viewer of Windows omits the name of the last column.
    if (mayOmit) return named.names.every((name, i) => name === header.names[i]) ? header : null;
    const isIt = header.problem !== null ? named.problem === null : sorted(named) === sorted(header);
    return isIt ? named : null;
  }

  #valuesIn(row: Uint8Array): number {
    const problem = this.#row.split(row, 0, row.length, this.#form, 0);
    return problem === null ? this.#row.count : 0;
  }

  /** The header that a row of names makes. */
  #named(row: Uint8Array): TableHeader {
    if (row.length === 0 || row.length > headerCharsMax) return this.#checked('', [], this.#form);
    this.#row.split(row, 0, row.length, this.#form, this.#valuesIn(row));
    const { count, starts, ends, quoted } = this.#row;
    const names = Array.from({ length: count }, (_, i) => {
      const [start, end] = [starts[i]!, ends[i]!];
      const name = quoted[i] === 2 ? withoutDoubled(row, start, end) : row.subarray(start, end);
      return bytesText(name, 0, name.length).trim();
    });
    return this.#checked(bytesText(row, 0, row.length), names, this.#form);
  }

  /** The header that lines with `#` make. */
  #declared(text: string): TableHeader {
    const lines = new Map<string, string>();
    for (const line of text.split('\n')) {
      const [, name, colon] = directive.exec(line) ?? [];
      // A log of W3C's format declares nothing but the fields.
      if (colon === ':') lines.clear();
      if (name !== undefined) lines.set(name.toLowerCase(), line);
    }
    const kept = [...lines.values()].join('\n');
    const fields = lines.get('fields') ?? '';
    if (fields.startsWith('#') && fields['#fields'.length] === ':') {
      const list = fields.slice('#fields:'.length).trim();
      const hasCommas = list.includes(',') && !/\s/.test(list);
      const names = hasCommas ? list.split(',') : list.split(/\s/).filter((name) => name !== '');
      const separators = byteFlags(hasCommas ? ',' : ' \t');
      return this.#checked(kept, names, { separators, quotes: 'strings', unset: '-', empty: '' });
    }
    const separator = (lines.get('separator') ?? '#separator \t')
      .slice('#separator '.length)
      .replace(/\\x([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    const valueOf = (name: string): string | undefined =>
      lines.get(name)?.slice(name.length + 1 + separator.length);
    const unset = valueOf('unset_field') ?? '-';
    const empty = valueOf('empty_field') ?? '(empty)';
    const form: RowForm = { separators: byteFlags(separator), quotes: 'none', unset, empty };
    const names = valueOf('fields')?.split(separator);
    if (names !== undefined) return this.#checked(kept, names, form);
    return { text: kept, names: [], form, problem: this.#first.problem };
  }

  #checked(text: string, names: readonly string[], form: RowForm): TableHeader {
    // The empty text stands for one that is too long: its rows must not become records under another one.
    if (text === '' || JSON.stringify(text).length > headerCharsMax)
      return { text: '', names: [], form, problem: `has a header of more than ${headerCharsMax} characters` };
    const wanted = [...this.#wanted];
    const isOfUse = wanted.length === 0 || names.some((name) => this.#wanted.has(name));
    const problem = `has a header that names no source of the agent's fields (${shown(wanted)}), but ${shown(names)}`;
    return { text, names, form, problem: isOfUse ? null : problem };
  }
}

function sorted({ names }: TableHeader): string {
  return JSON.stringify(names.toSorted());
}

/** Names in a message; only the first of many. */
function shown(names: readonly string[]): string {
  const few = names.slice(0, 5).map((name) => JSON.stringify(name.slice(0, 50)));
  return few.join(', ') + (names.length > few.length ? ' …' : '');
}

/** End of the line that `at` is in, with its line feed. */
function lineEnd(content: Uint8Array, at: number): number {
  const feed = content.indexOf(lineFeed, at);
  return feed < 0 ? content.length : feed + 1;
}

/** End of a record without its line end. */
export function rowEnd(content: Uint8Array, start: number, end: number): number {
  const to = end > start && content[end - 1] === lineFeed ? end - 1 : end;
  return to > start && content[to - 1] === carriageReturn ? to - 1 : to;
}

/** Finds the headers of an agent's tables; null for other agents. */
export function headersOf(definition: AgentDefinition): TableHeaders | null {
  const lines = lineFormatOf(definition);
  return lines !== undefined && isTable(lines) ? new TableHeaders(lines, definition.fields) : null;
}

/** Adds the header in force to what is known of content. */
export function withHeader(reading: Reading | undefined, { text }: TableHeader): Reading {
  const { header: _, ...others } = reading ?? {};
  return text === undefined ? others : { ...others, header: text };
}

/**
 * What must be known to read content on behind its end, and the offset of its last record if that is not complete; else of
 * its end. Throws `SourceError`.
 */
export async function readingBehind(
  definition: AgentDefinition,
  source: FrameSource,
  head: Uint8Array,
): Promise<{ readonly reading: Reading | undefined; readonly offset: number }> {
  const headers = headersOf(definition);
  let reading: Reading | undefined;
  const ends = recordEndsOf(definition)(head);
  const { encoding } = ends;
  const framer = new LineFramer(source, 0, false, ends);
  for (let frame = await framer.next(); frame !== null && frame.kind !== 'tail'; frame = await framer.next())
    if (frame.kind === 'lines')
      reading = headers?.behind(frame.bytes, {
        start: 0,
        end: frame.end,
        reading,
        encoding,
        continuesLine: false,
      });
  return { reading, offset: framer.contentOffset };
}
