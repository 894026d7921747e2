import { LogstrataError } from './errors.js';
import { markType, type FieldType } from './field-types.js';
import { fieldsMax } from './limits.js';

export { answeredValue, fieldTypes, typeFacts, type FieldType } from './field-types.js';

/**
 * How the records of an answer are written, one per line: `jsonl` as JSON objects, `json` as the elements of an array, `csv` as records of
 * RFC 4180 after a header.
 */
export const lineFormats = ['jsonl', 'json', 'csv'] as const;
export type LineFormat = (typeof lineFormats)[number];

/** How an integer or a float is compared. */
export type CompareOp = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte';
/** How a string is compared with a text. All operators but `exact` ignore case. */
export type NeedleOp = 'exact' | 'like' | 'prefix' | 'suffix';
/** `regex` finds a pattern in RE2 syntax. `ne` is the negation of `exact`, and each `not_` operator the negation of the operator that it names. */
export type StringOp = NeedleOp | 'regex' | 'ne' | 'not_like' | 'not_prefix' | 'not_suffix' | 'not_regex';

/**
 * A typed filter on a field. `field` is an index into the schema. Kind `int` is for `int`, `time` (in milliseconds) and `bool` fields
 * (false is 0, true 1); of times, `since` is `gte` and `until` is `lt`. The members of a `set` are `eq` or `exact` filters on its field,
 * and it matches if one of them does. `exists` says whether the field has a value: with false it matches null, which no other filter does.
 */
export type FieldPredicate =
  | { readonly kind: 'int'; readonly field: number; readonly op: CompareOp; readonly value: bigint }
  | { readonly kind: 'float'; readonly field: number; readonly op: CompareOp; readonly value: number }
  | { readonly kind: 'string'; readonly field: number; readonly op: StringOp; readonly value: string }
  | { readonly kind: 'set'; readonly field: number; readonly members: readonly FieldPredicate[] }
  | { readonly kind: 'exists'; readonly field: number; readonly value: boolean };

/**
 * A text (`like`) or a pattern (`regex`) that is searched in all fields of type string. A record matches if it is found in one of its fields;
 * with `isAbsent`, if it is found in none.
 */
export interface AnywherePredicate {
  readonly kind: 'anywhere';
  readonly op: 'like' | 'regex';
  readonly isAbsent: boolean;
  readonly value: string;
}

/** A group of filters. A record matches if it matches one of them, so an empty group matches no record. */
export interface AnyPredicate {
  readonly kind: 'any';
  readonly members: readonly (FieldPredicate | AnywherePredicate)[];
}

/** One filter of a query, or a group of them. */
export type Predicate = FieldPredicate | AnywherePredicate | AnyPredicate;

/** A text that is equal for equal filters, or for values that contain filters. */
export function filtersKey(filters: unknown): string {
  return JSON.stringify(filters, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}

/**
 * Which filters a field of type string or int gets: always (true), never (false), or only where they pay off (undefined). `full` is for
 * strings that are often searched for texts: their gram filters are larger than necessary.
 */
export type FieldIndex = boolean | 'full' | undefined;

/** A field of an agent's records. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly index?: FieldIndex;
  /** The column of attached files that holds the field; absent if it has the field's name. */
  readonly attached?: AttachedColumn | undefined;
}

/** Units in which numbers count times since the epoch. A value `n` is `n * ms / perMs` milliseconds. */
export const timeUnits = {
  s: { perMs: 1, ms: 1000 },
  ms: { perMs: 1, ms: 1 },
  us: { perMs: 1000, ms: 1 },
  ns: { perMs: 1_000_000, ms: 1 },
} as const;

export type TimeUnit = keyof typeof timeUnits;

/** A column of a file that another program wrote. */
export interface AttachedColumn {
  /** Name of the column in the file, or in a folder name `key=value`; or names of a structure and of a field in it, with points between them. */
  readonly column: string;
  /** For a field of type time: the unit of the column's values, if they are numbers and not times. */
  readonly unit?: TimeUnit | undefined;
  /** For a field of type time: how texts are read, if the values are texts and not times. As in `TimestampFormat`. */
  readonly format?: string | undefined;
  readonly timezone?: string | undefined;
}

