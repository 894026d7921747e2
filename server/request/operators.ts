import { assertNever, type CompareOp, type FieldType, type StringOp } from '../../engine/index.js';

export const compareOps: readonly CompareOp[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];
export const stringOps: readonly StringOp[] = [
  'exact',
  'like',
  'prefix',
  'suffix',
  'ne',
  'not_like',
  'not_prefix',
  'not_suffix',
];
export const boolOps = ['eq', 'ne'] as const;
/** Operators of a filter on `*`, which searches all fields of type string. */
export const anywhereOps = ['like', 'not_like'] as const;
const windowOps = ['since', 'until'] as const;

/** The operators that a filter on a field of this type may have. */
export function operatorsOf(type: FieldType): readonly string[] {
  switch (type) {
    case 'int':
    case 'float':
      return [...compareOps, 'in'];
    case 'string':
      return [...stringOps, 'in'];
    case 'time':
      return [...windowOps, ...compareOps, 'in'];
    case 'bool':
      return [...boolOps, 'in'];
    default:
      return assertNever(type);
  }
}
