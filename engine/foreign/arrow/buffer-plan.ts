import { FormatError } from '../../parquet/format.js';
import type { ArrowBatch } from './arrow-index.js';
import type { ArrowField, ArrowType } from './arrow-schema.js';

/** Position of a field in a batch: its node and its buffers. The positions of its children follow. */
export interface FieldPlace {
  readonly field: ArrowField;
  /** Type of the values; with a dictionary, type of the codes. */
  readonly type: ArrowType;
  readonly rows: number;
  readonly nullCount: number;
  /** Number of its first buffer, and the count of its own buffers (without its children's). */
  readonly buffer: number;
  readonly buffers: number;
  readonly children: readonly FieldPlace[];
}

/** Positions of the fields in a batch. Throws `FormatError` for a batch that lacks some. */
export function fieldPlaces(fields: readonly ArrowField[], batch: ArrowBatch): FieldPlace[] {
  let node = 0;
  let buffer = 0;
  let views = 0;
  const place = (field: ArrowField): FieldPlace => {
    const { dictionary } = field;
    const type = dictionary?.codes ?? field.type;
    const at = 2 * node++;
    const viewBuffers = type.kind === 'bytes view' ? (batch.viewBuffers[views++] ?? 0) : 0;
    const first = buffer;
    const count = buffersOf(type) + viewBuffers;
    if (at + 2 > batch.nodes.length || first + count > batch.buffers.length / 2)
      throw new FormatError(`a batch lacks parts of the field "${field.name}"`, batch.offset);
    buffer += count;
    const children = dictionary === null ? field.children.map(place) : [];
    return {
      field,
      type,
      rows: batch.nodes[at]!,
      nullCount: batch.nodes[at + 1]!,
      buffer: first,
      buffers: count,
      children,
    };
  };
  return fields.map(place);
}

/**
 * Number of a field's own buffers, including the validity bitmap
 * (https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout).
 */
function buffersOf(type: ArrowType): number {
  switch (type.kind) {
    case 'null':
    case 'run end encoded':
      return 0;
    case 'struct':
    case 'fixed list':
      return 1;
    case 'bytes':
    case 'list view':
      return 3;
    case 'union':
      return type.isDense ? 2 : 1;
    default:
      return 2;
  }
}

/** Bytes of the buffers of a field and its children. */
export function placeBytes(place: FieldPlace, batch: ArrowBatch): number {
  let bytes = 0;
  for (let i = place.buffer; i < place.buffer + place.buffers; i++) bytes += batch.buffers[2 * i + 1]!;
  return place.children.reduce((sum, child) => sum + placeBytes(child, batch), bytes);
}
