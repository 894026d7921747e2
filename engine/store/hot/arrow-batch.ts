import type { MessageHeader } from 'apache-arrow/enum';
import type {
  BufferRegion,
  FieldNode,
  Message,
  RecordBatch as ArrowRecordBatch,
} from 'apache-arrow/ipc/metadata/message';
import type { Schema as ArrowSchema } from 'apache-arrow/schema';
import type { DataType } from 'apache-arrow/type';
import { assert, DamageError, LogstrataError } from '../../core/errors.js';
import { plainColumn } from '../../columns/take.js';
import type { Column, PlainColumn, RecordBatch, Validity } from '../../columns/column.js';
import { copyBytes, copyShifted } from '../../kernels/copy.js';
import { hotBatchBytesMax } from '../../core/limits.js';
import { typeFacts, type Field, type FieldType, type Schema } from '../../core/schema.js';
import { arrowModules } from './arrow-modules.js';
import {
  messagePrefixBytes,
  metadataBytesAt,
  sealKey,
  sealMessage,
  unfinishedSeal,
} from './sealed-message.js';
import { heap, type Arena } from '../../core/arena.js';
import { bitmapBytes, countRange } from '../../kernels/bitmap.js';

/** Name of the column of positions, which precedes the fields in files. */
export const cursorColumnName = '_cursor';

/** Key of our metadata of a batch, which is JSON. */
const metaKey = 'logstrata:batch';
const formatKey = 'logstrata:format';
const formatVersion = '1';

// Columns are written in their memory layout. Arrow files, like all our formats, are little-endian.
const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

function arrowType(type: FieldType): DataType {
  const { types } = arrowModules();
  const { arrow } = typeFacts[type];
  return arrow === 'TimestampMillisecond' ? new types[arrow]('UTC') : new types[arrow]();
}

function arrowSchema(schema: Schema, withCursor: boolean): ArrowSchema {
  const { schemas } = arrowModules();
  const fields = schema.fields.map((field) => new schemas.Field(field.name, arrowType(field.type), true));
  if (withCursor) fields.unshift(new schemas.Field(cursorColumnName, arrowType('int'), false));
  return new schemas.Schema(fields, new Map([[formatKey, formatVersion]]));
}

/** Encodes the sealed schema message that begins a hot file. */
export function encodeSchemaMessage(schema: Schema): Uint8Array {
  if (!isLittleEndian) {
    throw new LogstrataError('unsupported', 'hot files can only be written on little-endian machines');
  }
  return layOut(0, arrowSchema(schema, true), arrowModules().enums.MessageHeader.Schema, new Map(), 0);
}

/** Checks that `message` is the schema message of a hot file with these fields. Throws `damaged` or `unsupported`. */
export function checkSchemaMessage(message: Uint8Array, schema: Schema): void {
  const decoded = decodeMessage(message);
  if (!decoded.isSchema()) throw new DamageError('it does not begin with a schema', {});
  const found = decoded.header();
  const version = found.metadata.get(formatKey);
  if (version !== formatVersion) {
    throw new LogstrataError(
      'unsupported',
      `it has format version ${version}, but this version knows ${formatVersion}`,
    );
  }
  const expected = arrowSchema(schema, true);
  const describe = (fields: ArrowSchema['fields']): string =>
    fields.map(({ name, type }) => `${name} ${String(type)}`).join(', ');
  if (describe(found.fields) !== describe(expected.fields)) {
    throw new DamageError(
      `it has the fields ${describe(found.fields)}, not ${describe(expected.fields)}`,
      {},
    );
  }
}

/** A buffer of the message body, and how to fill it. */
interface BodyPart {
  readonly position: number;
  readonly lengthBytes: number;
  readonly write: (target: Uint8Array, position: number) => void;
}

/** Lays out the buffers of a batch in the message body. */
class BodyLayout {
  private readonly arrow = arrowModules().messages;
  readonly nodes: FieldNode[] = [];
  readonly buffers: BufferRegion[] = [];
  readonly parts: BodyPart[] = [];
  sizeBytes = 0;

  node(rows: number, validity: Validity): void {
    this.nodes.push(
      new this.arrow.FieldNode(rows, validity === null ? 0 : rows - countRange(validity, 0, rows)),
    );
    const bitmap = validity?.subarray(0, (rows + 7) >> 3);
    if (bitmap === undefined) this.buffer(0, () => {});
    else this.bytes(bitmap);
  }

