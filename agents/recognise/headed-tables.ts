import {
  type Candidate,
  type CandidateField,
  type SampleLine,
  FieldNames,
  typeOfField,
} from './field-names.js';
import { yamlText } from '../definition/yaml.js';
import { partOf } from './json-dialects.js';
import type { TimeReading } from './time-place.js';

/** A column of a table, and its values without their quotation marks. */
export interface NamedColumn {
  readonly name: string;
  readonly texts: readonly string[];
}

/** Where the time of a record is: in one column, or in two that follow each other. */
export interface TableTime {
  readonly at: number;
  readonly columns: number;
  readonly reading: TimeReading;
}

const commaDecimal = /^-?\d+(?:,\d+)?$/;

/** The candidate for a table with a header in each file, by its columns' names. */
export function headedCandidate(
  title: string,
  format: 'csv' | 'tsv' | 'w3c',
  separator: string,
  columns: readonly NamedColumn[],
  time: TableTime,
): Candidate {
  const names = new FieldNames(new Set(columns.map(({ name }) => name)));
  const hasComma =
    format === 'csv' && separator !== ',' && columns.some(({ texts }) => areCommaDecimals(texts));
  const fields = [timeField(names.take('time'), columns, time)];
  columns.forEach(({ name, texts }, i) => {
    if (i >= time.at && i < time.at + time.columns) return;
    const numbers = hasComma && areCommaDecimals(texts) ? texts.map((text) => text.replace(',', '.')) : texts;
    const known = names.nameFor(name);
    const type = typeOfField(known, numbers);
    // In a W3C log, a dash is null.
    const hasDash = format !== 'w3c' && type !== 'string' && texts.includes('-');
    const part = partOf(name);
    if (!hasDash) fields.push({ name: known, type, source: name });
    else if (hasComma) fields.push({ name: known, type: 'string', source: name });
    else fields.push({ name: known, type, template: `{{if ne ${part} "-"}}{{${part}}}{{end}}` });
  });
  const keys: (readonly [string, string])[] = [];
  if (format === 'csv' && separator !== ',') keys.push(['separator', `'${separator}'`]);
  if (hasComma) keys.push(['decimal', "','"]);
  return { title, format, fields, keys };
}

/** The key that names the columns of a table without a header, or with one that lacks a name. */
export function columnsKey(names: readonly string[]): readonly [string, string] {
  return ['columns', `[${names.map(yamlText).join(', ')}]`];
}

function areCommaDecimals(texts: readonly string[]): boolean {
  const said = texts.filter((text) => text !== '');
  return said.some((text) => text.includes(',')) && said.every((text) => commaDecimal.test(text));
}

function timeField(
  name: string,
  columns: readonly NamedColumn[],
  { at, columns: count, reading }: TableTime,
): CandidateField {
  const { template, ...rest } = reading;
  const source = columns[at]!.name;
  const of = { name, type: 'time' as const, ...rest };
  if (count === 2) return { ...of, template: `{{${partOf(source)}}} {{${partOf(columns[at + 1]!.name)}}}` };
  return template === undefined ? { ...of, source } : { ...of, template: `{{slice ${partOf(source)} 0 13}}` };
}

/** The documented columns of PostgreSQL's csvlog; releases before 14 lack the last two, those before 13 the last three. */
const csvlogColumns = (
  'log_time user_name database_name process_id connection_from session_id session_line_num command_tag session_start_time ' +
  'virtual_transaction_id transaction_id error_severity sql_state_code message detail hint internal_query internal_query_pos ' +
  'context query query_pos location application_name backend_type leader_pid query_id'
).split(' ');

const csvlogNames: Readonly<Record<string, string>> = {
  log_time: 'time',
  user_name: 'user',
  database_name: 'database',
  process_id: 'pid',
  error_severity: 'level',
};

const csvlogIntegers =
  /^(?:process_id|session_line_num|transaction_id|internal_query_pos|query_pos|leader_pid|query_id)$/;

const csvlogLine = /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3} \S+,"?[^,]*,"?[^,]*,\d*,/;

/** The candidate for PostgreSQL's csvlog, which has no header; undefined for other lines. */
export function csvlogCandidate(
  lines: readonly SampleLine[],
  valuesOf: (text: string) => readonly string[],
): Candidate | undefined {
  const begun = lines.filter(({ text }) => csvlogLine.test(text)).length;
  if (begun === 0 || begun < lines.length / 4) return undefined;
  const first = lines.findIndex(({ text }) => csvlogLine.test(text));
  let record = lines[first]!.text;
  // Quotation marks keep the lines of a value together.
  for (let i = first + 1; i < lines.length && (record.split('"').length - 1) % 2 === 1; i++)
    record += `\n${lines[i]!.text}`;
  const count = valuesOf(record).length;
  if (count < 23 || count > csvlogColumns.length) return undefined;
  const columns = csvlogColumns.slice(0, count);
  const fields = columns.map((source): CandidateField => {
    const name = csvlogNames[source] ?? source;
    if (source === 'log_time' || source === 'session_start_time')
      return { name, source, type: 'time', timestamp: { format: '2006-01-02 15:04:05 MST' } };
    return { name, source, type: csvlogIntegers.test(source) ? 'int' : 'string' };
  });
  return {
    title: "PostgreSQL's csvlog",
    format: 'csv',
    fields,
    keys: [columnsKey(columns)],
  };
}
