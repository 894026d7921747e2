import { yamlText } from '../definition/yaml-text.js';
import type { InferredColumn } from './inferred-fields.js';

/** Writes the columns as the section `fields` of an agent's file. */
export function fieldsYaml(columns: readonly InferredColumn[]): string[] {
  return ['fields:', ...columns.flatMap((column) => fieldLines(column))];
}

function fieldLines({ field: { name, type, column, unit } }: InferredColumn): string[] {
  const parts = [
    `name: ${yamlText(name)}`,
    ...(type === 'string' ? [] : [`type: ${type}`]),
    ...(column === name ? [] : [`source: ${yamlText(column)}`]),
    ...(unit === undefined ? [] : [`unit: ${unit}`]),
  ];
  const line = `  - { ${parts.join(', ')} }`;
  if (line.length <= 80) return [line];
  return parts.map((part, i) => `  ${i === 0 ? '-' : ' '} ${part}`);
}
