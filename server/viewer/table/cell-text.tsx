import { MarkedText } from '../parts/marked-text.js';
import type { Field } from '../query/field.js';
import { shownText, valueText, type Value } from '../records/record.js';
import { timeText, type Zone } from '../records/time-text.js';

/** Characters of a value that a row shows; the panel shows all of them. */
const shownCharsMax = 2000;

/** Stands for the end of a line where all lines are shown as one. */
const lineEnd = ' ↵ ';

interface CellProps {
  readonly field: Field;
  readonly value: Value | undefined;
  readonly zone: Zone;
  /** What was searched for in this field; empty for nothing. */
  readonly sought: string;
  /** A text of several lines is shown as such, and not as one line. */
  readonly isWrapped: boolean;
}

/** A value in a cell of the table. */
export function CellText({ field, value, zone, sought, isWrapped }: CellProps) {
  if (value === null || value === undefined) return <span class="null">–</span>;
  if (field.type === 'time' && typeof value === 'number') return <>{timeText(value, zone)}</>;
  const text = shownText(valueText(value));
  const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)} …` : text;
  const laid = isWrapped ? shown : shown.trimEnd().replaceAll(/\r?\n[ \t]*/g, lineEnd);
  return <MarkedText text={laid} sought={sought} />;
}