  view(values: ArrayBufferView): void {
    this.bytes(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }

  bytes(bytes: Uint8Array): void {
    const { length } = bytes;
    this.buffer(length, (target, position) => copyBytes(bytes, 0, length, target, position));
  }

  buffer(lengthBytes: number, write: BodyPart['write']): void {
    this.buffers.push(new this.arrow.BufferRegion(this.sizeBytes, lengthBytes));
    this.parts.push({ position: this.sizeBytes, lengthBytes, write });
    this.sizeBytes += (lengthBytes + 7) & ~7;
    assert(this.sizeBytes >= 0, 'the size of a batch must not overflow');
  }
}

function addColumn(layout: BodyLayout, column: PlainColumn, type: FieldType): void {
  const rows = column.length;
  layout.node(rows, column.validity);
  switch (column.kind) {
    case 'int64':
    case 'float64':
      if (typeFacts[type].isBits === true) {
        const bits = new Uint8Array((rows + 7) >> 3);
        for (let row = 0; row < rows; row++) if (column.values[row] !== 0n) bits[row >> 3]! |= 1 << (row & 7);
        layout.view(bits);
        return;
      }
      layout.view(column.values.subarray(0, rows));
      return;
    case 'bytes': {
      const first = column.offsets[0]!;
      const last = column.offsets[rows]!;
      layout.buffer((rows + 1) * 4, (target, position) => {
        const offsets = new Uint32Array(target.buffer, target.byteOffset + position, rows + 1);
        copyShifted(column.offsets, 0, rows + 1, -first, offsets, 0);
      });
      layout.view(column.bytes.subarray(first, last));
    }
  }
}

/** An upper bound of the batch's size as a message, computed before anything is laid out or decoded from dictionaries. */
function estimateBytes(batch: RecordBatch, metaJson: string): number {
  let bytes = 1024 + 4 * metaJson.length + 9 * batch.length;
  for (const column of batch.columns) bytes += 512 + column.length * 9 + stringBytes(column);
  return bytes;
}

function stringBytes(column: Column): number {
  if (column.kind === 'bytes') return column.offsets[column.length]! - column.offsets[0]!;
  if (column.kind !== 'dictionary' || column.values.kind !== 'bytes') return 0;
  const { offsets, length } = column.values;
  let bytes = 0;
  for (let row = 0; row < column.length; row++) {
    const code = column.codes[row]!;
    // The code of a null row may be out of range.
    if (code < length) bytes += offsets[code + 1]! - offsets[code]!;
  }
  return bytes;
}

/**
 * Encodes a batch as one sealed message of an Arrow IPC stream.
 *
 * @param cursors the `_cursor` column, or null to leave it out
 * @param metaJson stored in the message's metadata
 * @param offset the message's offset in its file
 * @param arena allocates the message's memory, 8-byte aligned
 * @throws LogstrataError `limit` if the message would be too large
 */
export function encodeBatchMessage(
  { fields }: Schema,
  batch: RecordBatch,
  cursors: BigInt64Array | null,
  metaJson: string,
  offset: number,
  arena: Arena = heap,
): Uint8Array {
  const estimated = estimateBytes(batch, metaJson);
  if (estimated > hotBatchBytesMax) {
    throw new LogstrataError(
      'limit',
      `a batch of ${batch.length} records has about ${estimated} bytes, more than the maximum of ${hotBatchBytesMax} per commit`,
    );
  }
  const layout = new BodyLayout();
  if (cursors !== null) {
    layout.node(batch.length, null);
    layout.view(cursors);
  }
  batch.columns.forEach((column, i) => addColumn(layout, plainColumn(column), fields[i]!.type));
  const { enums, messages } = arrowModules();
  const header = new messages.RecordBatch(batch.length, layout.nodes, layout.buffers, null);
  const metadata = new Map([[metaKey, metaJson]]);
  const { sizeBytes, parts } = layout;
  return layOut(sizeBytes, header, enums.MessageHeader.RecordBatch, metadata, offset, parts, arena);
}

function layOut(
  bodyBytes: number,
  header: ArrowSchema | ArrowRecordBatch,
  headerType: MessageHeader,
  metadata: Map<string, string>,
  offset: number,
  parts: readonly BodyPart[] = [],
  arena: Arena = heap,
): Uint8Array {
  const encoded = encodeMetadata(bodyBytes, header, headerType, metadata, unfinishedSeal(offset));
  const headBytes = (messagePrefixBytes + encoded.length + 7) & ~7;
  const message = arena(headBytes + bodyBytes);
  const view = new DataView(message.buffer, message.byteOffset);
  view.setInt32(0, -1, true);
  view.setInt32(4, headBytes - messagePrefixBytes, true);
  message.set(encoded, messagePrefixBytes);
  message.fill(0, messagePrefixBytes + encoded.length, headBytes);
  for (const { position, lengthBytes, write } of parts) {
    const end = headBytes + position + lengthBytes;
    write(message, headBytes + position);
    message.fill(0, end, (end + 7) & ~7);
  }
  sealMessage(message);
  return message;
}

function encodeMetadata(
  bodyBytes: number,
  header: ArrowSchema | ArrowRecordBatch,
  headerType: MessageHeader,
  metadata: ReadonlyMap<string, string>,
  seal: string,
): Uint8Array {
  // Flatbuffers are built back to front, so the last entry comes first in the bytes. The seal must precede any text that others chose.
  const entries = new Map([...metadata, [sealKey, seal]]);
  const { enums, messages } = arrowModules();
  const message = new messages.Message(bodyBytes, enums.MetadataVersion.V5, headerType, header, entries);
  return messages.Message.encode(message);
}

function decodeMessage(message: Uint8Array): Message {
  const metadataBytes = metadataBytesAt(message, 0);
  assert(metadataBytes > 0, 'only sealed messages are decoded');
  return arrowModules().messages.Message.decode(
    message.subarray(messagePrefixBytes, messagePrefixBytes + metadataBytes),
  );
}

/** The content of a batch message. */
export interface DecodedBatch {
  readonly batch: RecordBatch;
  /** The `_cursor` column; null if the message has none. */
  readonly cursors: BigInt64Array | null;
  readonly metaJson: string;
}

/**
 * Decodes a sealed batch message whose seal was checked. Columns are views of `message`, which must begin at an 8-byte aligned offset;
 * validity bitmaps are copies. Throws `damaged` if it is not a batch of `schema`.
 */
export function decodeBatchMessage(message: Uint8Array, schema: Schema, withCursor: boolean): DecodedBatch {
  assert(message.byteOffset % 8 === 0, 'a message must be aligned to 8 bytes');
  const decoded = decodeMessage(message);
  if (!decoded.isRecordBatch()) throw new DamageError('it is not a batch of records', {});
  const header = decoded.header();
  const body = message.subarray(messagePrefixBytes + metadataBytesAt(message, 0));
  const reader = new BodyReader(header, body);
  const cursors = withCursor ? reader.cursors() : null;
  const columns = schema.fields.map((field) => reader.column(field));
  reader.finish();
  return {
    batch: { length: header.length, columns },
    cursors,
    metaJson: decoded.metadata.get(metaKey) ?? '',
  };
}

/** Reads the buffers of a batch in order, and checks each against what its column needs. */
class BodyReader {
  #node = 0;
  #buffer = 0;

