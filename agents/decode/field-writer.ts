import type { BatchBuilder } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import { compileTemplate } from '../templates/template.js';
import { StringTemplateWriter, TemplateWriter } from './template-writer.js';
import { lacksYear } from '../times/timestamp.js';
import { TimestampWriter } from './timestamp-writer.js';
import { createValueWriter, type FieldWriter, type WriterOptions } from './value-writer.js';

/**
 * Creates the writer of a field. `placeOf` returns the place of a parsed field in the line, or -1 where nothing provides it.
 * Throws `invalid` for an invalid template or timestamp format.
 */
export function createFieldWriter(
  field: FieldDefinition,
  placeOf: (name: string) => number,
  options: WriterOptions,
): FieldWriter {
  const valueWriter = (time: number, year: number): FieldWriter =>
    field.timestamp === undefined
      ? createValueWriter(field, time, options)
      : new TimestampWriter(field.timestamp, { time, year }, options);
  if (field.template === undefined) return valueWriter(placeOf(field.source), placeOf(yearSource));
  const template = compileTemplate(field.template);
  const { counters } = options;
  if (field.type === 'string') return new StringTemplateWriter(field.name, template, placeOf, counters);
  return new TemplateWriter(field.name, template, placeOf, valueWriter(0, -1), counters);
}

/** Name of the parsed field with the year for times that have a date without one. A template includes the year in its text. */
export const yearSource = 'year';

/** Names of the parsed fields that a field is read from. */
export function sourcesOf(field: FieldDefinition): readonly string[] {
  const { template, timestamp, source } = field;
  if (template !== undefined) return compileTemplate(template).fields;
  return timestamp !== undefined && lacksYear(timestamp) ? [source, yearSource] : [source];
}

/** Binds all writers to the columns of a builder. */
export function bindWriters(writers: readonly FieldWriter[], builder: BatchBuilder): void {
  writers.forEach((writer, i) => writer.bind(builder.column(i)));
}
