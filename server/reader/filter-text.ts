import { assertNever, type FieldPredicate, type Predicate, type Schema } from '../../engine/index.js';

/** Filters as parameters of a query string, percent-encoded: `status__gte=500`, `host__exact=a`. */
export function filterText(predicates: readonly Predicate[], schema: Schema): string[] {
  return predicates.flatMap((predicate) => {
    if (predicate.kind === 'anywhere')
      return [parameter('*', predicate.isAbsent ? 'not_like' : 'like', predicate.value)];
    const { name } = schema.fields[predicate.field]!;
    if (predicate.kind !== 'set') return [parameter(name, predicate.op, valueText(predicate, schema))];
    return predicate.members.map((member) => parameter(name, 'in', valueText(member, schema)));
  });
}

function parameter(name: string, operator: string, value: string): string {
  return `${name}__${operator}=${encodeURIComponent(value).replaceAll('%20', '+')}`;
}

function valueText(predicate: FieldPredicate, { fields }: Schema): string {
  switch (predicate.kind) {
    case 'int':
      if (fields[predicate.field]!.type === 'bool') return String(predicate.value !== 0n);
      return predicate.value.toString();
    case 'float':
      return String(predicate.value);
    case 'string':
      return predicate.value;
    case 'set':
      throw new Error('a set has no sets');
    default:
      return assertNever(predicate);
  }
}