/** A text that is equal for fields that are read from the same column in the same way. */
export function readingOf({ name, attached }: Pick<Field, 'name' | 'attached'>): string {
  const { column = name, unit = '', format = '', timezone = '' } = attached ?? {};
  return `${column}\0${unit}\0${format}\0${timezone}`;
}

/** Whether a field is read as it was when it placed rows. A format is of no account where the column had no texts. */
export function isPlacedBy(placedBy: AttachedColumn, { name, attached = { column: name } }: Field): boolean {
  const { column, unit } = attached;
  const read = placedBy.format === undefined ? { column, unit } : attached;
  return readingOf({ name, attached: placedBy }) === readingOf({ name, attached: read });
}

/** The fields of an agent's records, in the order of responses. Every field is nullable. */
export interface Schema {
  readonly fields: readonly Field[];
}

const fieldNamePattern = /^[a-z][a-z0-9_]*$/;

/** What is wrong with `name` as a field name; undefined if nothing is. `__` separates a filter's operator from the field. */
export function fieldNameProblem(name: string): string | undefined {
  if (!fieldNamePattern.test(name)) {
    return `field name ${JSON.stringify(name)} must have only lowercase letters, digits and underscores, and begin with a letter`;
  }
  if (name.includes('__'))
    return `field name "${name}" must not contain "__", which separates the operator of a filter`;
  return undefined;
}

const agentNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Whether `name` is a valid name of an agent, and so of its folder. */
export function isAgentName(name: string): boolean {
  return agentNamePattern.test(name);
}

/** The last column of a segment with removed rows: true for these, null for the others. Its name is none that a field can have. */
const removedField: Field = { name: '_removed', type: markType };

/** The schema of a segment that also has a column for its removed rows. */
export function withRemoved({ fields }: Schema): Schema {
  return { fields: [...fields, removedField] };
}

/** The schema without the column of removed rows; the same schema where it has none. */
export function withoutRemoved(schema: Schema): Schema {
  const { fields } = schema;
  return fields.at(-1)?.name === removedField.name ? { fields: fields.slice(0, -1) } : schema;
}

/** Makes a schema of copies of the fields, without unknown properties. Throws `invalid` for wrong names or a wrong number of fields. */
export function makeSchema(fields: readonly Field[]): Schema {
  if (fields.length === 0) throw new LogstrataError('invalid', 'an agent needs at least one field');
  if (withoutRemoved({ fields }).fields.length > fieldsMax) {
    throw new LogstrataError('invalid', `${fields.length} fields, but at most ${fieldsMax} are allowed`);
  }
  const seen = new Set<string>();
  for (const field of fields) {
    const problem = field.name === removedField.name ? undefined : fieldNameProblem(field.name);
    if (problem !== undefined) throw new LogstrataError('invalid', problem);
    if (seen.has(field.name)) throw new LogstrataError('invalid', `field "${field.name}" is defined twice`);
    seen.add(field.name);
  }
  return {
    fields: fields.map(({ name, type, index, attached }) => ({
      name,
      type,
      ...(index === undefined ? {} : { index }),
      ...(attached === undefined ? {} : { attached: onlyKnown(attached) }),
    })),
  };
}

function onlyKnown({ column, unit, format, timezone }: AttachedColumn): AttachedColumn {
  return {
    column,
    ...(unit === undefined ? {} : { unit }),
    ...(format === undefined ? {} : { format }),
    ...(timezone === undefined ? {} : { timezone }),
  };
}

/** Index of the field that decides placement (the first of type `time`), or -1. */
export function placementField(schema: Schema): number {
  return schema.fields.findIndex((field) => field.type === 'time');
}

/** Whether two schemas have the same columns (names and types) in the same order. Their segments then differ only in filters. */
export function sameColumns(a: Schema, b: Schema): boolean {
  return (
    a.fields.length === b.fields.length &&
    a.fields.every(({ name, type }, i) => name === b.fields[i]!.name && type === b.fields[i]!.type)
  );
}

/** Whether two schemas have the same columns in the same order, with the same filters and attached columns. */
export function sameSchema(a: Schema, b: Schema): boolean {
  return (
    sameColumns(a, b) &&
    a.fields.every((field, i) => {
      const other = b.fields[i]!;
      return field.index === other.index && readingOf(field) === readingOf(other);
    })
  );
}
