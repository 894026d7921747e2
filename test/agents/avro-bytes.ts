import { deflateRawSync } from 'node:zlib';

type AvroType = string | readonly AvroType[] | { readonly type: AvroType; readonly [key: string]: unknown };

/** The bytes of an Avro object container file, after the specification: each block has one record. */
export function avroBytes(
  type: AvroType,
  records: readonly unknown[],
  { codec = 'null', properties = {} }: { codec?: string; properties?: Record<string, string> } = {},
): Buffer {
  const sync = Buffer.alloc(16, 7);
  const header = { 'avro.schema': JSON.stringify(type), 'avro.codec': codec, ...properties };
  const blocks = records.flatMap((record) => {
    const bytes = encoded(type, record);
    const block = codec === 'deflate' ? deflateRawSync(bytes) : bytes;
    return [long(1), long(block.length), block, sync];
  });
  const head = encoded({ type: 'map', values: 'string' }, header);
  return Buffer.concat([Buffer.from('Obj\u0001', 'latin1'), head, sync, ...blocks]);
}

function long(value: number | bigint): Buffer {
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
  const bytes: number[] = [];
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

function encoded(type: AvroType, value: unknown): Buffer {
  if (Array.isArray(type)) {
    const at = type.findIndex((each) => (each === 'null') === (value === null || value === undefined));
    return Buffer.concat([long(at), encoded(type[at] as AvroType, value)]);
  }
  if (typeof type === 'string') return plain(type, value);
  const { type: kind, fields, items, values } = type as unknown as Record<string, never>;
  const record = value as Record<string, unknown>;
  switch (kind) {
    case 'record': {
      const own = fields as readonly { name: string; type: AvroType }[];
      return Buffer.concat(own.map((field) => encoded(field.type, record[field.name])));
    }
    case 'array': {
      const list = value as readonly unknown[];
      // A negative count is followed by the bytes of the block.
      const parts = Buffer.concat(list.map((item) => encoded(items, item)));
      return list.length === 0
        ? long(0)
        : Buffer.concat([long(-list.length), long(parts.length), parts, long(0)]);
    }
    case 'map': {
      const entries = Object.entries(record);
      const parts = entries.flatMap(([key, each]) => [plain('string', key), encoded(values, each)]);
      return Buffer.concat(entries.length === 0 ? [long(0)] : [long(entries.length), ...parts, long(0)]);
    }
    default:
      return encoded(kind, value);
  }
}

function plain(type: string, value: unknown): Buffer {
  if (type === 'null') return Buffer.alloc(0);
  if (type === 'boolean') return Buffer.from([value === true ? 1 : 0]);
  if (type === 'int' || type === 'long') return long(value as number);
  const bytes = Buffer.from(value as string);
  return Buffer.concat([long(bytes.length), bytes]);
}
