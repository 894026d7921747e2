import {
  answeredValue,
  BatchBuilder,
  columnValue,
  type FieldType,
  LogstrataError,
  makeSchema,
} from '../../engine/index.js';
import {
  containerParts,
  isOfContainers,
  isTable,
  lineFormatOf,
  type AgentDefinition,
  type LineFormat,
} from '../definition/definition.js';
import { sourcesOf } from './field-writers.js';
import { LinePattern } from '../definition/line-pattern.js';
import { ParsedLine } from './parsed-line.js';
import { pathCaptures } from './path-captures.js';
import { jsonKeysOf } from './json-decoder.js';
import { logfmtKeys } from './line-decoder.js';
import { firstLogRecord } from './otlp-lines.js';
import { createParser, createRecordDecoder, textFormatOf } from './record-decoder.js';
import { compileTemplate } from '../definition/template.js';
import { openBrace } from './json-scanner.js';
import { JsonValues } from './json-values.js';
import { joinLines, MultilineRecords, type TextRange } from './line-framing.js';
import { headersOf } from './table-headers.js';
import { TableRowParser } from './table-rows.js';

/** A field of the described record. */
export interface DescribedField {
  readonly name: string;
  readonly type: FieldType;
  /** As stored; `int` and `time` are bigint. */
  readonly value: null | bigint | number | string | boolean;
  /** The text that the value was read from: the parsed field, or the template's text; null where there is none. */
  readonly text: string | null;
  /** Whether the text could not be read as the field's type, so that the value is null. */
  readonly unreadable: boolean;
}

/** A parsed field: a capture, a logfmt key, a JSON key or path, or a capture of the file's name. Null text where it did not take part. */
export interface ParsedField {
  readonly name: string;
  readonly text: string | null;
}

/** The result of decoding one line, or the lines of one record. */
export type LineDescription = {
  /** Whether the first line does not begin a record: in a log it would continue the record before it. */
  readonly continues: boolean;
} & (
  | {
      readonly outcome: 'record';
      /** Number of records in the text. The first is described. */
      readonly records: number;
      readonly fields: readonly DescribedField[];
      readonly parsed: readonly ParsedField[];
    }
  | { readonly outcome: 'rejected'; readonly reason: string }
  | { readonly outcome: 'blank' }
);

/** Options of describing a line. */
export interface DescribeOptions {
  readonly timezone: string;
  readonly now: () => number;
  /** The file that the line is assumed to come from; its path gives parsed fields. */
  readonly fileName?: string | undefined;
}

/**
 * Decodes `line` into a record of an agent, with the same decoder that loading uses. With `multiline` it may have the lines
 * of one record, and for a table the header before a row. Throws `invalid` for text of several records, and for an agent that
 * reads no lines.
 */
export function describeLine(
  definition: AgentDefinition,
  line: string,
  options: DescribeOptions,
): LineDescription {
  const lines = lineFormatOf(definition);
  if (lines === undefined) throw new LogstrataError('invalid', `agent ${definition.name} reads no lines`);
  const bytes = Buffer.from(line.replace(/\r?\n?$/, ''));
  const continues = requireOneRecord(lines, bytes);
  const captures =
    options.fileName === undefined ? new Map<string, string>() : pathCaptures(definition, options.fileName);
  const builder = new BatchBuilder(definition.schema);
  const decoder = createRecordDecoder(definition, {
    captures,
    timezone: options.timezone,
    written: { byMs: options.now() },
  });
  let rejection: string | null = null;
  decoder.decode(bytes, 0, bytes.length, builder, (reason) => {
    rejection = reason;
  });
  if (rejection !== null) return { outcome: 'rejected', reason: rejection, continues };
  if (isTable(lines) && builder.rows > 1)
    throw new LogstrataError('invalid', 'the text has more than one row; give one, behind its header');
  if (builder.rows === 0) return { outcome: 'blank', continues };
  const records = builder.rows;
  const batch = builder.finish();
  const format = lines.format === 'otlp' ? ({ format: 'json' } as const) : lines;
  const parsed = isOfContainers(lines)
    ? partsOfContainer(definition, lines, bytes, captures)
    : parsedFields(definition, format, firstRecord(lines, bytes), captures);
  const texts = new Map(parsed.map(({ name, text }) => [name, text]));
  const fields = definition.fields.map(({ name, type, source, template }, i): DescribedField => {
    const stored = columnValue(batch.columns[i]!, 0);
    const value = stored === null ? null : answeredValue(type, stored);
    const text = template === undefined ? (texts.get(source) ?? null) : renderText(template, texts);
    return { name, type, value, text, unreadable: value === null && text !== null };
  });
  return { outcome: 'record', records, fields, parsed, continues };
}

/** The text that a template gives for parsed texts; null for an empty text, which gives no value. */
function renderText(template: string, texts: ReadonlyMap<string, string | null>): string | null {
  const text = compileTemplate(template).render((name) => texts.get(name) ?? undefined);
  return text === '' ? null : text;
}

