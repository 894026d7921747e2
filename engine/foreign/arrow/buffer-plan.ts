import { FormatError } from '../../parquet/format.js';
import type { ArrowBatch } from './arrow-index.js';
import type { ArrowField, ArrowType } from './arrow-schema.js';

/** Where a field of a batch lies: the numbers of its node and of its buffers. Those that it holds come behind it. */
export interface FieldPlace {
  readonly field: ArrowField;
  /** Of the values, or of the codes where there is a dictionary. */
  readonly type: ArrowType;
  readonly rows: number;
  readonly nullCount: number;
  /** Number of its first buffer, and how many it has itself. */
  readonly buffer: number;
  readonly buffers: number;
  readonly children: readonly FieldPlace[];
}

/** Where the fields of a batch lie. Throws `FormatError` for a batch that lacks some. */
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
      throw new FormatError(`a batch without all parts of the field "${field.name}"`, batch.offset);
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

/** Buffers of a field itself, the one of its nulls included (https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout). */
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

/** Bytes of the buffers of a field and those that it holds. */
export function placeBytes(place: FieldPlace, batch: ArrowBatch): number {
  let bytes = 0;
  for (let i = place.buffer; i < place.buffer + place.buffers; i++) bytes += batch.buffers[2 * i + 1]!;
  return place.children.reduce((sum, child) => sum + placeBytes(child, batch), bytes);
}
