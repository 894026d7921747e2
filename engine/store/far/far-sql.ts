import { positionToInt64, type Position } from '../../terms/cursor.js';
import type { Field } from '../../terms/schema.js';
import { farTypes } from './native-writer.js';

/**
 * SQL statements are composed of fixed keywords, names quoted by `quotedName`, and literals made here. A text literal contains only
 * letters, digits, a few harmless characters and `\xHH` escapes, so no text can end it (SQL injection).
 */

/** A text literal of UTF-8 bytes. */
export function textLiteral(bytes: Uint8Array): string {
  let literal = "'";
  for (const byte of bytes) {
    const isPlain = byte < 0x80 && /[A-Za-z0-9 _./:=,-]/.test(String.fromCharCode(byte));
    literal += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  }
  return `${literal}'`;
}

/** A 64-bit integer literal. Written as a conversion, because the minimum has no literal that every version of ClickHouse reads as an integer. */
export function intLiteral(value: bigint): string {
  return `toInt64('${BigInt.asIntN(64, value)}')`;
}

/** A double literal, written as its bits, because versions of ClickHouse differ in how they parse decimals. */
export function floatLiteral(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return `reinterpretAsFloat64(unhex('${bytes.toString('hex').toUpperCase()}'))`;
}

/** An unsigned 64-bit integer literal. */
export function unsignedLiteral(value: bigint): string {
  return `toUInt64('${BigInt.asUintN(64, value)}')`;
}

/** The value of column `_cursor` at a position. */
export function cursorLiteral(position: Position): string {
  return unsignedLiteral(positionToInt64(position));
}

/** A quoted name of a database, table or column. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}

/**
 * The column name of a field. It includes the type: a field that changes its type gets a new column, and rows shipped before keep theirs.
 * It is unambiguous, because field names contain no double underscore.
 */
export function columnOfField({ name, type }: Field): string {
  return `${name}__${type}`;
}

/** Type of a field's column. Every field is nullable. */
export function typeOfField({ type }: Field): string {
  return `Nullable(${farTypes[type]})`;
}

/** The number given as hexadecimal digits. */
export function numberOf(hex: string): bigint {
  return BigInt(`0x${hex}`);
}
