import { int64Max, int64Min } from '../../engine/index.js';

/** A type that texts show; times are told elsewhere, by their spelling. */
export type ValueType = 'int' | 'float' | 'bool' | 'string';

/** What programs write where there is no value. */
const noValue = new Set(['', '-']);

/** Without a leading zero, which is that of a number which is a name. */
const integerShape = /^-?(?:0|[1-9]\d{0,18})$/;
const decimalShape = /^-?(?:0|[1-9]\d{0,15})(?:\.\d{1,18})?$/;
const boolShape = /^(?:true|false)$/i;

/**
 * The type that takes all the texts of a part: int, float or bool where each of them reads so, but for those that say that there is no
 * value; string else, and where no text says anything.
 */
export function typeOfTexts(texts: Iterable<string>): ValueType {
  const possible = { int: true, float: true, bool: true };
  let values = 0;
  for (const text of texts) {
    if (noValue.has(text)) continue;
    values++;
    possible.int &&= isInteger(text);
    possible.float &&= decimalShape.test(text);
    possible.bool &&= boolShape.test(text);
    if (!possible.int && !possible.float && !possible.bool) return 'string';
  }
  if (values === 0) return 'string';
  if (possible.int) return 'int';
  return possible.float ? 'float' : 'bool';
}

function isInteger(text: string): boolean {
  if (!integerShape.test(text)) return false;
  const value = BigInt(text);
  return value >= int64Min && value <= int64Max;
}
