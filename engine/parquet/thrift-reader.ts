import { FormatError } from './format.js';
import { thriftType } from './thrift-writer.js';

/** More than the nesting of any Parquet structure. It keeps malicious bytes from exhausting the stack. */
const depthMax = 32;

/** Number of fields that are allocated at first; enough for most structures. */
const fieldsUsual = 14;
/** Greater than the field ids of all Parquet structures. Fields with a greater id are ignored. */
const idMax = 63;

const decoder = new TextDecoder('utf-8', { fatal: true });

type ThriftValue = number | boolean | Uint8Array | ThriftFields | readonly ThriftValue[];

/** Bounds that keep a long structure of another program from taking more memory than its bytes. */
export interface ThriftBounds {
  /** The most structures and list elements in the outermost structure, not counting those that are handed over. */
  readonly valuesMax: number;
  /**
   * Fields of the outermost structure that are lists of structures. Each element is handed over with its index and the length of the list
   * when it is read, and is not kept.
   */
  readonly handedOver: ReadonlyMap<number, HandOver>;
}

interface HandOver {
  /** The most structures and list elements in one element. Called before the first element is read. */
  valuesMax(): number;
  receive(element: ThriftFields, index: number, length: number): void;
}

const unbounded: ThriftBounds = { valuesMax: Infinity, handedOver: new Map() };

/**
 * Reads the structure in the Thrift compact protocol that begins at offset `at`, and returns its fields and the offset after it. Never
 * reads beyond the bytes. Throws `FormatError` where it is malformed; so do the methods of `ThriftFields`.
 */
export function readThrift(
  bytes: Uint8Array,
  at = 0,
  bounds: ThriftBounds = unbounded,
): { readonly fields: ThriftFields; readonly end: number } {
  const parser = new Parser(bytes, at, bounds);
  const fields = parser.struct(0);
  return { fields, end: parser.at };
}

/**
 * The fields of a structure by their ids. Each method asks for a field of a certain type, and throws `FormatError` where it has another.
 */
export class ThriftFields {
  /** @param at offset of the structure, for error messages */
  constructor(
    private readonly values: readonly (ThriftValue | undefined)[],
    private readonly at: number,
  ) {}

  /** An integer that a double represents exactly. */
  integer(id: number): number {
    const value = this.values[id];
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : this.#failAt(id, 'an integer');
  }

  /** A count or an offset, which is never negative. If the field is missing, the result is `absent`; without `absent` that is an error. */
  size(id: number, absent?: number): number {
    if (absent !== undefined && this.values[id] === undefined) return absent;
    const value = this.integer(id);
    return value < 0 ? this.#failAt(id, 'an integer of at least 0') : value;
  }

  /** A boolean. If the field is missing, the result is `absent`; without `absent` that is an error. */
  bool(id: number, absent?: boolean): boolean {
    const value = this.values[id] ?? absent;
    return typeof value === 'boolean' ? value : this.#failAt(id, 'a boolean');
  }

  /** Null where the field is missing. */
  binary(id: number): Uint8Array | null {
    const value = this.values[id] ?? null;
    return value === null || value instanceof Uint8Array ? value : this.#failAt(id, 'a string');
  }

  /** A string in UTF-8; empty where the field is missing. */
  text(id: number): string {
    try {
      return decoder.decode(this.binary(id) ?? undefined);
    } catch {
      return this.fail('a name is not UTF-8');
    }
  }

  /** Whether the structure has the field. */
  has(id: number): boolean {
    return this.values[id] !== undefined;
  }

  /** A structure. The field must be there. */
  struct(id: number): ThriftFields {
    const value = this.values[id];
    return value instanceof ThriftFields ? value : this.#failAt(id, 'a structure');
  }

  /** The elements of a list of structures; empty where the field is missing. */
  structs(id: number): readonly ThriftFields[] {
    const list = this.#list(id);
    return list.every((value) => value instanceof ThriftFields) ? list : this.#failAt(id, 'structures');
  }

  /** The elements of a list of integers; empty where the field is missing. */
  integers(id: number): readonly number[] {
    const list = this.#list(id);
    return list.every((value) => typeof value === 'number') ? list : this.#failAt(id, 'integers');
  }

  /** Throws a `FormatError` with the offset of the structure. */
  fail(message: string): never {
    throw new FormatError(message, this.at);
  }

