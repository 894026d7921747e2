import { wallClock } from '../../counts/time-step.js';
import { severityOf, type Severity } from '../../viewer/state/severity.js';
import { valueText, type Value } from '../../viewer/records/record.js';
import type { ColumnRole } from '../../viewer/query/column-width.js';
import type { FieldType } from '../../viewer/query/field.js';
import { cutEndToWidth, cutToWidth, oneLine, printable } from '../output/text-width.js';
import type { Colour } from './colour.js';

/** UTF-16 code units of a text that are examined per column of the screen. More would hardly matter, as few characters take no column. */
const unitsOfColumn = 8;

/** A value as text of one or several lines. Times are shown as local time of the zone, in the form that filters accept without an offset. */
export function cellText(type: FieldType, value: Value | undefined, zone: string): string {
  return type === 'time' && typeof value === 'number' ? timeText(value, zone) : valueText(value);
}

function timeText(timeMs: number, zone: string): string {
  const clock = wallClock(timeMs, zone);
  const ms = ((timeMs % 1000) + 1000) % 1000;
  if (clock === null) return String(timeMs);
  return ms === 0 ? clock : `${clock}.${String(ms).padStart(3, '0')}`;
}

/** A text as lines, with control characters escaped. */
export function manyLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => printable(line.replaceAll('\t', '    ')));
}

/**
 * Fits a text into one line of `width` columns. A message (role `text`) is cut at its end, as its beginning says most; other texts are cut
 * in the middle, as they often differ only at their ends.
 */
export function fittedText(text: string, width: number, role: ColumnRole): string {
  const most = width * unitsOfColumn;
  if (role === 'text') {
    const head = oneLine(text.length > most ? text.slice(0, most) : text);
    return cutEndToWidth(text.length > most ? `${head}…` : head, width);
  }
  if (text.length <= 2 * most) return cutToWidth(oneLine(text), width);
  return cutToWidth(oneLine(`${text.slice(0, most)}…${text.slice(-most)}`), width);
}

const severityColours: Readonly<Record<Severity, Colour | null>> = {
  error: 'red',
  warn: 'yellow',
  info: 'cyan',
  ok: 'green',
  debug: 'dim',
  other: null,
};

/** The colour of a cell; null for the terminal's default. */
export function cellColour(role: ColumnRole, value: Value | undefined): Colour | null {
  if (role === 'severity') return severityColours[severityOf(value)];
  return role === 'time' ? 'dim' : null;
}
