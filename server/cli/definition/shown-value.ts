import type { FieldType } from '../../../engine/index.js';
import { formatTime } from '../output/figures.js';
import { printable } from '../output/text-width.js';

/** A stored value for people: bool as a word, a time also as a date, a string as JSON with control characters escaped. */
export function showValue(type: FieldType, value: bigint | number | string | boolean | null): string {
  if (value === null) return 'null';
  if (type === 'bool') return String(value === 1n || value === true);
  if (typeof value === 'string') return printable(JSON.stringify(value));
  return type === 'time' ? `${value} (${formatTime(Number(value))} UTC)` : String(value);
}