  #list(id: number): readonly ThriftValue[] {
    const value = this.values[id] ?? [];
    return isList(value) ? value : this.#failAt(id, 'a list');
  }

  #failAt(id: number, expected: string): never {
    return this.fail(`field ${id} is missing or is not ${expected}`);
  }
}

function isList(value: ThriftValue): value is readonly ThriftValue[] {
  return Array.isArray(value);
}

class Parser {
  readonly #bytes: Uint8Array;
  readonly #bounds: ThriftBounds;
  /** How many more structures and list elements may be read. */
  #rest: number;
  /** Offset of the next byte. */
  at: number;

  constructor(bytes: Uint8Array, at: number, bounds: ThriftBounds) {
    this.#bytes = bytes;
    this.#bounds = bounds;
    this.#rest = bounds.valuesMax;
    this.at = at;
  }

  struct(depth: number): ThriftFields {
    if (depth > depthMax) this.#fail('structures are nested too deeply');
    this.#count(1);
    const start = this.at;
    const values = new Array<ThriftValue | undefined>(fieldsUsual);
    let id = 0;
    for (;;) {
      const header = this.#byte();
      const type = header & 15;
      if (type === thriftType.stop) return new ThriftFields(values, start);
      id = header >>> 4 === 0 ? this.#integer() : id + (header >>> 4);
      const handOver = depth === 0 ? this.#bounds.handedOver.get(id) : undefined;
      if (handOver !== undefined && type === thriftType.list) {
        this.#handOver(handOver);
        continue;
      }
      const isBoolean = type === thriftType.true || type === thriftType.false;
      const value = isBoolean ? type === thriftType.true : this.#value(type, depth);
      if (id > 0 && id <= idMax) values[id] = value;
    }
  }

  #value(type: number, depth: number): ThriftValue {
    switch (type) {
      case thriftType.true:
      case thriftType.false:
        // A boolean in a list takes one byte. As a field, its value is in the type.
        return this.#byte() === thriftType.true;
      case thriftType.byte:
        return this.#byte();
      case thriftType.i16:
      case thriftType.i32:
      case thriftType.i64:
        return this.#integer();
      case thriftType.double:
        return this.#take(8);
      case thriftType.binary:
        return this.#take(this.#varint());
      case thriftType.list:
      case thriftType.set:
        return this.#list(depth + 1);
      case thriftType.struct:
        return this.struct(depth + 1);
      default:
        return this.#fail(`unknown type ${type}`);
    }
  }

  #list(depth: number): ThriftValue[] {
    if (depth > depthMax) this.#fail('lists are nested too deeply');
    const { type, length } = this.#listHeader();
    this.#count(length);
    const values: ThriftValue[] = [];
    for (let i = 0; i < length; i++) values.push(this.#value(type, depth));
    return values;
  }

  #handOver({ valuesMax, receive }: HandOver): void {
    const { type, length } = this.#listHeader();
    if (type !== thriftType.struct && length > 0) this.#fail('a list has elements that are not structures');
    const rest = this.#rest;
    const restOfEach = valuesMax();
    for (let i = 0; i < length; i++) {
      this.#rest = restOfEach;
      receive(this.struct(1), i, length);
    }
    this.#rest = rest;
  }

  #listHeader(): { readonly type: number; readonly length: number } {
    const header = this.#byte();
    const length = header >>> 4 === 15 ? this.#varint() : header >>> 4;
    // Each element takes at least one byte, so a longer list is malformed.
    if (length > this.#bytes.length - this.at)
      this.#fail(`a list of ${length} elements is longer than the data`);
    return { type: header & 15, length };
  }

  #count(values: number): void {
    this.#rest -= values;
    if (this.#rest < 0) this.#fail('a structure has more values than can be read');
  }

  #integer(): number {
    const zigzag = this.#varint();
    if (zigzag <= 0x7fff_ffff) return (zigzag >>> 1) ^ -(zigzag & 1);
    return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
  }

  /** Inexact above 2^53; `ThriftFields.integer` rejects such values. */
  #varint(): number {
    let value = this.#byte();
    if (value < 128) return value;
    value &= 127;
    for (let factor = 128; factor <= 2 ** 63; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    return this.#fail('an integer is too long');
  }

  #take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.at)
      this.#fail(`a string of ${length} bytes is longer than the data`);
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }

  #byte(): number {
    const byte = this.#bytes[this.at++];
    return byte ?? this.#fail('the data ends in the middle of a structure');
  }

  #fail(message: string): never {
    throw new FormatError(message, this.at);
  }
}
