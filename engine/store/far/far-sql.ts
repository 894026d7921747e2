import { positionToInt64, type Position } from '../../terms/cursor.js';
import type { Field } from '../../terms/schema.js';
import { farTypes } from './native-writer.js';

/**
 * SQL is put together of keywords of ours, names that are quoted here, and literals that are written here. A literal of a text consists of
 * letters, digits, a few harmless signs and `\xHH`, so that no text can end it.
 */

/** A text, as the bytes of its UTF-8. */
export function textLiteral(bytes: Uint8Array): string {
  let literal = "'";
  for (const byte of bytes) {
    const isPlain = byte < 0x80 && /[A-Za-z0-9 _./:=,-]/.test(String.fromCharCode(byte));
    literal += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  }
  return `${literal}'`;
}

/** A 64-bit integer. The least one has no literal that every version reads as an integer. */
export function intLiteral(value: bigint): string {
  return `toInt64('${BigInt.asIntN(64, value)}')`;
}

/** A double, bit by bit: versions differ in how they read decimals. */
export function floatLiteral(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return `reinterpretAsFloat64(unhex('${bytes.toString('hex').toUpperCase()}'))`;
}

/** An unsigned integer of 64 bits. */
export function unsignedLiteral(value: bigint): string {
  return `toUInt64('${BigInt.asUintN(64, value)}')`;
}

/** The value of `_cursor` at a position. */
export function cursorLiteral(position: Position): string {
  return unsignedLiteral(positionToInt64(position));
}

/** A name of a database, a table or a column. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}

/**
 * The column of a field. Its name says the type too: a field that changes its type gets another column, and what was shipped before stays as
 * it is. No name of a field holds two underscores.
 */
export function columnOfField({ name, type }: Field): string {
  return `${name}__${type}`;
}

/** Type of that column. Every field may be null. */
export function typeOfField({ type }: Field): string {
  return `Nullable(${farTypes[type]})`;
}

/** The number that 16 hexadecimal digits are. */
export function numberOf(hex: string): bigint {
  return BigInt(`0x${hex}`);
}
