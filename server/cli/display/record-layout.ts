import { roleOf, type ColumnRole } from '../../viewer/query/column-width.js';
import { usualColumns, type Field } from '../../viewer/query/field.js';
import { oneLine, textWidth } from '../output/text-width.js';

/** Blanks between two columns. */
export const gap = 2;
/** Minimum width of a column of long texts and of others. A field is left out rather than cut further. */
const textWidthMin = 30;
const otherWidthMin = 12;
/** Minimum width of fields that the user chose: these are rather cut than left out. */
const chosenWidthMin = 6;
/**
 * Maximum width of a column where the output is not a terminal. A longer cell exceeds its column, so that one long value does not widen all
 * lines.
 */
const widthMaxElsewhere = 120;

/** A column of the output. */
export interface LaidColumn {
  /** Index of the field. */
  readonly field: number;
  readonly role: ColumnRole;
  readonly width: number;
}

/** The result of a layout. */
export interface Layout {
  readonly columns: readonly LaidColumn[];
  /** Indexes of the fields that have no column. */
  readonly hidden: readonly number[];
}

/** The fields to lay out, and the width that is available. */
export interface Wanted {
  readonly fields: readonly Field[];
  /** Whether the fields were chosen by the user, in this order. */
  readonly isChosen: boolean;
  /** Width of the terminal in columns; null where nothing is to be cut. */
  readonly screenWidth: number | null;
}

/** For each field, the widest cell so far, in columns of the screen; 0 where no record has had a value. */
export type NaturalWidths = number[];

/** Updates the widths with the cells of another record. */
export function widen(widths: NaturalWidths, cells: readonly string[], screenWidth: number | null): void {
  const most = screenWidth ?? widthMaxElsewhere;
  cells.forEach((cell, i) => {
    const width = widths[i]!;
    if (width < most)
      widths[i] = Math.max(width, Math.min(most, textWidth(oneLine(cell.slice(0, 2 * most)))));
  });
}

/**
 * Chooses columns and their widths. Where the fields do not all fit, the time, severity, source and text come first (`usualColumns`, as in
 * the viewer), then others that fit without cutting a cell.
 */
export function layOut(
  { fields, isChosen, screenWidth }: Wanted,
  titles: readonly string[],
  widths: NaturalWidths,
): Layout {
  const natural = fields.map((_, i) => Math.max(textWidth(titles[i]!), widths[i]!));
  const roles = fields.map((field) => roleOf(field, fields));
  const all = fields.map((_, i) => i);
  if (screenWidth === null || total(all, natural) <= screenWidth) return layout(all, natural, roles, []);
  const least = all.map((i) => Math.min(natural[i]!, leastWidth(fields[i]!, roles[i]!, isChosen)));
  const usual = isChosen ? all : usualColumns(fields).map((name) => fields.findIndex((f) => f.name === name));
  const taken: number[] = [];
  // Fields without a value so far come last.
  for (const i of [...usual].sort((a, b) => Number(widths[a] === 0) - Number(widths[b] === 0)))
    if (total([...taken, i], least) <= screenWidth || taken.length === 0) taken.push(i);
  for (const i of all)
    if (!taken.includes(i) && widths[i]! > 0 && total([...taken, i], natural) <= screenWidth) taken.push(i);
  taken.sort((a, b) => a - b);
  const fitted = shrink(taken, natural, least, screenWidth);
  return layout(
    taken,
    fitted,
    roles,
    all.filter((i) => !taken.includes(i)),
  );
}

function leastWidth({ type }: Field, role: ColumnRole, isChosen: boolean): number {
  if (type !== 'string' || role === 'severity') return Infinity;
  if (isChosen) return chosenWidthMin;
  return role === 'text' ? textWidthMin : otherWidthMin;
}

function layout(
  taken: readonly number[],
  widths: readonly number[],
  roles: readonly ColumnRole[],
  hidden: readonly number[],
): Layout {
  const columns = taken.map((field) => ({ field, role: roles[field]!, width: widths[field]! }));
  return { columns, hidden };
}

/** The width of these fields next to each other, with the gaps. */
function total(taken: readonly number[], widths: readonly number[]): number {
  return taken.reduce((sum, i) => sum + gap + widths[i]!, -gap);
}

/** Narrows the widest column repeatedly by 1 until all fit, but none below its minimum. */
function shrink(
  taken: readonly number[],
  natural: readonly number[],
  least: readonly number[],
  screenWidth: number,
): number[] {
  const widths = [...natural];
  for (let excess = total(taken, widths) - screenWidth; excess > 0; excess--) {
    let widest: number | undefined;
    for (const i of taken)
      if (widths[i]! > least[i]! && (widest === undefined || widths[i]! > widths[widest]!)) widest = i;
    if (widest === undefined) break;
    widths[widest]!--;
  }
  return widths;
}
