/** Types of the Thrift compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). */
export const thriftType = {
  stop: 0,
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  map: 11,
  struct: 12,
} as const;

/** A structure: its fields by their ids. Fields that are undefined are omitted. */
export interface ThriftStruct {
  readonly [id: number]: ThriftValue | undefined;
}

interface ThriftInteger {
  readonly type: typeof thriftType.i32 | typeof thriftType.i64;
  readonly integer: number;
}

/** All elements of a list must have the same type. */
type ThriftValue = boolean | string | Uint8Array | ThriftInteger | readonly ThriftValue[] | ThriftStruct;

/** A 32-bit integer. */
export function i32(integer: number): ThriftInteger {
  return { type: thriftType.i32, integer };
}

/** A 64-bit integer. It must be a safe integer, as offsets and counts are. */
export function i64(integer: number): ThriftInteger {
  return { type: thriftType.i64, integer };
}

/** Encodes a structure in the Thrift compact protocol. */
export function writeThrift(struct: ThriftStruct): Uint8Array {
  const writer = new ThriftWriter();
  writer.struct(struct);
  return writer.bytes();
}

const encoder = new TextEncoder();

function isInteger(value: ThriftInteger | ThriftStruct): value is ThriftInteger {
  return 'integer' in value;
}

function isList(value: ThriftValue): value is readonly ThriftValue[] {
  return Array.isArray(value);
}

function typeOf(value: ThriftValue): number {
  if (typeof value === 'boolean') return value ? thriftType.true : thriftType.false;
  if (typeof value === 'string' || value instanceof Uint8Array) return thriftType.binary;
  if (isList(value)) return thriftType.list;
  return isInteger(value) ? value.type : thriftType.struct;
}

class ThriftWriter {
  #bytes = new Uint8Array(256);
  #length = 0;

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  struct(struct: ThriftStruct): void {
    let before = 0;
    // JavaScript enumerates integer keys in ascending order, as the protocol's id deltas need it.
    for (const [key, value] of Object.entries(struct)) {
      if (value === undefined) continue;
      const id = Number(key);
      const type = typeOf(value);
      if (id - before < 16) {
        this.#byte(((id - before) << 4) | type);
      } else {
        this.#byte(type);
        this.#varint(id * 2);
      }
      this.#value(value);
      before = id;
    }
    this.#byte(thriftType.stop);
  }

  #value(value: ThriftValue): void {
    // The value of a boolean field is in its type.
    if (typeof value === 'boolean') return;
    if (typeof value === 'string') this.#binary(encoder.encode(value));
    else if (value instanceof Uint8Array) this.#binary(value);
    else if (isList(value)) this.#list(value);
    else if (isInteger(value)) this.#varint(value.integer >= 0 ? value.integer * 2 : -value.integer * 2 - 1);
    else this.struct(value);
  }

  #list(elements: readonly ThriftValue[]): void {
    const type = elements.length === 0 ? thriftType.struct : typeOf(elements[0]!);
    this.#byte((Math.min(15, elements.length) << 4) | type);
    if (elements.length >= 15) this.#varint(elements.length);
    for (const element of elements) this.#value(element);
  }

  #binary(bytes: Uint8Array): void {
    this.#varint(bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #varint(value: number): void {
    while (value >= 128) {
      this.#byte((value % 128) | 128);
      value = Math.floor(value / 128);
    }
    this.#byte(value);
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  #reserve(extra: number): void {
    if (this.#length + extra <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + extra));
    grown.set(this.bytes());
    this.#bytes = grown;
  }
}
