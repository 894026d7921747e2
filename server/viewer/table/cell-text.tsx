import { MarkedText } from '../parts/marked-text.js';
import type { Field } from '../query/field.js';
import { shownText, valueText, type Value } from '../records/record.js';
import { timeText, type Zone } from '../records/time-text.js';

/** Maximum number of characters of a value in a row; the record panel shows the whole value. */
const shownCharsMax = 2000;

/** Replaces a line break where a text is shown on one line. */
const lineEnd = ' ↵ ';

interface CellProps {
  readonly field: Field;
  readonly value: Value | undefined;
  readonly zone: Zone;
  /** The text that was searched for in this field; empty where none was. */
  readonly searchText: string;
  /** Whether a text of several lines is shown on several lines. */
  readonly isWrapped: boolean;
}

/** The value of a field in a cell of the table. */
export function CellText({ field, value, zone, searchText, isWrapped }: CellProps) {
  if (value === null || value === undefined) return <span class="null">–</span>;
  if (field.type === 'time' && typeof value === 'number') return <>{timeText(value, zone)}</>;
  const text = shownText(valueText(value));
  const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)} …` : text;
  const laid = isWrapped ? shown : shown.trimEnd().replaceAll(/\r?\n[ \t]*/g, lineEnd);
  return <MarkedText text={laid} searchText={searchText} />;
}
