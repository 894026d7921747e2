import { Footer, FileBlock } from 'apache-arrow/ipc/metadata/file';
import {
  BodyCompression,
  BufferRegion,
  DictionaryBatch,
  Message,
  RecordBatch,
} from 'apache-arrow/ipc/metadata/message';
import type { Schema } from 'apache-arrow';
import { Builder } from 'flatbuffers';

/** A message of an Arrow stream: its header and its body. */
export interface ArrowMessage {
  readonly header: Uint8Array;
  readonly body: Uint8Array;
}

/** The messages of a stream. */
export function messagesOf(stream: Uint8Array): ArrowMessage[] {
  const view = new DataView(stream.buffer, stream.byteOffset, stream.length);
  const messages: ArrowMessage[] = [];
  for (let at = 0; at < stream.length;) {
    const headerBytes = view.getUint32(at + 4, true);
    if (headerBytes === 0) break;
    const header = stream.slice(at + 8, at + 8 + headerBytes);
    const bodyAt = at + 8 + headerBytes;
    const bodyBytes = Message.decode(header).bodyLength;
    messages.push({ header, body: stream.slice(bodyAt, bodyAt + bodyBytes) });
    at = bodyAt + bodyBytes;
  }
  return messages;
}

/** A stream of these messages, in version 0.15 of the format or older. */
export function streamOf(messages: readonly ArrowMessage[], isOlder = false): Buffer {
  const parts = messages.flatMap(({ header, body }) => [prefix(header.length, isOlder), header, body]);
  return Buffer.concat([...parts, prefix(0, isOlder)]);
}

function prefix(headerBytes: number, isOlder: boolean): Buffer {
  const bytes = Buffer.alloc(isOlder ? 4 : 8, 255);
  bytes.writeUInt32LE(headerBytes, isOlder ? 0 : 4);
  return bytes;
}

/** A file of these messages, the first of which is the schema. */
export function fileOf(messages: readonly ArrowMessage[]): Buffer {
  const magic = Buffer.from('ARROW1\0\0');
  const parts: Uint8Array[] = [magic];
  let at = magic.length;
  const batches: FileBlock[] = [];
  const dictionaries: FileBlock[] = [];
  for (const { header, body } of messages) {
    const message = Message.decode(header);
    const block = new FileBlock(8 + header.length, body.length, at);
    if (message.isRecordBatch()) batches.push(block);
    if (message.isDictionaryBatch()) dictionaries.push(block);
    parts.push(prefix(header.length, false), header, body);
    at += 8 + header.length + body.length;
  }
  const schema = Message.decode(messages[0]!.header).header() as Schema;
  const footer = Footer.encode(new Footer(schema, 4, batches, dictionaries));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([...parts, prefix(0, false), footer, length, Buffer.from('ARROW1')]);
}

/**
 * A message with the same buffers, each compressed as the format says: after the length of its content, or after -1 and uncompressed if
 * compression makes it no smaller. (apache-arrow writes another length there when it compresses.)
 *
 * @param codec 0 for LZ4 frames, 1 for ZSTD
 */
export function compressedMessage(
  { header, body }: ArrowMessage,
  codec: 0 | 1,
  compress: (content: Uint8Array) => Uint8Array,
): ArrowMessage {
  const message = Message.decode(header);
  if (message.isSchema()) return { header, body };
  const content = message.header() as RecordBatch | DictionaryBatch;
  const batch = content instanceof DictionaryBatch ? content.data : content;
  const parts: Uint8Array[] = [];
  let at = 0;
  const regions = batch.buffers.map(({ offset, length }) => {
    if (length === 0) return new BufferRegion(at, 0);
    const plain = body.slice(offset, offset + length);
    const compressed = compress(plain);
    const isSmaller = compressed.length < plain.length;
    const stored = isSmaller ? compressed : plain;
    const size = Buffer.alloc(8);
    size.writeBigInt64LE(isSmaller ? BigInt(plain.length) : -1n);
    const padding = Buffer.alloc((8 - (stored.length % 8)) % 8);
    parts.push(size, stored, padding);
    const region = new BufferRegion(at, 8 + stored.length);
    at += 8 + stored.length + padding.length;
    return region;
  });
  const made = new RecordBatch(
    batch.length,
    batch.nodes,
    regions,
    new BodyCompression(codec),
    batch.variadicBufferCounts,
  );
  return messageOf(
    content instanceof DictionaryBatch ? new DictionaryBatch(made, content.id, content.isDelta) : made,
    Buffer.concat(parts),
  );
}

function messageOf(content: RecordBatch | DictionaryBatch, body: Uint8Array): ArrowMessage {
  return { header: padded(Message.encode(Message.from(content, body.length))), body };
}

function padded(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8)]);
}

/** A field of a type that apache-arrow does not write: the number of the type in Schema.fbs, and the integers of its table. */
export interface RawField {
  readonly name: string;
  readonly type: number;
  readonly parameters?: readonly number[];
  readonly children?: readonly RawField[];
}

/** A stream of one batch with the given fields and buffers. */
export function rawStream(
  fields: readonly RawField[],
  rows: number,
  nodes: readonly (readonly [length: number, nulls: number])[],
  buffers: readonly Uint8Array[],
  viewBuffers: readonly number[] = [],
): Buffer {
  const builder = new Builder();
  const vector = (offsets: readonly number[]): number => {
    builder.startVector(4, offsets.length, 4);
    for (const offset of offsets.toReversed()) builder.addOffset(offset);
    return builder.endVector();
  };
  const field = ({ name, type, parameters = [], children = [] }: RawField): number => {
    const held = vector(children.map(field));
    const text = builder.createString(name);
    builder.startObject(parameters.length);
    parameters.forEach((value, i) => builder.addFieldInt32(i, value, -1));
    const parts = builder.endObject();
    builder.startObject(7);
    builder.addFieldOffset(0, text, 0);
    builder.addFieldInt8(1, 1, 0);
    builder.addFieldInt8(2, type, 0);
    builder.addFieldOffset(3, parts, 0);
    builder.addFieldOffset(5, held, 0);
    return builder.endObject();
  };
  const list = vector(fields.map(field));
  builder.startObject(4);
  builder.addFieldOffset(1, list, 0);
  const schema = builder.endObject();
  builder.startObject(5);
  builder.addFieldInt16(0, 4, 0);
  builder.addFieldInt8(1, 1, 0);
  builder.addFieldOffset(2, schema, 0);
  builder.finish(builder.endObject());
  const regions: BufferRegion[] = [];
  const body = Buffer.concat(
    buffers.map((bytes, i) => {
      const at = buffers.slice(0, i).reduce((sum, { length }) => sum + 8 * Math.ceil(length / 8), 0);
      regions.push(new BufferRegion(at, bytes.length));
      return padded(bytes);
    }),
  );
  const batch = new RecordBatch(
    rows,
    nodes.map(([length, nullCount]) => ({ length, nullCount })),
    regions,
    null,
    [...viewBuffers],
  );
  return streamOf([
    { header: padded(builder.asUint8Array()), body: new Uint8Array(0) },
    messageOf(batch, body),
  ]);
}
