/**
 * The values that a template computes with. Fields are strings; integers are exact, floats are doubles.
 * `undefined` is Go's nil: a missing field, which prints as nothing.
 */
export type TemplateValue = string | bigint | number | boolean | undefined;

/** Digits of an integer: a longer one takes time by the square of its length. */
export const digitsMax = 400;

const integerPattern = new RegExp(`^[+-]?\\d{1,${digitsMax}}$`);
const floatPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?$/;

/** A value as a number, strings that read as one included; undefined for others. */
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

/** Characters that handling it takes; numbers are short. */
export function lengthOf(value: TemplateValue): number {
  return typeof value === 'string' ? value.length : 0;
}

/** As Go prints it with `%v`; nil is empty. */
export function textOf(value: TemplateValue): string {
  if (value === undefined) return '';
  return typeof value === 'number' ? formatShortest(value) : String(value);
}

/** Go's `%v` of a float64: the shortest digits that read back, an exponent below 1e-4 and from 1e21 on, of two digits at least. */
export function formatShortest(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e21)) return padExponent(value.toExponential());
  return Object.is(value, -0) ? '-0' : String(value);
}

/** JavaScript writes `1e+5`, Go `1e+05`. */
export function padExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** What `if`, `and`, `or` and `not` take for true: all but the empty string, false, zero and a missing field. */
export function isTrue(value: TemplateValue): boolean {
  return !(value === undefined || value === '' || value === false || value === 0 || value === 0n);
}

/**
 * Negative, zero or positive; undefined when the two can't be compared. Strings compare byte by byte as UTF-8. A
 * string beside a number is compared as the number that it reads as: fields are text, and `lt .status 400` is
 * what people write (Go refuses that when it runs).
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

/** What `eq` and `ne` go by. A missing field equals the empty string; a string equals the number that it reads as. */
export function equalValues(a: TemplateValue, b: TemplateValue): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a === b;
  // A missing field is the empty string, so that `eq .f ""` asks for both.
  if (a === undefined || b === undefined) return (a ?? '') === (b ?? '');
  return compareValues(a, b) === 0;
}

/** Digits without the zeros at their end. */
export function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}
