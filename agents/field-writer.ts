import type { BatchBuilder } from '../engine/columns/batch-builder.js';
import type { FieldDefinition } from './definition.js';
import { compileTemplate } from './template.js';
import { StringTemplateWriter, TemplateWriter } from './template-writer.js';
import { createValueWriter, type FieldWriter, type WriterOptions } from './value-writer.js';

/**
 * The writer of a field; `placeOf` gives the place of a parsed field in the line, -1 where nothing gives such a field.
 * Throws `invalid` for a bad template or timestamp format.
 */
export function createFieldWriter(
  field: FieldDefinition,
  placeOf: (name: string) => number,
  options: WriterOptions,
): FieldWriter {
  if (field.template === undefined) return createValueWriter(field, placeOf(field.source), options);
  const template = compileTemplate(field.template);
  const { counters } = options;
  if (field.type === 'string') return new StringTemplateWriter(field.name, template, placeOf, counters);
  return new TemplateWriter(field.name, template, placeOf, createValueWriter(field, 0, options), counters);
}

/** The parsed fields that a field reads. */
export function sourcesOf(field: FieldDefinition): readonly string[] {
  return field.template === undefined ? [field.source] : compileTemplate(field.template).fields;
}

/** Binds all writers to the columns of a builder. */
export function bindWriters(writers: readonly FieldWriter[], builder: BatchBuilder, nowMs: number): void {
  writers.forEach((writer, i) => writer.bind(builder.column(i), nowMs));
}
