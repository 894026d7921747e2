import { FormatError } from './format.js';
import { thriftType } from './thrift-writer.js';

/** Deeper nesting than any structure of Parquet has; keeps hostile bytes from exhausting the stack. */
const depthMax = 32;

/** What follows in a structure: a field's id and type. A boolean's value is its type. */
export interface ThriftField {
  readonly id: number;
  readonly type: number;
}

/** Reads structures in the Thrift compact protocol. Every step is bounded by the bytes; errors are `FormatError`s. */
export class ThriftReader {
  #at: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  /** Offset of the next byte. */
  get at(): number {
    return this.#at;
  }

  /** Calls `onField` for each field of the structure that begins here. `onField` reads or skips the value. */
  readStruct(onField: (field: ThriftField) => void): void {
    let id = 0;
    for (;;) {
      const header = this.#byte();
      const type = header & 15;
      if (type === thriftType.stop) return;
      const delta = header >>> 4;
      id = delta === 0 ? this.#integer() : id + delta;
      onField({ id, type });
    }
  }

  /** An integer field that a double holds exactly. */
  integer(field: ThriftField): number {
    const isInteger =
      field.type === thriftType.i32 || field.type === thriftType.i64 || field.type === thriftType.i16;
    if (!isInteger) this.fail(`field ${field.id} has type ${field.type}, expected an integer`);
    return this.#integer();
  }

  /** An integer field that counts or places something: never negative. */
  size(field: ThriftField): number {
    const value = this.integer(field);
    if (value < 0) this.fail(`field ${field.id} is ${value}, expected no negative number`);
    return value;
  }

  bool(field: ThriftField): boolean {
    if (field.type !== thriftType.true && field.type !== thriftType.false) {
      this.fail(`field ${field.id} has type ${field.type}, expected a boolean`);
    }
    return field.type === thriftType.true;
  }

  binary(field: ThriftField): Uint8Array {
    this.expect(field, thriftType.binary);
    return this.binaryElement();
  }

  binaryElement(): Uint8Array {
    const length = this.#varint();
    if (length > this.#bytes.length - this.#at) this.fail(`a string of ${length} bytes does not fit`);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  integerElement(): number {
    return this.#integer();
  }

  /** Reads a list's header and returns its length; the elements follow. */
  list(field: ThriftField, elementType: number): number {
    this.expect(field, thriftType.list);
    const header = this.#byte();
    if ((header & 15) !== elementType) this.fail(`a list of type ${header & 15}, expected ${elementType}`);
    return this.#listLength(header);
  }

  expect(field: ThriftField, type: number): void {
    if (field.type !== type) this.fail(`field ${field.id} has type ${field.type}, expected ${type}`);
  }

  /** Passes over the value of a field that is not known. */
  skip(field: ThriftField): void {
    this.#skipValue(field.type, 0);
  }

  fail(message: string): never {
    throw new FormatError(message, this.#at);
  }

  #skipValue(type: number, depth: number): void {
    if (depth > depthMax) this.fail('structures are nested too deeply');
    switch (type) {
      case thriftType.true:
      case thriftType.false:
        return;
      case thriftType.byte:
        this.#byte();
        return;
      case thriftType.i16:
      case thriftType.i32:
      case thriftType.i64:
        while (this.#byte() >= 128);
        return;
      case thriftType.double:
        for (let i = 0; i < 8; i++) this.#byte();
        return;
      case thriftType.binary:
        this.binaryElement();
        return;
      case thriftType.list:
      case thriftType.set: {
        const header = this.#byte();
        const length = this.#listLength(header);
        for (let i = 0; i < length; i++) this.#skipElement(header & 15, depth + 1);
        return;
      }
      case thriftType.struct:
        this.readStruct((field) => this.#skipValue(field.type, depth + 1));
        return;
      default:
        this.fail(`unknown type ${type}`);
    }
  }

  #skipElement(type: number, depth: number): void {
    // A boolean in a list takes a byte; as a field it is its own type.
    if (type === thriftType.true || type === thriftType.false) this.#byte();
    else this.#skipValue(type, depth);
  }

  #listLength(header: number): number {
    const length = header >>> 4 === 15 ? this.#varint() : header >>> 4;
    // Each element takes at least a byte, so a longer list can't be there.
    if (length > this.#bytes.length - this.#at) this.fail(`a list of ${length} elements does not fit`);
    return length;
  }

  #integer(): number {
    const zigzag = this.#varint();
    return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
  }

  #varint(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.#byte();
      value += (byte & 127) * factor;
      if (value > Number.MAX_SAFE_INTEGER) this.fail('an integer is too large');
      if (byte < 128) return value;
      factor *= 128;
    }
  }

  #byte(): number {
    if (this.#at >= this.#bytes.length) this.fail('the bytes end within a structure');
    return this.#bytes[this.#at++]!;
  }
}
