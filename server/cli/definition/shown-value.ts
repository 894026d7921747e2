import type { FieldType } from '../../../engine/index.js';
import { formatTime } from '../output/figures.js';

/** A stored value, as it is shown to people: bool as the words it stands for, a time also as a date. */
export function showValue(type: FieldType, value: bigint | number | string | boolean | null): string {
  if (value === null) return 'null';
  if (type === 'bool') return String(value === 1n || value === true);
  if (typeof value === 'string') return JSON.stringify(value);
  return type === 'time' ? `${value} (${formatTime(Number(value))} UTC)` : String(value);
}
