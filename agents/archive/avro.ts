import { setImmediate } from 'node:timers/promises';
import { inflateRawSync } from 'node:zlib';

/** Limits on the nesting of a schema, and on the bytes of a block once it is unpacked: writers begin a new one long before. */
const depthMax = 64;
const blockBytesMax = 64 * 1024 * 1024;

/** After so many records, others get their turn. */
const pauseRecords = 1000;

/** A type of an Avro schema: a name, a list of alternatives, or an object. */
type AvroType = string | readonly AvroType[] | AvroObject;

interface AvroObject {
  readonly type: AvroType;
  readonly name?: string;
  readonly fields?: readonly { readonly name: string; readonly type: AvroType }[];
  readonly items?: AvroType;
  readonly values?: AvroType;
  readonly size?: number;
  readonly symbols?: readonly string[];
}

export type AvroRecord = Readonly<Record<string, unknown>>;

/**
 * Reads an Avro object container file (https://avro.apache.org/docs/1.11.1/specification/#object-container-files). `take` gets each record
 * with the properties in the file's header. Whole numbers beyond those that a number holds exactly are bigints. Holds one block at a time, and
 * takes time in proportion to the unpacked bytes. Rejects with an `Error` for anything else than such a file.
 */
export async function readAvro(
  bytes: Uint8Array,
  take: (record: AvroRecord, properties: Readonly<Record<string, string>>) => void,
): Promise<void> {
  const file = new AvroReader(bytes, new Map());
  if (file.take(4).toString('latin1') !== 'Obj\u0001') throw new Error('it is no Avro file');
  const header = file.value({ type: 'map', values: 'bytes' }, 0) as Record<string, Buffer>;
  const properties = Object.fromEntries(
    Object.entries(header).map(([key, value]) => [key, value.toString()]),
  );
  const type = JSON.parse(properties['avro.schema'] ?? 'null') as AvroType;
  const { 'avro.codec': codec = 'null' } = properties;
  if (codec !== 'null' && codec !== 'deflate') throw new Error(`its codec ${codec} is not supported`);
  const names = new Map<string, AvroType>();
  const sync = file.take(16);
  while (file.left > 0) {
    const count = file.count();
    const packed = file.take(file.count());
    if (!file.take(16).equals(sync)) throw new Error('a block does not end where it should');
    const block = codec === 'null' ? packed : inflateRawSync(packed, { maxOutputLength: blockBytesMax });
    const reader = new AvroReader(block, names);
    for (let i = 0; i < count; i++) {
      if (i % pauseRecords === 0) await setImmediate();
      take(reader.value(type, 0) as AvroRecord, properties);
    }
  }
}

class AvroReader {
  private at = 0;
  private readonly bytes: Buffer;
  /** Items may take no bytes, so their number is bounded on its own. */
  private itemsLeft: number;

  /** @param names the named types that have been met */
  constructor(
    bytes: Uint8Array,
    private readonly names: Map<string, AvroType>,
  ) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.itemsLeft = bytes.length + 1;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  take(length: number): Buffer {
    if (length > this.left) throw new Error(`it ends ${length - this.left} bytes too early`);
    return this.bytes.subarray(this.at, (this.at += length));
  }

  /** A number of bytes or items. */
  count(): number {
    const count = this.long();
    if (typeof count !== 'number' || count < 0) throw new Error(`a length is ${count}`);
    return count;
  }

  private long(): number | bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0]!;
      value |= BigInt(byte & 127) << shift;
      if (byte > 127) continue;
      const signed = (value >> 1n) ^ -(value & 1n);
      return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed;
    }
    throw new Error('a number has more than ten bytes');
  }

  /** Reads a value. Objects for records and maps, arrays for arrays, buffers for bytes. */
  value(type: AvroType, depth: number): unknown {
    if (--this.itemsLeft < -16 * this.bytes.length)
      throw new Error('it has more values than its bytes can hold');
    if (depth > depthMax) throw new Error(`its schema is nested more than ${depthMax} deep`);
    if (typeof type === 'string') return this.plain(type, depth);
    if (Array.isArray(type)) {
      const chosen = (type as readonly AvroType[])[this.count()];
      if (chosen === undefined) throw new Error('a value is of no alternative of its type');
      return this.value(chosen, depth + 1);
    }
    return this.complex(type as AvroObject, depth);
  }

  private complex(type: AvroObject, depth: number): unknown {
    const { name, fields = [], items = 'null', values = 'null', size = 0, symbols = [] } = type;
    if (name !== undefined) this.names.set(name, type);
    switch (type.type) {
      case 'record':
        return Object.fromEntries(fields.map((field) => [field.name, this.value(field.type, depth + 1)]));
      case 'enum':
        return symbols[this.count()];
      case 'fixed':
        return this.take(size);
      case 'array':
        return this.blocks(() => this.value(items, depth + 1));
      case 'map':
        return Object.fromEntries(
          this.blocks(() => [this.take(this.count()).toString(), this.value(values, depth + 1)] as const),
        );
      default:
        return this.value(type.type, depth + 1);
    }
  }

  private blocks<T>(read: () => T): T[] {
    const all: T[] = [];
    for (;;) {
      const count = Number(this.long());
      if (count === 0) return all;
      // A negative count is followed by the bytes of the block.
      if (count < 0) this.long();
      for (let i = 0; i < Math.abs(count); i++) all.push(read());
    }
  }

  private plain(type: string, depth: number): unknown {
    switch (type) {
      case 'null':
        return null;
      case 'boolean':
        return this.take(1)[0] === 1;
      case 'int':
      case 'long':
        return this.long();
      case 'float':
        return this.take(4).readFloatLE();
      case 'double':
        return this.take(8).readDoubleLE();
      case 'bytes':
        return this.take(this.count());
      case 'string':
        return this.take(this.count()).toString();
      default: {
        const named = this.names.get(type);
        if (named === undefined) throw new Error(`its schema has the unknown type ${type}`);
        return this.value(named, depth + 1);
      }
    }
  }
}
