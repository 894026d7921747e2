import { FormatError } from '../parquet/format.js';

/**
 * A table of the FlatBuffers format (https://flatbuffers.dev/internals/), whose fields are read by their numbers. Every
 * offset is checked, and a list can't claim more elements than there are bytes: methods throw `FormatError` for what lies
 * outside the bytes.
 */
export class FlatTable {
  readonly #vtable: number;
  readonly #vtableBytes: number;

  private constructor(
    private readonly view: DataView,
    private readonly at: number,
  ) {
    this.#vtable = at - this.#int32(at);
    this.#vtableBytes = this.#uint16(this.#vtable);
  }

  /** The root table of `bytes`. */
  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < 8) throw new FormatError('there are too few bytes for a table', 0);
    return new FlatTable(view, view.getUint32(0, true));
  }

  /** An 8-bit signed integer; `absent` where the field is absent. */
  byte(id: number, absent: number): number {
    const at = this.#field(id);
    return at === 0 ? absent : this.view.getInt8(this.#checked(at, 1));
  }

  /** A 16-bit signed integer; `absent` where the field is absent. */
  short(id: number, absent: number): number {
    const at = this.#field(id);
    return at === 0 ? absent : this.view.getInt16(this.#checked(at, 2), true);
  }

  /** A 32-bit signed integer; `absent` where the field is absent. */
  int(id: number, absent: number): number {
    const at = this.#field(id);
    return at === 0 ? absent : this.#int32(at);
  }

  /** A count or offset: a 64-bit integer that is not negative and that a double holds exactly; 0 where the field is absent. */
  size(id: number): number {
    const at = this.#field(id);
    return at === 0 ? 0 : this.#size(at);
  }

  /** A 64-bit integer that is an id; 0 where the field is absent. */
  long(id: number): bigint {
    const at = this.#field(id);
    return at === 0 ? 0n : this.view.getBigInt64(this.#checked(at, 8), true);
  }

  bool(id: number, absent: boolean): boolean {
    return this.byte(id, absent ? 1 : 0) !== 0;
  }

  /** Null where the field is absent. */
  table(id: number): FlatTable | null {
    const at = this.#field(id);
    return at === 0 ? null : new FlatTable(this.view, this.#target(at));
  }

  /** Empty where the field is absent. */
  text(id: number): string {
    const { at, length } = this.#vector(id, 1);
    return Buffer.from(this.view.buffer, this.view.byteOffset + at, length).toString('utf8');
  }

  /** A vector of tables; empty where the field is absent. */
  tables(id: number): FlatTable[] {
    const { at, length } = this.#vector(id, 4);
    return Array.from({ length }, (_, i) => new FlatTable(this.view, this.#target(at + 4 * i)));
  }

  /** A vector of 32-bit signed integers; empty where the field is absent. */
  ints(id: number): number[] {
    const { at, length } = this.#vector(id, 4);
    return Array.from({ length }, (_, i) => this.#int32(at + 4 * i));
  }

  /** A vector of structures of `words` 64-bit integers each, flattened. */
  sizes(id: number, words: number): number[] {
    const { at, length } = this.#vector(id, 8 * words);
    return Array.from({ length: length * words }, (_, i) => this.#size(at + 8 * i));
  }

  /** The offsets in a vector of the `Block`s of an Arrow footer. Two lengths follow each, which its message says too. */
  blockOffsets(id: number): number[] {
    const { at, length } = this.#vector(id, 24);
    return Array.from({ length }, (_, i) => this.#size(at + 24 * i));
  }

  /** Throws a `FormatError` at the offset of the table. */
  fail(message: string): never {
    throw new FormatError(message, this.at);
  }

  /** Offset of a field; 0 where it is absent. */
  #field(id: number): number {
    const slot = 4 + 2 * id;
    if (slot + 2 > this.#vtableBytes) return 0;
    const offset = this.#uint16(this.#vtable + slot);
    return offset === 0 ? 0 : this.at + offset;
  }

  #vector(id: number, elementBytes: number): { at: number; length: number } {
    const field = this.#field(id);
    if (field === 0) return { at: 0, length: 0 };
    const start = this.#target(field);
    const length = this.view.getUint32(this.#checked(start, 4), true);
    this.#checked(start + 4, length * elementBytes);
    return { at: start + 4, length };
  }

  #target(at: number): number {
    return at + this.view.getUint32(this.#checked(at, 4), true);
  }

  #size(at: number): number {
    const value = Number(this.view.getBigInt64(this.#checked(at, 8), true));
    if (value < 0 || !Number.isSafeInteger(value))
      throw new FormatError(`the size ${value} is not valid`, at);
    return value;
  }

  #int32(at: number): number {
    return this.view.getInt32(this.#checked(at, 4), true);
  }

  #uint16(at: number): number {
    return this.view.getUint16(this.#checked(at, 2), true);
  }

  #checked(at: number, length: number): number {
    if (at < 0 || at + length > this.view.byteLength)
      throw new FormatError('an offset points outside the bytes', Math.max(0, at));
    return at;
  }
}
