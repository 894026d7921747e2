import {
  formatShortest,
  numberOf,
  padExponent,
  type TemplateValue,
  textOf,
  withoutZeros,
  stepsOfCall,
  type TemplateWork,
  compareValues,
  equalValues,
  isTrue,
} from './template-value.js';

/** Limit on width and precision of a verb: a template must not be able to produce megabytes of blanks. */
const widthMax = 1000;

interface Verb {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
  readonly letter: string;
}

const verbPattern = /%([-+# 0]*)(\d*)(?:\.(\d*))?(.?)/gsu;

/**
 * Go's `fmt.Sprintf` for template values (https://pkg.go.dev/fmt): `%s %v %q %d %b %o %x %X %c %U %e %f %g %t %%` with
 * flags, width and precision. A value that does not fit its verb is printed as in Go, `%!d(string=abc)`; but a string that
 * is readable as a number is taken as that number, because fields are text. Each verb costs as many steps of `work` as a
 * call.
 */
function printf(format: string, values: readonly TemplateValue[], work: TemplateWork): string {
  let next = 0;
  let text = '';
  let at = 0;
  // Match one by one: an array of all matches would take many times the memory of the format.
  for (const match of format.matchAll(verbPattern)) {
    work.take(stepsOfCall);
    const verb = readVerb(match);
    let formatted: string;
    if (verb.letter === '%') formatted = '%';
    else if (verb.letter === '') formatted = '%!(NOVERB)';
    else if (next >= values.length) formatted = `%!${verb.letter}(MISSING)`;
    else formatted = formatVerb(verb, values[next++]);
    work.take(formatted.length);
    text += format.slice(at, match.index) + formatted;
    at = match.index + match[0].length;
  }
  text += format.slice(at);
  if (next >= values.length) return text;
  const extra = values.slice(next).map((value) => `${typeName(value)}=${textOf(value)}`);
  return `${text}%!(EXTRA ${extra.join(', ')})`;
}

function readVerb([, flags = '', width = '', precision, letter = '']: RegExpExecArray): Verb {
  return {
    flags,
    width: Math.min(widthMax, Number(width)),
    precision: precision === undefined ? undefined : Math.min(widthMax, Number(precision)),
    letter,
  };
}

function formatVerb(verb: Verb, value: TemplateValue): string {
  switch (verb.letter) {
    case 'v':
      return typeof value === 'string' || value === undefined
        ? formatText(verb, textOf(value))
        : pad(verb, textOf(value), true);
    case 's':
      return typeof value === 'string' || value === undefined
        ? formatText(verb, textOf(value))
        : wrongType(verb, value);
    case 'q':
      return typeof value === 'string' || value === undefined
        ? pad(verb, JSON.stringify(textOf(value)), false)
        : wrongType(verb, value);
    case 't':
      return typeof value === 'boolean' ? pad(verb, String(value), false) : wrongType(verb, value);
    case 'x':
    case 'X':
      if (typeof value === 'string') return formatHexText(verb, value);
      return formatInteger(verb, value);
    case 'd':
    case 'b':
    case 'o':
    case 'c':
    case 'U':
      return formatInteger(verb, value);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      return formatFloat(verb, value);
    default:
      return wrongType(verb, value);
  }
}

function typeName(value: TemplateValue): string {
  switch (typeof value) {
    case 'bigint':
      return 'int';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    default:
      return 'string';
  }
}

function wrongType(verb: Verb, value: TemplateValue): string {
  return `%!${verb.letter}(${typeName(value)}=${textOf(value)})`;
}

function formatText(verb: Verb, text: string): string {
  const { precision } = verb;
  return pad(
    verb,
    precision === undefined ? text : text.slice(0, firstCharacters(text, precision).end),
    false,
  );
}

/** The number of characters of a text, up to `most`, and the end index of these. Counts characters, not UTF-16 units. */
function firstCharacters(text: string, most: number): { readonly count: number; readonly end: number } {
  let count = 0;
  let end = 0;
  for (; count < most && end < text.length; count++) end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return { count, end };
}

/** The bytes of a string in hexadecimal, also where the string is digits, as Go prints it for a field. */
function formatHexText(verb: Verb, text: string): string {
  const bytes = Buffer.from(text).subarray(0, verb.precision);
  const hex = bytes.toString('hex');
  return pad(
    verb,
    (verb.flags.includes('#') ? '0x' : '') + (verb.letter === 'X' ? hex.toUpperCase() : hex),
    false,
  );
}

function formatInteger(verb: Verb, value: TemplateValue): string {
  const integer = numberOf(value);
  if (typeof integer !== 'bigint') return wrongType(verb, value);
  if (verb.letter === 'c' || verb.letter === 'U') {
    if (integer < 0n || integer > 0x10ffffn) return wrongType(verb, value);
    const code = Number(integer);
    if (verb.letter === 'c') return pad(verb, String.fromCodePoint(code), false);
    return pad(verb, `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, false);
  }
  const radix = verb.letter === 'd' ? 10 : verb.letter === 'b' ? 2 : verb.letter === 'o' ? 8 : 16;
  let digits = (integer < 0n ? -integer : integer).toString(radix);
  if (verb.letter === 'X') digits = digits.toUpperCase();
  if (verb.precision !== undefined) digits = digits.padStart(verb.precision, '0');
  const prefix = !verb.flags.includes('#') ? '' : { 2: '0b', 8: '0', 10: '', 16: `0${verb.letter}` }[radix]!;
  return padNumber(verb, sign(verb, integer < 0n), prefix + digits, verb.precision === undefined);
}

function formatFloat(verb: Verb, value: TemplateValue): string {
  const number = numberOf(value);
  if (number === undefined) return wrongType(verb, value);
  const float = Number(number);
  const size = Math.abs(float);
  const negative = float < 0 || Object.is(float, -0);
  if (!Number.isFinite(float))
    return pad(verb, Number.isNaN(float) ? 'NaN' : negative ? '-Inf' : '+Inf', false);
  const lower = verb.letter.toLowerCase();
  let digits: string;
  if (lower === 'f') digits = fixedPoint(size, verb.precision ?? 6);
  else if (lower === 'e') digits = padExponent(size.toExponential(Math.min(100, verb.precision ?? 6)));
  else digits = general(size, verb.precision);
  return padNumber(verb, sign(verb, negative), verb.letter === lower ? digits : digits.toUpperCase(), true);
}

/** Formats a fixed-point number, because `toFixed` writes exponents from 1e21 on and allows at most 100 digits. */
function fixedPoint(size: number, precision: number): string {
  if (size < 1e21) return size.toFixed(Math.min(100, precision));
  const fraction = '0'.repeat(precision);
  return BigInt(size).toString() + (precision > 0 ? `.${fraction}` : '');
}

/** Go's `%g`: the shortest digits, or as many significant digits as the precision, without trailing zeros. */
function general(size: number, precision: number | undefined): string {
  if (precision === undefined) return formatShortest(size);
  const significant = Math.min(100, Math.max(1, precision));
  const exponent = size === 0 ? 0 : Number(size.toExponential(significant - 1).split('e')[1]);
  if (exponent < -4 || exponent >= significant) {
    const [mantissa, power] = size.toExponential(significant - 1).split('e');
    return padExponent(`${withoutTrailingZeros(mantissa!)}e${power!}`);
  }
  return withoutTrailingZeros(size.toFixed(Math.min(100, Math.max(0, significant - 1 - exponent))));
}

function withoutTrailingZeros(digits: string): string {
  return digits.includes('.') ? withoutZeros(digits).replace(/\.$/, '') : digits;
}

function sign(verb: Verb, negative: boolean): string {
  if (negative) return '-';
  return verb.flags.includes('+') ? '+' : verb.flags.includes(' ') ? ' ' : '';
}

/** Pads a number to its width. Zeros go between sign and digits, only where they are allowed. */
function padNumber(verb: Verb, signText: string, digits: string, zerosAllowed: boolean): string {
  if (zerosAllowed && verb.flags.includes('0') && !verb.flags.includes('-')) {
    return signText + digits.padStart(verb.width - signText.length, '0');
  }
  return pad(verb, signText + digits, false);
}

/** Pads a text to the width, which counts characters, not UTF-16 units. */
function pad(verb: Verb, text: string, zerosAllowed: boolean): string {
  const missing = verb.width - firstCharacters(text, verb.width).count;
  if (missing <= 0) return text;
  if (verb.flags.includes('-')) return text + ' '.repeat(missing);
  const zeros = zerosAllowed && verb.flags.includes('0');
  return (zeros ? '0' : ' ').repeat(missing) + text;
}

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

/** `bytes` is ours. `template-parser.ts` handles one more: `index` with the record as its first argument. */
export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['eq', called(2, Infinity, ([first, ...rest]) => rest.some((value) => equalValues(first, value)))],
  ['ne', called(2, 2, ([a, b]) => !equalValues(a, b))],
  ['lt', comparison((order) => order < 0)],
  ['le', comparison((order) => order <= 0)],
  ['gt', comparison((order) => order > 0)],
  ['ge', comparison((order) => order >= 0)],
  ['and', { argumentsMin: 1, argumentsMax: Infinity, stopAt: false }],
  ['or', { argumentsMin: 1, argumentsMax: Infinity, stopAt: true }],
  ['not', called(1, 1, ([value]) => !isTrue(value))],
  ['len', called(1, 1, ([value]) => BigInt(Buffer.byteLength(textOf(value))))],
  ['index', called(2, 2, ([value, at]) => byteAt(textOf(value), at))],
  ['slice', called(1, 3, ([value, from, to]) => sliceBytes(textOf(value), from, to))],
  ['bytes', called(1, 1, ([value]) => textOfBytes(textOf(value)))],
  ['print', called(0, Infinity, print)],
  ['printf', called(1, Infinity, ([format, ...values], work) => printf(textOf(format), values, work))],
]);

/** The text of a JSON array of bytes, as journald writes a text that is not UTF-8 or has control characters. Any other text as it is. */
function textOfBytes(text: string): string {
  if (!/^\[\s*\d/.test(text)) return text;
  const bytes = text.slice(1, -1).split(',').map(Number);
  const areBytes =
    text.endsWith(']') && bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256);
  return areBytes ? Buffer.from(bytes).toString() : text;
}

function called(argumentsMin: number, argumentsMax: number, call: CalledFunction['call']): CalledFunction {
  return { argumentsMin, argumentsMax, call };
}

/** A comparison of values that can't be compared (`lt .status 400` for a status `-`) is false. */
function comparison(holds: (order: number) => boolean): CalledFunction {
  return called(2, 2, ([a, b]) => {
    const order = compareValues(a, b);
    return order !== undefined && holds(order);
  });
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
