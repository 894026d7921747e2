import { wallClock } from '../../counts/time-step.js';
import { severityOf, type Severity } from '../../viewer/state/severity.js';
import { valueText, type Value } from '../../viewer/records/record.js';
import type { ColumnRole } from '../../viewer/query/column-width.js';
import type { FieldType } from '../../viewer/query/field.js';
import { cutEndToWidth, cutToWidth, printable } from '../output/text-width.js';
import type { Colour } from './colour.js';

/** Of a longer text no more is looked at for one line: hardly a character takes no column at all. */
const unitsOfColumn = 8;

/** A value as text, of one line or several. Times are what clocks in the zone show, as filters without an offset are read. */
export function cellText(type: FieldType, value: Value | undefined, zone: string): string {
  return type === 'time' && typeof value === 'number' ? timeText(value, zone) : valueText(value);
}

function timeText(timeMs: number, zone: string): string {
  const clock = wallClock(timeMs, zone);
  const ms = ((timeMs % 1000) + 1000) % 1000;
  if (clock === null) return String(timeMs);
  return ms === 0 ? clock : `${clock}.${String(ms).padStart(3, '0')}`;
}

/** A text that may hold anything on one line, without what a terminal would act on. */
export function oneLine(text: string): string {
  return printable(text.replaceAll(/\r?\n/g, '⏎').replaceAll('\t', ' '));
}

/** The same in lines where the text has some. */
export function manyLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => printable(line.replaceAll('\t', '    ')));
}

/** A text as it is on one line of so many columns. The beginning of a message says most; other texts often differ at their ends. */
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

/** The colour of a cell; null for that of the terminal. */
export function cellColour(role: ColumnRole, value: Value | undefined): Colour | null {
  if (role === 'severity') return severityColours[severityOf(value)];
  return role === 'time' ? 'dim' : null;
}
