import { byteFlags } from './escaped-texts.js';
import { expectedAt, skipSpace } from './line-text.js';
import { Kind, type LineParser, type ParsedLine } from './parsed-line.js';
import { skipBlanks, trimBlanks } from './value-writer.js';

const quote = 0x22;
const tab = byteFlags('\t');

/** How the values of a row are written. */
export interface RowForm {
  /** Flags of the bytes that separate values, one each. */
  readonly separators: Uint8Array;
  /**
   * Whether values may be in quotation marks, which `""` stands for in them: `csv` as in RFC 4180; `strings` as in W3C logs,
   * where a mark may also be a part of a value; or `none`.
   */
  readonly quotes: 'csv' | 'strings' | 'none';
  /** The value that stands for none; empty for only the empty one. */
  readonly unset: string;
  /** The value that stands for the empty text; an empty string for none. */
  readonly empty: string;
}

/** Names and form of the rows that follow a header. */
export interface TableHeader {
  /** The lines of the header that matter; undefined where there are none. */
  readonly text: string | undefined;
  readonly names: readonly string[];
  readonly form: RowForm;
  /** Why no row becomes a record under this header; null where it can. */
  readonly problem: string | null;
}

/** Finds the values of a row. */
export class RowSplitter {
  /** Number of values found; only as many as asked for have a place. */
  count = 0;
  starts = new Int32Array(64);
  ends = new Int32Array(64);
  /** 0 for a value without quotation marks around it, 1 for one with, 2 for one with `""` in it. */
  quoted = new Uint8Array(64);

  /** Splits bytes[start, end) into `wanted` values or more. Returns null, or why it is no row. */
  split(bytes: Uint8Array, start: number, end: number, form: RowForm, wanted: number): string | null {
    if (this.starts.length < wanted) {
      this.starts = new Int32Array(wanted);
      this.ends = new Int32Array(wanted);
      this.quoted = new Uint8Array(wanted);
    }
    const { separators, quotes } = form;
    if (quotes === 'csv') return this.#marked(bytes, start, end, separators);
    this.#plain(bytes, start, end, separators);
    if (quotes === 'none') return null;
    const { count } = this;
    if (count > wanted && this.#marked(bytes, start, end, separators) !== null) this.count = 0;
    if (this.count !== wanted) this.#plain(bytes, start, end, tab);
    if (this.count !== wanted) this.count = count;
    else for (let i = 0; i < wanted; i++) this.#unquote(bytes, i);
    return null;
  }

  /** Splits at every separator. */
  #plain(bytes: Uint8Array, start: number, end: number, separators: Uint8Array): void {
    this.count = 0;
    let from = start;
    for (let at = start; at < end; at++) {
      if (separators[bytes[at]!] === 0) continue;
      this.#add(from, at, 0);
      from = at + 1;
    }
    this.#add(from, end, 0);
  }

  /** Splits at the separators that are not in quotation marks. */
  #marked(bytes: Uint8Array, start: number, end: number, separators: Uint8Array): string | null {
    this.count = 0;
    for (let at = start; ; at++) {
      const isMarked = at < end && bytes[at] === quote;
      const from = isMarked ? at + 1 : at;
      let marks = isMarked ? 1 : 0;
      if (isMarked) {
        for (at = from; at < end && (bytes[at] !== quote || bytes[at + 1] === quote); at++) {
          if (bytes[at] !== quote) continue;
          if (at + 1 >= end) break;
          marks = 2;
          at++;
        }
        if (at >= end)
          return `is not CSV: ${expectedAt(bytes, start, end, end, 'a quotation mark that ends the value')}`;
        this.#add(from, at, marks);
        at++;
        if (at < end && separators[bytes[at]!] === 0)
          return `is not CSV: ${expectedAt(bytes, start, end, at, 'a separator after the quotation mark')}`;
      } else {
        while (at < end && separators[bytes[at]!] === 0) at++;
        this.#add(from, at, marks);
      }
      if (at >= end) return null;
    }
  }

  #add(from: number, to: number, marks: number): void {
    const { count } = this;
    this.count++;
    if (count >= this.starts.length) return;
    this.starts[count] = from;
    this.ends[count] = to;
    this.quoted[count] = marks;
  }

  /** Takes the quotation marks off a value that has them at both ends. */
  #unquote(bytes: Uint8Array, i: number): void {
    const from = this.starts[i]!;
    const to = this.ends[i]! - 1;
    if (this.quoted[i] !== 0 || to <= from || bytes[from] !== quote || bytes[to] !== quote) return;
    this.starts[i] = from + 1;
    this.ends[i] = to;
    this.quoted[i] = 2;
  }
}