/** The text of the first record of a text that has one. */
function firstRecord(lines: LineFormat, bytes: Uint8Array): TextRange {
  if (lines.values !== undefined) {
    const values = new JsonValues(lines.values.records);
    for (let at = 0; at >= 0 && at < bytes.length;) {
      at = values.next(bytes, at, bytes.length);
      const { valueStart: start, valueEnd: end, problem } = values;
      if (start >= 0 && problem === null && bytes[start] === openBrace) return { bytes, start, end };
    }
  }
  if (lines.format === 'otlp') {
    const record = firstLogRecord(bytes);
    return { bytes: record, start: 0, end: record.length };
  }
  const text = joinLines(bytes, 0, bytes.length);
  if (isTable(lines)) return text;
  const parser = createParser(lines, []);
  const isOne = parser.parse(text.bytes, text.start, text.end, true, new ParsedLine(0)) === null;
  const several = isOne ? null : parser.several?.(text.bytes, text.start, text.end);
  return typeof several === 'object' && several !== null ? (several[0] ?? text) : text;
}

/** Throws `invalid` for text of several records. Returns whether its first line does not begin one. */
function requireOneRecord(lines: LineFormat, bytes: Uint8Array): boolean {
  const { multiline, values } = lines;
  if (values !== undefined || isOfContainers(lines) || isTable(lines)) return false;
  if (multiline === undefined) {
    if (!bytes.includes(0x0a)) return false;
    throw new LogstrataError(
      'invalid',
      'the text has more than one line; give only one. Records of several lines need multiline in the agent file',
    );
  }
  const records = new MultilineRecords(multiline);
  const end = records.recordEnd(bytes, 0, bytes.length, true);
  if (end < bytes.length) {
    const why = `line ${records.lines + 1} begins another record (multiline.start, or a limit of multiline)`;
    throw new LogstrataError('invalid', `the text has more than one record: ${why}. Give only one`);
  }
  const feed = bytes.indexOf(0x0a);
  return !records.isStart(bytes, 0, feed < 0 ? bytes.length : feed, true);
}

/** The parts around the text of the first record, and those of the text itself, if it is in its format. */
function partsOfContainer(
  definition: AgentDefinition,
  lines: LineFormat,
  bytes: Uint8Array,
  captures: ReadonlyMap<string, string>,
): ParsedField[] {
  const wanted = definition.fields.flatMap(sourcesOf).filter((name) => name.startsWith('container.'));
  const names = [...new Set([...containerParts, ...wanted])];
  const fields = names.map((name) => ({ name, type: 'string', source: name }) as const);
  const file = { directory: '', namePattern: '', ...lines, payload: 'plain', regex: '' } as const;
  const schema = makeSchema(fields.map(({ type }, i) => ({ name: `part${i}`, type })));
  const builder = new BatchBuilder(schema);
  const decoder = createRecordDecoder(
    { ...definition, fields, schema, file },
    { captures: new Map(), timezone: 'UTC', written: { byMs: 0 } },
  );
  decoder.decode(bytes, 0, bytes.length, builder, () => {});
  const { columns } = builder.finish();
  const given = names.map((name, i) => ({ name, text: columnValue(columns[i]!, 0) as string | null }));
  const text = Buffer.from(given[0]!.text ?? '');
  const range = { bytes: text, start: 0, end: text.length };
  const own = parsedFields(definition, textFormatOf(lines), range, captures);
  return [...given, ...own.filter(({ name }) => !names.includes(name))];
}

function parsedFields(
  definition: AgentDefinition,
  lines: LineFormat,
  text: TextRange,
  captures: ReadonlyMap<string, string>,
): ParsedField[] {
  const { fields } = definition;
  const row = headersOf(definition)?.lastRows(text);
  const { bytes, start, end } = row ?? text;
  const ofLine =
    row === undefined ? partsOf(lines, bytes.subarray(start, end)) : [...new Set(row.header.names)];
  const sources = new Set(fields.flatMap(sourcesOf));
  ofLine.forEach((name) => sources.delete(name));
  const names = [...ofLine, ...sources];
  const line = new ParsedLine(names.length);
  const parser = createParser(lines, names);
  if (parser instanceof TableRowParser && row !== undefined) parser.useHeader(row.header);
  parser.parse(bytes, start, end, true, line);
  const parts = names.map((name, i): ParsedField => ({ name, text: line.text(i) ?? null }));
  // Among the fields' sources that are not keys of the line itself, those with a text are paths.
  const found = parts.filter(({ text }, i) => i < ofLine.length || text !== null);
  const ofName = [...captures].map(([name, text]): ParsedField => ({ name, text }));
  return [...found.filter(({ name }) => !captures.has(name)), ...ofName];
}

/** The names of the parts of a line that the decoder accepts; of a row, its header has them. */
function partsOf(lines: LineFormat, bytes: Uint8Array): readonly string[] {
  switch (lines.format) {
    case 'plain':
      return new LinePattern(lines.regex ?? '').groupNames;
    case 'json':
    case 'otlp':
      return jsonKeysOf(bytes);
    default:
      return logfmtKeys(bytes);
  }
}
