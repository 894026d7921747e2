import type { Column, PlainColumn, Validity } from '../../columns/column.js';
import type { ColumnSpace } from '../../parquet/column-space.js';

/** A column with arrays of its own in `space`, which shares no memory with it. */
export function copyColumn(column: Column, space: ColumnSpace): Column {
  if (column.kind !== 'dictionary') return copyPlain(column, space);
  const { codes } = column;
  const copy = codes instanceof Uint8Array ? space.uint8(codes.length) : space.uint16(codes.length);
  copy.set(codes);
  return {
    ...column,
    codes: copy,
    values: copyPlain(column.values, space),
    validity: copyValidity(column.validity, space),
  };
}

function copyPlain(column: PlainColumn, space: ColumnSpace): PlainColumn {
  const validity = copyValidity(column.validity, space);
  switch (column.kind) {
    case 'int64': {
      const values = space.int64(column.values.length);
      values.set(column.values);
      return { ...column, values, validity };
    }
    case 'float64': {
      const values = space.float64(column.values.length);
      values.set(column.values);
      return { ...column, values, validity };
    }
    case 'bytes': {
      const offsets = space.uint32(column.offsets.length);
      offsets.set(column.offsets);
      const bytes = space.uint8(column.bytes.length);
      bytes.set(column.bytes);
      return { ...column, offsets, bytes, validity };
    }
  }
}

function copyValidity(validity: Validity, space: ColumnSpace): Validity {
  if (validity === null) return null;
  const copy = space.uint8(validity.length);
  copy.set(validity);
  return copy;
}
