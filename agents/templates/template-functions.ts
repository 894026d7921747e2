import { printf } from './template-printf.js';
import type { TemplateWork } from './template-work.js';
import { compareValues, equalValues, isTrue, textOf, type TemplateValue } from './template-value.js';

/** How many arguments a function takes. */
interface ArgumentCount {
  readonly argumentsMin: number;
  readonly argumentsMax: number;
}

/**
 * A function of Go's templates that is called with the values of its arguments. The evaluator counts the characters of arguments and
 * result as work. A function must count longer intermediate results itself.
 */
export interface CalledFunction extends ArgumentCount {
  readonly call: (values: readonly TemplateValue[], work: TemplateWork) => TemplateValue;
}

/** `and` or `or`: gives the first value whose truth is `stopAt`, else the last one. The evaluator evaluates no value behind that. */
interface ChoosingFunction extends ArgumentCount {
  readonly stopAt: boolean;
}

export type TemplateFunction = CalledFunction | ChoosingFunction;

/** `template-parser.ts` handles one more: `index` with the record as its first argument. */
export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  [
    'eq',
    {
      argumentsMin: 2,
      argumentsMax: Infinity,
      call: ([first, ...rest]) => rest.some((value) => equalValues(first, value)),
    },
  ],
  ['ne', { argumentsMin: 2, argumentsMax: 2, call: ([a, b]) => !equalValues(a, b) }],
  ['lt', comparison((order) => order < 0)],
  ['le', comparison((order) => order <= 0)],
  ['gt', comparison((order) => order > 0)],
  ['ge', comparison((order) => order >= 0)],
  ['and', { argumentsMin: 1, argumentsMax: Infinity, stopAt: false }],
  ['or', { argumentsMin: 1, argumentsMax: Infinity, stopAt: true }],
  ['not', { argumentsMin: 1, argumentsMax: 1, call: ([value]) => !isTrue(value) }],
  ['len', { argumentsMin: 1, argumentsMax: 1, call: ([value]) => BigInt(Buffer.byteLength(textOf(value))) }],
  ['index', { argumentsMin: 2, argumentsMax: 2, call: ([value, at]) => byteAt(textOf(value), at) }],
  [
    'slice',
    { argumentsMin: 1, argumentsMax: 3, call: ([value, from, to]) => sliceBytes(textOf(value), from, to) },
  ],
  ['print', { argumentsMin: 0, argumentsMax: Infinity, call: print }],
  [
    'printf',
    {
      argumentsMin: 1,
      argumentsMax: Infinity,
      call: ([format, ...values], work) => printf(textOf(format), values, work),
    },
  ],
]);

/** A comparison of values that can't be compared (`lt .status 400` for a status `-`) is false. */
function comparison(holds: (order: number) => boolean): CalledFunction {
  return {
    argumentsMin: 2,
    argumentsMax: 2,
    call: ([a, b]) => {
      const order = compareValues(a, b);
      return order !== undefined && holds(order);
    },
  };
}

/** Like Go's `fmt.Sprint`: a blank between two values neither of which is a string. */
function print(values: readonly TemplateValue[]): string {
  return values.reduce<string>((text, value, i) => {
    const before = values[i - 1];
    const blank = i > 0 && typeof value !== 'string' && typeof before !== 'string' ? ' ' : '';
    return text + blank + textOf(value);
  }, '');
}

/** Go indexes strings by byte and gives the byte's number; undefined outside the string. */
function byteAt(text: string, at: TemplateValue): TemplateValue {
  const byte = typeof at === 'bigint' ? Buffer.from(text)[Number(at)] : undefined;
  return byte === undefined ? undefined : BigInt(byte);
}

/** Bytes [from, to) of a string, limited to its length; cut characters become U+FFFD. */
function sliceBytes(text: string, from: TemplateValue, to: TemplateValue): TemplateValue {
  const bytes = Buffer.from(text);
  const start = typeof from === 'bigint' && from > 0n ? Number(from) : 0;
  const end = typeof to === 'bigint' ? Math.max(0, Number(to)) : bytes.length;
  return bytes.subarray(start, end).toString();
}
