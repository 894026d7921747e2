import type { FieldType } from '../../../engine/index.js';
import { formatTime } from '../output/figures.js';
import { printable } from '../output/text-width.js';

/** A stored value, as it is shown to people: bool as the words it stands for, a time also as a date, nothing that a terminal would act on. */
export function showValue(type: FieldType, value: bigint | number | string | boolean | null): string {
  if (value === null) return 'null';
  if (type === 'bool') return String(value === 1n || value === true);
  if (typeof value === 'string') return printable(JSON.stringify(value));
  return type === 'time' ? `${value} (${formatTime(Number(value))} UTC)` : String(value);
}
