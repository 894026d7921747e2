import { severityFieldOf, textFieldOf, timeFieldOf, type Field } from './field.js';

/** What a column is for: it says how the cells look. */
export type ColumnRole = 'time' | 'severity' | 'text' | 'number' | 'other';

const roleWidths: Readonly<Record<ColumnRole, number>> = {
  time: 196,
  severity: 68,
  text: 240,
  number: 96,
  other: 128,
};

/** What a column of a field is for. */
export function roleOf(field: Field, fields: readonly Field[]): ColumnRole {
  if (field.name === timeFieldOf(fields)) return 'time';
  if (field.name === severityFieldOf(fields)) return 'severity';
  if (field.name === textFieldOf(fields)) return 'text';
  if (field.type === 'time') return 'time';
  return field.type === 'int' || field.type === 'float' ? 'number' : 'other';
}

/** The width that a column has while nobody has changed it, in pixels. */
export function usualWidth(field: Field, fields: readonly Field[]): number {
  return roleWidths[roleOf(field, fields)];
}
