import { anyField, fieldWords } from '../query/field.js';
import type { Filter } from '../query/filter.js';
import { operatorWords } from '../query/operators.js';
import type { View } from '../query/view.js';

/** A filter in words: `status ≥ 500`, `level is one of error, warn`. */
export function filterText({ field, operator, values }: Filter): string {
  return `${fieldWords(field)} ${operatorWords(operator)} ${values.map((value) => (value === '' ? '""' : value)).join(', ')}`;
}

/** A view in one line, for lists of views. */
export function viewText(view: View, searched: string | undefined): string {
  const parts = view.filters.map(filterText);
  if (view.text !== '') parts.unshift(`${fieldWords(searched ?? anyField)} contains ${view.text}`);
  if (view.range.kind === 'last') parts.push(`last ${view.range.length}`);
  if (view.range.kind === 'between') parts.push('between two times');
  return `${view.agent}: ${parts.length === 0 ? 'everything' : parts.join(' · ')}`;
}
