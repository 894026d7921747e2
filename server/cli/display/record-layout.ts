import { roleOf, type ColumnRole } from '../../viewer/query/column-width.js';
import { usualColumns, type Field } from '../../viewer/query/field.js';
import { textWidth } from '../output/text-width.js';
import { oneLine } from './record-cells.js';

/** Blanks between two columns. */
export const gap = 2;
/** Texts are not cut to fewer columns than this, where those of the records are longer: others are left out before. */
const textWidthMin = 30;
const otherWidthMin = 12;
/** Of fields that were asked for, rather much is cut than one left out. */
const chosenWidthMin = 6;
/** Where there is no terminal, longer cells stand out of their column, so that one long value does not make every line as long. */
const widthMaxElsewhere = 120;

/** A column of the screen. */
export interface LaidColumn {
  /** Its place among the fields. */
  readonly field: number;
  readonly role: ColumnRole;
  readonly width: number;
}

export interface Layout {
  readonly columns: readonly LaidColumn[];
  /** The fields that have no room, by their places. */
  readonly hidden: readonly number[];
}

/** What is to be laid out. */
export interface Wanted {
  readonly fields: readonly Field[];
  /** The fields were asked for by name, in this order. */
  readonly isChosen: boolean;
  /** Columns of the terminal; null where nothing is to be cut. */
  readonly screenWidth: number | null;
}

/** Columns that cells of the fields take at most, as far as records have been seen; 0 for a field without a value so far. */
export type NaturalWidths = number[];

/** Widens what was seen before by what these cells take. */
export function widen(widths: NaturalWidths, cells: readonly string[], screenWidth: number | null): void {
  const most = screenWidth ?? widthMaxElsewhere;
  cells.forEach((cell, i) => {
    const width = widths[i]!;
    if (width < most)
      widths[i] = Math.max(width, Math.min(most, textWidth(oneLine(cell.slice(0, 2 * most)))));
  });
}

/** Lays out all fields where they fit; else when, how bad, from where and what, as the viewer does, and others as far as nothing is cut for them. */
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
  // A field that no record has so far gives way to all others.
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

/** Columns that these fields take side by side. */
function total(taken: readonly number[], widths: readonly number[]): number {
  return taken.reduce((sum, i) => sum + gap + widths[i]!, -gap);
}

/** Takes columns from the widest, one by one, until all fit. */
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