  constructor(
    private readonly header: ArrowRecordBatch,
    private readonly body: Uint8Array,
  ) {}

  cursors(): BigInt64Array {
    this.#validity(cursorColumnName);
    return this.#int64s(cursorColumnName);
  }

  column(field: Field): PlainColumn {
    const length = this.header.length;
    const validity = this.#validity(field.name);
    const { column, isBits } = typeFacts[field.type];
    switch (column) {
      case 'int64': {
        const values = isBits === true ? this.#bits(field.name) : this.#int64s(field.name);
        return { kind: 'int64', length, values, validity };
      }
      case 'float64': {
        const bytes = this.#take(field.name, length * 8);
        const values = new Float64Array(bytes.buffer, bytes.byteOffset, length);
        return { kind: 'float64', length, values, validity };
      }
      case 'bytes': {
        const bytes = this.#take(field.name, (length + 1) * 4);
        const offsets = new Uint32Array(bytes.buffer, bytes.byteOffset, length + 1);
        const values = this.#take(field.name, offsets[length]!);
        if (!ascends(offsets)) throw new DamageError(`column ${field.name} has offsets out of order`, {});
        return { kind: 'bytes', length, offsets, bytes: values, validity };
      }
    }
  }

  finish(): void {
    const { nodes, buffers } = this.header;
    if (this.#node !== nodes.length || this.#buffer !== buffers.length) {
      throw new DamageError(`it has ${nodes.length} columns, not ${this.#node}`, {});
    }
  }

  #int64s(name: string): BigInt64Array {
    const bytes = this.#take(name, this.header.length * 8);
    return new BigInt64Array(bytes.buffer, bytes.byteOffset, this.header.length);
  }

  #bits(name: string): BigInt64Array {
    const rows = this.header.length;
    const bits = this.#take(name, (rows + 7) >> 3);
    return BigInt64Array.from({ length: rows }, (_, row) => BigInt((bits[row >> 3]! >> (row & 7)) & 1));
  }

  #validity(name: string): Validity {
    const rows = this.header.length;
    const node = this.header.nodes[this.#node++];
    if (node === undefined || node.length !== rows) {
      throw new DamageError(`column ${name} is missing or has another number of rows`, {});
    }
    if (node.nullCount === 0) {
      this.#buffer++;
      return null;
    }
    const validity = new Uint8Array(bitmapBytes(rows));
    validity.set(this.#take(name, (rows + 7) >> 3));
    if (rows % 8 !== 0) validity[rows >> 3]! &= (1 << (rows % 8)) - 1;
    return validity;
  }

  #take(name: string, lengthBytes: number): Uint8Array {
    const region = this.header.buffers[this.#buffer++];
    if (
      region === undefined ||
      region.offset % 8 !== 0 ||
      region.length < lengthBytes ||
      region.offset + region.length > this.body.length
    ) {
      throw new DamageError(`column ${name} has a buffer that is missing or too short`, {});
    }
    return this.body.subarray(region.offset, region.offset + lengthBytes);
  }
}

function ascends(offsets: Uint32Array): boolean {
  let before = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i]!;
    if (offset < before) return false;
    before = offset;
  }
  return true;
}
