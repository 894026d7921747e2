import { severityFieldOf, textFieldOf, timeFieldOf, type Field } from './field.js';

/** The role of a column, which decides how its cells look. */
export type ColumnRole = 'time' | 'severity' | 'text' | 'number' | 'other';

const roleWidths: Readonly<Record<ColumnRole, number>> = {
  time: 196,
  severity: 68,
  text: 240,
  number: 96,
  other: 128,
};

/** The role of a field's column. */
export function roleOf(field: Field, fields: readonly Field[]): ColumnRole {
  if (field.name === timeFieldOf(fields)) return 'time';
  if (field.name === severityFieldOf(fields)) return 'severity';
  if (field.name === textFieldOf(fields)) return 'text';
  if (field.type === 'time') return 'time';
  return field.type === 'int' || field.type === 'float' ? 'number' : 'other';
}

/** The default width of a field's column in pixels. */
export function usualWidth(field: Field, fields: readonly Field[]): number {
  return roleWidths[roleOf(field, fields)];
}
