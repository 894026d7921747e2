import { DamageError } from '../../terms/errors.js';

/**
 * A parsed JSON object. The functions below read its fields one by one, with checks. They throw `damaged` for a field that is missing or of
 * another type.
 */
export type JsonObject = Readonly<Record<string, unknown>>;

function mismatch(key: string, expected: string, value: unknown): DamageError {
  const shown = JSON.stringify(value) ?? 'missing';
  return new DamageError(`"${key}" should be ${expected}, but is ${shown.slice(0, 100)}`, {});
}

/** Parses `text`, which must be a JSON object. Throws `damaged`. `what` names the text in the message. */
export function parseJsonObject(text: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new DamageError(`${what} is not JSON`, { cause: error });
  }
  return asObject(value, what);
}

/** Returns `value` as an object. Throws `damaged`. `key` names the value in the message. */
export function asObject(value: unknown, key: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mismatch(key, 'an object', value);
  }
  return value as JsonObject;
}

/** Reads a list whose items are not checked. */
export function listField(object: JsonObject, key: string): readonly unknown[] {
  const value = object[key];
  if (!Array.isArray(value)) throw mismatch(key, 'a list', value);
  return value;
}

/** Reads a list of objects, and maps each with `read`. */
export function objectsField<T>(object: JsonObject, key: string, read: (item: JsonObject) => T): T[] {
  return listField(object, key).map((item) => read(asObject(item, key)));
}

/** Reads a list of integers from 0 on. */
export function countsField(object: JsonObject, key: string): number[] {
  const list = listField(object, key);
  for (const value of list) {
    if (!Number.isSafeInteger(value) || (value as number) < 0) {
      throw mismatch(key, 'a list of whole numbers', value);
    }
  }
  return list as number[];
}

/** Reads an integer from 0 to `max`. */
export function countField(object: JsonObject, key: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = object[key];
  if (!Number.isSafeInteger(value) || (value as number) < 0 || (value as number) > max) {
    throw mismatch(key, `a whole number from 0 to ${max}`, value);
  }
  return value as number;
}

/** Reads an integer from 0 on, or null. */
export function countOrNullField(object: JsonObject, key: string): number | null {
  return object[key] === null ? null : countField(object, key);
}

/** Reads a time in milliseconds, which may be before the epoch. */
export function timeField(object: JsonObject, key: string): number {
  const value = object[key];
  if (typeof value !== 'number') throw mismatch(key, 'a time in milliseconds', value);
  return value;
}

/** Reads a time in milliseconds, or null. */
export function timeOrNullField(object: JsonObject, key: string): number | null {
  return object[key] === null ? null : timeField(object, key);
}

/** Reads a string. */
export function textField(object: JsonObject, key: string): string {
  const value = object[key];
  if (typeof value !== 'string') throw mismatch(key, 'a text', value);
  return value;
}

/** Reads a string, or null. */
export function textOrNullField(object: JsonObject, key: string): string | null {
  return object[key] === null ? null : textField(object, key);
}

/** Reads a boolean. */
export function flagField(object: JsonObject, key: string): boolean {
  const value = object[key];
  if (typeof value !== 'boolean') throw mismatch(key, 'true or false', value);
  return value;
}

/** Reads a string that must be one of `choices`. */
export function choiceField<T extends string>(object: JsonObject, key: string, choices: readonly T[]): T {
  const value = object[key];
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw mismatch(key, `one of ${choices.join(', ')}`, value);
  return found;
}

/** Whether two values are equal as JSON. A field that is undefined equals one that is missing. */
export function isSameData(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [one, other] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return (
    Object.keys(one).every((key) => isSameData(one[key], other[key])) &&
    Object.keys(other).every((key) => other[key] === undefined || one[key] !== undefined)
  );
}
