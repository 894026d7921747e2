import { roleOf, usualWidth, type ColumnRole } from '../query/column-width.js';
import type { Field } from '../query/field.js';
import type { Column } from '../query/view.js';

/** A column as it is rendered. */
export interface LaidColumn {
  readonly field: Field;
  readonly role: ColumnRole;
  /** The column's track of the CSS grid. */
  readonly track: string;
}

/** Lays out the columns. The text column takes the remaining width; without one, the last column does. */
export function layColumns(columns: readonly Column[], fields: readonly Field[]): readonly LaidColumn[] {
  const laid = columns.flatMap(({ name, width }) => {
    const field = fields.find((other) => other.name === name);
    return field === undefined ? [] : [{ field, width, role: roleOf(field, fields) }];
  });
  const wide = laid.findLast(({ role }) => role === 'text') ?? laid.at(-1);
  return laid.map((column) => {
    const { field, role, width } = column;
    const min = `${width ?? usualWidth(field, fields)}px`;
    return { field, role, track: column === wide && width === undefined ? `minmax(${min}, 1fr)` : min };
  });
}
