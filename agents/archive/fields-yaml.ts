import type { InferredColumn } from './inferred-fields.js';

/** What YAML takes as it is, and for nothing but a text. */
const plainText = /^(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z][a-z0-9_]*$/i;

/** The columns as `fields` of an agent's file. */
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

/** A text as YAML has it: JSON is YAML, too. */
function yamlText(text: string): string {
  if (plainText.test(text)) return text;
  return /[\p{Cc}\u2028\u2029\ufeff]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}