/** bytes[start, end) with `""` as one quotation mark. */
export function withoutDoubled(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const text = new Uint8Array(end - start);
  let length = 0;
  for (let at = start; at < end; at++) {
    text[length++] = bytes[at]!;
    if (bytes[at] === quote && at + 1 < end && bytes[at + 1] === quote) at++;
  }
  return text.subarray(0, length);
}

/** Parses rows of tables. The parts of a row are the columns of the header in force; of a name that is there twice, the last counts. */
export class TableRowParser implements LineParser {
  /** The header of the rows; null until there is one. */
  header: TableHeader | null = null;
  /** For each column, its field; -1 for none. */
  fields = new Int32Array(0);
  #unset: Uint8Array = new Uint8Array(0);
  #empty: Uint8Array = new Uint8Array(0);
  readonly #row = new RowSplitter();

  /** @param names wanted columns, in the order of the `ParsedLine` */
  constructor(
    private readonly names: readonly string[],
    private readonly trims: boolean,
  ) {}

  /** Sets the header of the following rows. */
  useHeader(header: TableHeader): void {
    const { names, form } = header;
    this.header = header;
    this.fields = Int32Array.from(names, (name, i) =>
      names.lastIndexOf(name) === i ? this.names.indexOf(name) : -1,
    );
    this.#unset = Buffer.from(form.unset);
    this.#empty = Buffer.from(form.empty);
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return start === end || (this.header?.form.quotes === 'strings' && skipSpace(bytes, start, end) === end);
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.names.length);
    line.hasReplaced = false;
    const { names, form, problem } = this.header!;
    if (problem !== null) return problem;
    const row = this.#row;
    const to = form.quotes === 'strings' ? trimBlanks(bytes, start, end) : end;
    const found = row.split(bytes, start, to, form, names.length);
    if (found !== null) return found;
    const { count } = row;
    // Spreadsheets leave out empty values at the end of a row, and a later version of a program adds columns there.
    const mayLack = form.quotes === 'csv' && count > 1 && count < names.length;
    if (count !== names.length && !mayLack)
      return `has ${count === 1 ? '1 value' : `${count} values`}, but the table has ${names.length} columns`;
    const { starts, ends, quoted } = row;
    for (let i = 0; i < count; i++) {
      const field = this.fields[i]!;
      if (field < 0) continue;
      const isTrimmed = this.trims && quoted[i] === 0;
      const end = isTrimmed ? trimBlanks(bytes, starts[i]!, ends[i]!) : ends[i]!;
      const from = isTrimmed ? skipBlanks(bytes, starts[i]!, end) : starts[i]!;
      if (quoted[i] === 2) {
        const text = withoutDoubled(bytes, from, end);
        line.set(field, Kind.text, text, 0, text.length);
      } else if (quoted[i] === 1) line.set(field, Kind.text, bytes, from, end);
      else if (from === end || isText(bytes, from, end, this.#unset)) continue;
      else if (isText(bytes, from, end, this.#empty)) line.set(field, Kind.text, bytes, from, from);
      else line.set(field, Kind.text, bytes, from, end);
    }
    return null;
  }
}

function isText(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (text.length !== end - start || text.length === 0) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}
