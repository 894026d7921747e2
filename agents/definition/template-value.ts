/**
 * The values of templates. Fields are strings; integers are exact, floats are doubles. `undefined` is Go's nil: a missing
 * field, which prints as nothing.
 */
export type TemplateValue = string | bigint | number | boolean | undefined;

/** Limit on the digits of an integer: parsing takes time quadratic in the length. */
export const digitsMax = 400;

const integerPattern = new RegExp(`^[+-]?\\d{1,${digitsMax}}$`);
const floatPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?$/;

/** A value as a number, also a string that is readable as one; undefined for others. */
export function numberOf(value: TemplateValue): bigint | number | undefined {
  switch (typeof value) {
    case 'bigint':
    case 'number':
      return value;
    case 'string':
      if (integerPattern.test(value)) return BigInt(value.startsWith('+') ? value.slice(1) : value);
      return floatPattern.test(value) ? Number(value) : undefined;
    default:
      return undefined;
  }
}

/** Number of characters of a value, as the cost of handling it; 0 for numbers, which are short. */
export function lengthOf(value: TemplateValue): number {
  return typeof value === 'string' ? value.length : 0;
}

/** The text of a value as Go prints it with `%v`; nil is empty. */
export function textOf(value: TemplateValue): string {
  if (value === undefined) return '';
  return typeof value === 'number' ? formatShortest(value) : String(value);
}

/** Go's `%v` of a float64: the shortest digits that round-trip; with an exponent, of at least two digits, below 1e-4 and from 1e21 on. */
export function formatShortest(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e21)) return padExponent(value.toExponential());
  return Object.is(value, -0) ? '-0' : String(value);
}

/** Pads the exponent to two digits: JavaScript writes `1e+5`, Go `1e+05`. */
export function padExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** Truth of a value for `if`, `and`, `or` and `not`: everything but the empty string, false, zero and a missing field. */
export function isTrue(value: TemplateValue): boolean {
  return !(value === undefined || value === '' || value === false || value === 0 || value === 0n);
}

/**
 * Compares two values: negative, zero or positive; undefined where they can't be compared. Strings are compared by their
 * UTF-8 bytes. A string and a number are compared as numbers, because fields are text and `lt .status 400` is what people
 * write (Go rejects it at run time).
 */
export function compareValues(a: TemplateValue, b: TemplateValue): number | undefined {
  if (typeof a === 'string' && typeof b === 'string') {
    return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  if (typeof a === 'boolean' || typeof b === 'boolean') return a === b ? 0 : undefined;
  const left = numberOf(a);
  const right = numberOf(b);
  if (left === undefined || right === undefined) return undefined;
  return left < right ? -1 : left > right ? 1 : left >= right ? 0 : undefined;
}

/** Equality for `eq` and `ne`. A missing field equals the empty string; a string equals a number that it is readable as. */
export function equalValues(a: TemplateValue, b: TemplateValue): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a === b;
  // `eq .f ""` is thus true for a missing and for an empty field.
  if (a === undefined || b === undefined) return (a ?? '') === (b ?? '');
  return compareValues(a, b) === 0;
}

/** Removes trailing zeros. */
export function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}

/**
 * Limit on the steps that the templates of one line take together: each character that a function reads or produces is one
 * step. This many take less than a second, and strings of so many characters fit into memory.
 */
export const templateStepsMax = 32 * 1024 * 1024;

/** Steps of a function call, a `printf` verb or a field, in addition to its characters. */
export const stepsOfCall = 64;

/** Thrown when a line's templates exceed their steps. */
export class TemplateOverrun extends Error {}

/** Counts the steps of the templates of one line. */
export class TemplateWork {
  #left = templateStepsMax;

  /** Begins another line. */
  begin(): void {
    this.#left = templateStepsMax;
  }

  /** Takes steps. Throws `TemplateOverrun` where not enough are left. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new TemplateOverrun('the templates of a line take too many steps');
  }
}
