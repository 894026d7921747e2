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

const encoder = new TextEncoder();

/** Writes structures in the Thrift compact protocol. Fields of a structure must come in ascending order. */
export class ThriftWriter {
  #bytes = new Uint8Array(256);
  #length = 0;
  #lastId = 0;
  readonly #outerIds: number[] = [];

  /** The bytes written so far: a view that the next write may outdate. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  i32(id: number, value: number): void {
    this.#field(id, thriftType.i32);
    this.#zigzag(value);
  }

  /** A 64-bit field; offsets and counts are safe integers. */
  i64(id: number, value: number): void {
    this.#field(id, thriftType.i64);
    this.#zigzag(value);
  }

  bool(id: number, value: boolean): void {
    this.#field(id, value ? thriftType.true : thriftType.false);
  }

  binary(id: number, value: Uint8Array | string): void {
    this.#field(id, thriftType.binary);
    this.binaryElement(value);
  }

  list(id: number, elementType: number, length: number): void {
    this.#field(id, thriftType.list);
    if (length < 15) {
      this.#byte((length << 4) | elementType);
      return;
    }
    this.#byte(0xf0 | elementType);
    this.#varint(length);
  }

  i32Element(value: number): void {
    this.#zigzag(value);
  }

  binaryElement(value: Uint8Array | string): void {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value;
    this.#varint(bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Begins a structure: the field `id`, or, without one, an element of a list or the outermost one. */
  begin(id?: number): void {
    if (id !== undefined) this.#field(id, thriftType.struct);
    this.#outerIds.push(this.#lastId);
    this.#lastId = 0;
  }

  end(): void {
    this.#byte(thriftType.stop);
    this.#lastId = this.#outerIds.pop() ?? 0;
  }

  #field(id: number, type: number): void {
    const delta = id - this.#lastId;
    if (delta > 0 && delta < 16) {
      this.#byte((delta << 4) | type);
    } else {
      this.#byte(type);
      this.#zigzag(id);
    }
    this.#lastId = id;
  }

  #zigzag(value: number): void {
    this.#varint(value >= 0 ? value * 2 : -value * 2 - 1);
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
