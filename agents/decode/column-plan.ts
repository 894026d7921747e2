import type { ColumnPlan, StringPiece } from '../lines/line-columns.js';
import type { FieldDefinition } from '../definition/definition.js';
import { compileTemplate } from '../templates/template.js';
import { isTimestampFormatName } from '../times/timestamp.js';

/**
 * The most digits of a number that the kernels read: 15 for milliseconds since the epoch, so that every number is in
 * `epochRange`, and 19 for 64-bit integers, because the largest has 19. Longer numbers are read one by one.
 */
const epochDigits = 15;
const int64Digits = 19;

/** Origin of a parsed field: its number in the line, or a constant text. */
export type FieldOrigin = { readonly inLine: number } | { readonly text: Uint8Array };

/**
 * How to make a field's column from many lines at once, with the same results as its writer in `field-writer.ts`; null where
 * only the writer can.
 */
export function planColumn(
  field: FieldDefinition,
  originOf: (name: string) => FieldOrigin,
): ColumnPlan | null {
  if (field.template !== undefined) return planTemplate(field, originOf);
  const origin = originOf(field.source);
  if ('text' in origin) return field.type === 'string' ? { kind: 'pieces', pieces: [origin.text] } : null;
  const number = origin.inLine;
  switch (field.type) {
    case 'string':
      return { kind: 'string', field: number };
    case 'float':
      return { kind: 'float', field: number };
    case 'int':
      return { kind: 'int', field: number, digitsMax: int64Digits };
    case 'time':
      return planTime(field, number);
    case 'bool':
      return null;
  }
}

function planTime({ timestamp }: FieldDefinition, field: number): ColumnPlan | null {
  if (timestamp === undefined) return { kind: 'int', field, digitsMax: epochDigits };
  const name = timestamp.format.toLowerCase();
  if (!isTimestampFormatName(name)) return null;
  switch (name) {
    case 'rfc3339':
    case 'rfc3339nano':
      return { kind: 'time', field, format: 'rfc3339' };
    case 'common':
    case 'unix':
      return { kind: 'time', field, format: name };
    case 'stamp':
      return null;
  }
}

function planTemplate(
  { template, type }: FieldDefinition,
  originOf: (name: string) => FieldOrigin,
): ColumnPlan | null {
  const { flat } = compileTemplate(template!);
  if (flat === undefined || type !== 'string') return null;
  const pieces: StringPiece[] = [];
  const addText = (bytes: Uint8Array): void => {
    if (bytes.length > 0) pieces.push(bytes);
  };
  addText(Buffer.from(flat.texts[0]!));
  flat.names.forEach((name, i) => {
    const origin = originOf(name);
    if ('text' in origin) addText(origin.text);
    else pieces.push(origin.inLine);
    addText(Buffer.from(flat.texts[i + 1]!));
  });
  return { kind: 'pieces', pieces };
}
