import {
  type Candidate,
  type CandidateField,
  type SampleLine,
  FieldNames,
  typeOfTexts,
} from './field-names.js';
import { csvlogCandidate, headedCandidate } from './headed-tables.js';
import { isDayless, readingOf, type TimeReading } from './time-place.js';

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

/** A column in the pattern: its expression, and its field. */
interface Column {
  readonly regex: string;
  readonly field: CandidateField;
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
  const { delimiter, names, rows, title } = table;
  const values = rows.map(({ text }) => valuesOf(text, table));
  const width = widthOf(values, names.length);
  if (width === undefined) return undefined;
  const fitting = values.filter(({ length }) => length === width);
  const texts = Array.from({ length: width }, (_name, i) => fitting.map((row) => row[i]!));
  const format = formatOf(table);
  if (width === names.length && format !== undefined) {
    const named = names.map((name, i) => ({ name, texts: texts[i]!.map(withoutQuotes) }));
    const time = timeOf(
      { delimiter: ' ' },
      names,
      named.map((column) => column.texts),
      writtenMs,
    );
    return time === undefined ? undefined : headedCandidate(title, format, delimiter, named, time);
  }
  // Windows omits the name of the last column.
  const all = width > names.length ? [...names, 'message'] : names;
  const columns = columnsOf(table, all, texts, writtenMs);
  if (columns === undefined) return undefined;
  const regex = `^${columns.map((column) => column.regex).join(escapedDelimiter(delimiter))}\\s*$`;
  const headerLines = lines.length - rows.length;
  return { title, format: 'plain', regex, fields: orderedFields(columns), headerLines };
}

/** The format that reads the names in each file; undefined where only a pattern reads such rows. */
function formatOf({ delimiter, isDeclared }: Table): 'csv' | 'tsv' | 'w3c' | undefined {
  if (isDeclared) return 'w3c';
  return delimiter === '\t' ? 'tsv' : delimiter === ' ' ? undefined : 'csv';
}

function withoutQuotes(text: string): string {
  return /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll('""', '"') : text;
}

/** The usual number of values per row: as many as names, or one more; else undefined. */
function widthOf(rows: readonly (readonly string[])[], names: number): number | undefined {
  const counts = [names, names + 1].map((width) => rows.filter(({ length }) => length === width).length);
  const at = counts.findIndex((count) => count >= rows.length * shareMin);
  return at < 0 ? undefined : names + at;
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

/** The columns, one of which is the time of a record, possibly made of a day and a time of day. Undefined where there is no time. */
function columnsOf(
  table: Table,
  names: readonly string[],
  texts: readonly (readonly string[])[],
  writtenMs: number,
): Column[] | undefined {
  const fieldNames = new FieldNames(new Set(names));
  const time = timeOf(table, names, texts, writtenMs);
  if (time === undefined) return undefined;
  const columns: Column[] = [];
  fieldNames.take('time');
  for (let i = 0; i < texts.length; i++) {
    if (i !== time.at) {
      columns.push(valueColumn(table, fieldNames.nameFor(names[i]!), texts[i]!));
      continue;
    }
    // Require a digit in the time. The header's names have none there, so the header is not a record.
    const value = `${plainValue(table, '*')}\\d${plainValue(table, '*')}`;
    const spanned = Array.from({ length: time.columns }, () => value).join(escapedDelimiter(table.delimiter));
    const mark = texts[i]!.some((text) => text.startsWith('"')) ? '"?' : '';
    columns.push({ regex: `${mark}(?P<time>${spanned})${mark}`, field: timeFieldOfReading(time.reading) });
    i += time.columns - 1;
  }
  return columns;
}

function timeFieldOfReading(reading: TimeReading): CandidateField {
  return { name: 'time', type: 'time', ...reading };
}

/** The first column that is readable as times with a day, or two columns that are so together. */
function timeOf(
  { delimiter }: Pick<Table, 'delimiter'>,
  names: readonly string[],
  texts: readonly (readonly string[])[],
  writtenMs: number,
): { readonly at: number; readonly columns: number; readonly reading: TimeReading } | undefined {
  for (let at = 0; at < texts.length; at++) {
    if (!timeNames.test(names[at] ?? '')) continue;
    const column = texts[at]!.map((text) => text.replace(/^"(.*)"$/, '$1'));
    const reading = readingOf(column, writtenMs);
    if (reading !== undefined && !isDayless(reading)) return { at, columns: 1, reading };
    const next = texts[at + 1];
    if (next === undefined) continue;
    const joined = readingOf(
      column.map((text, row) => `${text}${delimiter}${next[row]!}`),
      writtenMs,
    );
    if (joined !== undefined) return { at, columns: 2, reading: joined };
  }
  return undefined;
}

function valueColumn(table: Table, name: string, texts: readonly string[]): Column {
  const plain = plainValue(table, table.delimiter === ' ' ? '+' : '*');
  const type = typeOfTexts(texts);
  if (type === 'string') {
    if (!table.isQuoted) return { regex: `(?P<${name}>${plain})`, field: { name, type } };
    // A value that needs quotation marks in one line may lack them in another.
    const regex = `(?:"(?P<${name}__q>(?:[^"]|"")*)"|(?P<${name}>${plain}))`;
    return { regex, field: { name, type, template: `{{or .${name}__q .${name}}}` } };
  }
  const hasDash = texts.includes('-');
  const isEmptied = texts.includes('');
  const part = `(?P<${name}>${isEmptied ? plainValue(table, '+') : plain})`;
  if (!hasDash && !isEmptied) return { regex: part, field: { name, type } };
  return { regex: `(?:${hasDash ? '-|' : ''}${part})${isEmptied ? '?' : ''}`, field: { name, type } };
}

function plainValue({ delimiter, isQuoted }: Table, count: '*' | '+'): string {
  if (delimiter === ' ') return `\\S${count}`;
  const other = delimiter === '\t' ? '\\t' : delimiter;
  return `[^${other}${isQuoted ? '"' : ''}]${count}`;
}

function escapedDelimiter(delimiter: string): string {
  return delimiter === '\t' ? '\\t' : delimiter;
}

/** The fields, the time first. */
function orderedFields(columns: readonly Column[]): CandidateField[] {
  const fields = columns.map(({ field }) => field);
  const at = fields.findIndex(({ name }) => name === 'time');
  return [fields[at]!, ...fields.slice(0, at), ...fields.slice(at + 1)];
}
