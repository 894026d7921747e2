import { int64Max, int64Min } from '../../engine/index.js';

/** A type that is recognised from texts; times are recognised elsewhere, by their spelling. */
export type ValueType = 'int' | 'float' | 'bool' | 'string';

/** How programs write a missing value. */
const noValue = new Set(['', '-']);

/** Leading zeros are not allowed: a number with them is an identifier. */
const integerShape = /^-?(?:0|[1-9]\d{0,18})$/;
const decimalShape = /^-?(?:0|[1-9]\d{0,15})(?:\.\d{1,18})?$/;
const boolShape = /^(?:true|false)$/i;

/**
 * The type of all texts of a part: int, float or bool where each text is readable as such, ignoring missing values;
 * otherwise string, also where all values are missing.
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

/**
 * The first of texts that are decimals and that a float would not give back as it is written: `1.10`, `8.0`. Such a text is
 * rather a version or another name than a measure.
 */
export function unlikeFloat(texts: readonly string[]): string | undefined {
  if (typeOfTexts(texts) !== 'float') return undefined;
  return texts.find((text) => !noValue.has(text) && String(Number(text)) !== text);
}

function isInteger(text: string): boolean {
  if (!integerShape.test(text)) return false;
  const value = BigInt(text);
  return value >= int64Min && value <= int64Max;
}
