import type { BatchBuilder } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import type { Reading } from '../sources/source-position.js';
import { OuterDecoder, type LinesOrigin, type RecordTextDecoder, type RejectLine } from './line-decoder.js';
import { rowEnd, withHeader, type TableHeaders } from './table-headers.js';
import type { TableHeader } from './table-rows.js';

const lineFeed = 0x0a;
const quote = 0x22;
const encoder = new TextEncoder();

/** Decodes the rows of a table under the header that is set. */
export interface RowDecoder {
  useHeader(header: TableHeader): void;
  /** Counts the NULs before a line's text. Returns where the text begins. */
  skipNuls(bytes: Uint8Array, start: number, end: number): number;
  /** Notes that a header lacks the column of a field. */
  addLacking(field: number, header: string): void;
}

/** Decodes tables: rows, each under the header that is in force there. Rows of one line are passed in runs to the decoder of rows. */
export class TableDecoder extends OuterDecoder<RecordTextDecoder> {
  #header: TableHeader | null = null;
  /** Kept before a rejected row, so that it can be decoded again; undefined where the agent's file has the columns. */
  #before: Uint8Array | undefined;
  #origin: LinesOrigin;

  constructor(
    lines: RecordTextDecoder,
    private readonly rows: RowDecoder,
    private readonly headers: TableHeaders,
    private readonly fields: readonly FieldDefinition[],
    origin: LinesOrigin,
  ) {
    super(lines);
    this.#origin = origin;
    this.#useHeader(headers.of(origin.reading));
  }

  override get reading(): Reading {
    return withHeader(this.#origin.reading, this.#header!);
  }

  override use(origin: LinesOrigin): void {
    this.#origin = origin;
    super.use(origin);
    this.#useHeader(this.headers.of(origin.reading));
  }

  #useHeader(header: TableHeader): void {
    const { text, names, problem } = header;
    const isSame = header === this.#header || (text !== undefined && text === this.#header?.text);
    this.#header = header;
    if (isSame) return;
    this.rows.useHeader(header);
    this.#before = text === undefined ? undefined : encoder.encode(`${text}\n`);
    if (text === undefined || problem !== null) return;
    this.fields.forEach(({ template, source }, i) => {
      const isThere = template !== undefined || names.includes(source) || this.#origin.captures.has(source);
      if (!isThere && source !== this.headers.lines.otherwise) this.rows.addLacking(i, text);
    });
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const content = bytes.subarray(0, end);
    const rejectRow: RejectLine = (reason, from, to, text) => reject(reason, from, to, text, this.#before);
    let found = this.headers.next(this.#header!, content, start);
    let at = start;
    this.lines.beginTurn();
    while (at < end && !builder.full && !this.lines.turnIsOver) {
      if (found?.start !== at) {
        const runEnd = found?.start ?? end;
        at = this.#decodeRows(content, at, runEnd, builder, rejectRow);
        if (at < runEnd) break;
        continue;
      }
      const { header } = found;
      const textAt = this.rows.skipNuls(content, at, found.end);
      const textEnd = rowEnd(content, textAt, found.end);
      this.#useHeader(header);
      // It may be a row whose header is missing, as in a file that was truncated.
      if (header.problem !== null && this.headers.lines.format !== 'w3c')
        reject(header.problem, at, textEnd, this.lines.kept({ bytes: content, start: textAt, end: textEnd }));
      at = found.end;
      found = this.headers.next(header, content, at);
    }
    return at;
  }

  #decodeRows(
    content: Uint8Array,
    start: number,
    end: number,
    builder: BatchBuilder,
    reject: RejectLine,
  ): number {
    const { lines: rows, headers } = this;
    if (headers.records === undefined || !content.subarray(start, end).includes(quote))
      return rows.decode(content, start, end, builder, reject);
    let at = start;
    while (at < end && !builder.full && !rows.turnIsOver) {
      let runEnd = at;
      let next = at;
      while (next < end && runEnd === next) {
        next = headers.records.recordEnd(content, runEnd);
        if (isLine(content, runEnd, next)) runEnd = next;
      }
      if (runEnd > at) {
        at = rows.decode(content, at, runEnd, builder, reject);
        if (at < runEnd) break;
      } else {
        const [from, to] = [at, rowEnd(content, at, next)];
        at = next;
        rows.decodeText({ bytes: content, start: from, end: to }, builder, (reason, text) =>
          reject(reason, from, to, text),
        );
      }
    }
    return at;
  }
}

/** Whether a record has one line. */
function isLine(content: Uint8Array, start: number, end: number): boolean {
  const feed = content.indexOf(lineFeed, start);
  return feed < 0 || feed >= end - 1;
}
