import { LogstrataError } from './errors.js';
import { fieldsMax } from './limits.js';

/**
 * - `int`: 64-bit signed integer, exact.
 * - `float`: IEEE 754 double; NaN and infinities are stored as null.
 * - `string`: valid UTF-8.
 * - `time`: milliseconds since the epoch, UTC, as a 64-bit integer.
 * - `bool`: true or false.
 */
export type FieldType = 'int' | 'float' | 'string' | 'time' | 'bool';

/** How the values of each type lie in memory: a `bool` is the integer 0 or 1. */
export const valueKinds = {
  int: 'int64',
  float: 'float64',
  string: 'bytes',
  time: 'int64',
  bool: 'int64',
} as const satisfies Record<FieldType, string>;

/** Every type. */
export const fieldTypes = Object.keys(valueKinds) as readonly FieldType[];

/**
 * Which filters a field of type string or int has: always (true), never (false), or, of strings, gram filters that are larger than they would
 * have to be, for texts that are searched for often (`full`). Undefined: where they pay.
 */
export type FieldIndex = boolean | 'full' | undefined;

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly index?: FieldIndex;
  /** Which column of attached files holds it; absent for the one of its name. */
  readonly attached?: AttachedColumn | undefined;
}

/** Units of numbers that are times since the epoch, and how many milliseconds, or ticks of one, each is. */
export const timeUnits = {
  s: { perMs: 1, ms: 1000 },
  ms: { perMs: 1, ms: 1 },
  us: { perMs: 1000, ms: 1 },
  ns: { perMs: 1_000_000, ms: 1 },
} as const;

export type TimeUnit = keyof typeof timeUnits;

/** A column of a file that another program wrote. */
export interface AttachedColumn {
  /** As the file, or a folder `key=value`, names it. */
  readonly column: string;
  /** Fields of type time: what the numbers of the column count, where it holds no times but numbers. */
  readonly unit?: TimeUnit | undefined;
}

/** The fields of an agent's records, in the order of the response. Every field may be null. */
export interface Schema {
  readonly fields: readonly Field[];
}

const fieldNamePattern = /^[a-z][a-z0-9_]*$/;

/** What is wrong with `name` as a field name, or undefined when nothing is. The operator of a filter follows the last `__`. */
export function fieldNameProblem(name: string): string | undefined {
  if (!fieldNamePattern.test(name)) {
    return `field name ${JSON.stringify(name)} must be lowercase letters, digits and underscores, and begin with a letter`;
  }
  if (name.includes('__'))
    return `field name "${name}" must not contain "__", which separates a filter's operator`;
  return undefined;
}

const agentNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Whether `name` may name an agent, and so a folder of the archive. */
export function isAgentName(name: string): boolean {
  return agentNamePattern.test(name);
}

/** A schema of these fields, without what else the objects may hold. Checks names and count; throws `invalid`. */
export function makeSchema(fields: readonly Field[]): Schema {
  if (fields.length === 0) throw new LogstrataError('invalid', 'an agent needs at least one field');
  if (fields.length > fieldsMax) {
    throw new LogstrataError('invalid', `${fields.length} fields, but at most ${fieldsMax} are possible`);
  }
  const seen = new Set<string>();
  for (const field of fields) {
    const problem = fieldNameProblem(field.name);
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

function onlyKnown({ column, unit }: AttachedColumn): AttachedColumn {
  return unit === undefined ? { column } : { column, unit };
}

/** Position of the field that decides placement (the first of type `time`), or -1. */
export function placementField(schema: Schema): number {
  return schema.fields.findIndex((field) => field.type === 'time');
}

/** Whether two schemas have columns of the same names and types in the same order: segments of both differ by their filters alone. */
export function sameColumns(a: Schema, b: Schema): boolean {
  return (
    a.fields.length === b.fields.length &&
    a.fields.every(({ name, type }, i) => name === b.fields[i]!.name && type === b.fields[i]!.type)
  );
}

/** Whether two schemas store the same columns in the same order, with the same filters. */
export function sameSchema(a: Schema, b: Schema): boolean {
  return (
    sameColumns(a, b) &&
    a.fields.every((field, i) => {
      const other = b.fields[i]!;
      return (
        field.index === other.index &&
        field.attached?.column === other.attached?.column &&
        field.attached?.unit === other.attached?.unit
      );
    })
  );
}
