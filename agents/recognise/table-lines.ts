import type { Candidate, SampleLine } from './field-names.js';
import {
  columnsKey,
  csvlogCandidate,
  headedCandidate,
  type NamedColumn,
  type TableTime,
} from './headed-tables.js';
import { isDayless, readingOf } from './time-place.js';

/** Limit on the columns of a table; one with more is not read as lines. */
const columnsMax = 100;

/** Minimum share of the rows that have as many columns as the header. */
const shareMin = 0.9;

/** Names of columns in a header. */
const nameShape = /^[A-Za-z_@#][\w .()/:@#%[\]-]{0,80}$/;

/** Names of columns that hold the time of a record. */
const timeNames = /time|date|stamp|created|datum|zeit|^ts$|^start$/i;

/** Rows of values, with names from a header. */
interface Table {
  readonly title: string;
  readonly delimiter: string;
  readonly names: readonly string[];
  readonly rows: readonly SampleLine[];
  /** Whether values may be quoted; in quotes, a doubled quotation mark is one. */
  readonly isQuoted: boolean;
  /** Whether a line says that it is the header. */
  readonly isDeclared: boolean;
}

/**
 * The candidate for lines of columns with a header: W3C extended logs, such as those of IIS and CloudFront, and Zeek's; and
 * CSV and the like with a first line of names. Undefined where there is no header, or the rows do not match it.
 */
export function tableCandidate(lines: readonly SampleLine[], writtenMs: number): Candidate | undefined {
  const csvlog = csvlogCandidate(lines, (text) => valuesOf(text, { delimiter: ',', isQuoted: true }));
  if (csvlog !== undefined) return csvlog;
  const table = declaredTable(lines) ?? namedTable(lines);
  if (table === undefined || table.rows.length === 0) return undefined;
  const { delimiter, names, title, isQuoted, isDeclared } = table;
  const rows = isQuoted ? quotedRows(table.rows) : table.rows.map(({ text }) => text);
  const values = rows.map((row) => valuesOf(row, table));
  const width = widthOf(values, names.length, isQuoted);
  if (width === undefined) return undefined;
  const all = width > names.length ? [...names, 'message'] : names;
  const fitting = values.filter(({ length }) => length === width);
  const columns = all.map((name, i) => ({ name, texts: fitting.map((row) => withoutQuotes(row[i]!)) }));
  const time = timeOf(columns, writtenMs);
  if (time === undefined) return undefined;
  const format = isDeclared ? 'w3c' : delimiter === '\t' ? 'tsv' : 'csv';
  const found = headedCandidate(title, format, delimiter, columns, time);
  return width === names.length ? found : { ...found, keys: [...(found.keys ?? []), columnsKey(all)] };
}

/** Rows of a table whose quotation marks keep the lines of a value together. */
function quotedRows(lines: readonly SampleLine[]): string[] {
  const rows: string[] = [];
  let isOpen = false;
  for (const { text } of lines) {
    if (isOpen) rows[rows.length - 1] += `\n${text}`;
    else rows.push(text);
    if (text.split('"').length % 2 === 0) isOpen = !isOpen;
  }
  return rows;
}

function withoutQuotes(text: string): string {
  return /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll('""', '"') : text;
}

/** The usual number of values per row: as many as names; in CSV also one more, because Windows omits the name of the last column. */
function widthOf(rows: readonly (readonly string[])[], names: number, mayOmit: boolean): number | undefined {
  return (mayOmit ? [names, names + 1] : [names]).find(
    (width) => rows.filter(({ length }) => length === width).length >= rows.length * shareMin,
  );
}

/** A table with a marked header: `#Fields: date time …`, or Zeek's `#fields` with tabs. */
function declaredTable(lines: readonly SampleLine[]): Table | undefined {
  const header = lines.find(({ text }) => /^#fields[:\t]/i.test(text))?.text;
  if (header === undefined) return undefined;
  const names = header.replace(/^#fields:?\s+/i, '').split(/\s+/);
  const rows = lines.filter(({ text }) => !text.startsWith('#'));
  if (names.length > columnsMax) return undefined;
  const tabs = rows.filter(({ text }) => text.includes('\t')).length;
  const delimiter = tabs > rows.length / 2 ? '\t' : ' ';
  const title = header.startsWith('#fields\t') ? "Zeek's log" : 'W3C extended log';
  return { title, delimiter, names, rows, isQuoted: false, isDeclared: true };
}

/** A table whose first line consists only of names. */
function namedTable(lines: readonly SampleLine[]): Table | undefined {
  const [first, ...rows] = lines;
  if (first === undefined || rows.length === 0) return undefined;
  for (const delimiter of [',', '\t', ';', ' ']) {
    const isQuoted = delimiter !== ' ' && delimiter !== '\t';
    const table = { title: 'table with a header', delimiter, rows, isQuoted, isDeclared: false };
    const names = valuesOf(first.text, table).map((name) => name.replace(/^"(.*)"$/, '$1'));
    // A line with blanks as separators may be a sentence, so more names are required.
    const namesMin = delimiter === ' ' ? 6 : 3;
    if (names.length < namesMin || names.length > columnsMax) continue;
    if (names.every((name) => nameShape.test(name))) return { ...table, names };
  }
  return undefined;
}

/** The values of a line; quoted values include their quotation marks. */
function valuesOf(text: string, { delimiter, isQuoted }: Pick<Table, 'delimiter' | 'isQuoted'>): string[] {
  if (!isQuoted) return text.split(delimiter);
  const values: string[] = [];
  let start = 0;
  let inQuotes = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') inQuotes = !inQuotes;
    else if (text[at] === delimiter && !inQuotes) {
      values.push(text.slice(start, at));
      start = at + 1;
    }
  }
  values.push(text.slice(start));
  return values;
}

/** The first column that is readable as times with a day, or two columns that are so together. */
function timeOf(columns: readonly NamedColumn[], writtenMs: number): TableTime | undefined {
  for (const [at, { name, texts }] of columns.entries()) {
    if (!timeNames.test(name)) continue;
    const reading = readingOf(texts, writtenMs);
    if (reading !== undefined && !isDayless(reading)) return { at, columns: 1, reading };
    const next = columns[at + 1];
    if (next === undefined) continue;
    const joined = readingOf(
      texts.map((text, row) => `${text} ${next.texts[row]!}`),
      writtenMs,
    );
    if (joined !== undefined) return { at, columns: 2, reading: joined };
  }
  return undefined;
}
