import { crc32 } from 'node:zlib';
import { DamageError, isLogstrataError, LogstrataError } from '../../core/errors.js';

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

/** The magic word of a file of checked text, and the format version that this program reads and writes. */
export interface TextFormat {
  /** Lowercase letters and hyphens. */
  readonly magic: string;
  readonly version: number;
}

const headerPattern = /^([a-z-]{1,30}) (\d{1,9}) (\d{1,15}) ([0-9a-f]{8})\n/;
const headerBytesMax = 80;

function headerLine({ magic, version }: TextFormat, text: Uint8Array): string {
  const start = `${magic} ${version} ${text.length} `;
  return `${start}${crc32(text, crc32(start)).toString(16).padStart(8, '0')}\n`;
}

/**
 * Encodes text as the bytes of a file: a header line `<magic> <version> <bytes> <crc32>`, then the text. The crc32 (8 hexadecimal digits)
 * covers the header line up to itself and the text, so that any flipped bit is detected.
 */
export function encodeCheckedText(format: TextFormat, text: string): Uint8Array {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(headerLine(format, bytes)), bytes]);
}

/** Decodes the bytes of such a file. Throws `damaged` for invalid content, `unsupported` for another version. */
export function decodeCheckedText(format: TextFormat, bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = headerPattern.exec(buffer.toString('latin1', 0, headerBytesMax));
  if (header === null || header[1] !== format.magic)
    throw new DamageError(`it does not begin with "${format.magic}"`, { offset: 0 });
  const text = buffer.subarray(header[0].length);
  const version = Number(header[2]);
  if (header[0] !== headerLine({ ...format, version }, text))
    throw new DamageError(`its length or its checksum is wrong`, { offset: 0 });
  if (version !== format.version) throw otherFormat('format version', version, format.version);
  return text.toString('utf8');
}

/** Whether an error says that a file has a format of another program version. Such a file is not damaged. */
export function isUnsupported(error: unknown): error is LogstrataError & { code: 'unsupported' } {
  return isLogstrataError(error) && error.code === 'unsupported';
}

/**
 * The error for a file whose format version this program does not read. `writtenByAnother` adds the file's name.
 *
 * @param format what the version counts, as shown to people: `segment format`
 */
export function otherFormat(format: string, found: number, known: number): LogstrataError {
  const has = `it has ${format} ${found}, but this version knows ${known}`;
  return new LogstrataError(
    'unsupported',
    found > known
      ? `was written by a newer version of logstrata: ${has}`
      : `was written by a version from before the first release: ${has}. ` +
          'Export the records with the program that wrote them, and load them into a new data folder',
  );
}

/** The error `otherFormat`, completed with `what` (the file as shown to people) and `path`. */
export function writtenByAnother(what: string, path: string, error: LogstrataError): LogstrataError {
  return new LogstrataError('unsupported', `${what} ${error.message}`, { path });
}

/**
 * Reads a file in a format of ours by `read`, and completes its errors about the content: `what` and `where` name the file, and `advice`
 * follows what is said of damage.
 */
export async function readingChecked<T>(
  what: string,
  where: string,
  advice: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    if (isUnsupported(error)) throw writtenByAnother(`${what} ${where}`, where, error);
    if (error.code !== 'damaged') throw error;
    const message = `${what} ${where} is damaged: ${error.message}${advice}`;
    throw new DamageError(message, { path: where, offset: error.offset ?? 0, cause: error });
  }
}
