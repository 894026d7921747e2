import { FormatError } from '../../parquet/format.js';
import { setJson, valueSetter } from '../complete/set-value.js';
import type { DecodedSpans, ForeignRead } from '../foreign-file.js';
import { JsonText } from '../json-text.js';
import { withErrorsNamed } from '../reading-errors.js';
import { SpanColumns } from '../span-columns.js';
import { arrowIndexOf } from './arrow-index.js';
import { BatchBuffers, ReadingTally } from './batch-buffers.js';
import { fieldPlaces } from './buffer-plan.js';
import { FieldReader } from './field-reader.js';

/**
 * Decodes a column of a record batch of an Arrow file or stream. Of uncompressed buffers it reads only what the wanted span
 * needs. Compressed ones are read as a whole, and other spans are returned too while they fit into memory. Blocks while it
 * reads: for worker threads. Throws `DamageError` with the path, offset, row group and column, `limit` where too much memory
 * is needed, `not_found` and `io`.
 */
export async function decodeArrow(read: ForeignRead): Promise<DecodedSpans> {
  return await withErrorsNamed(read, decode);
}

async function decode(read: ForeignRead): Promise<DecodedSpans> {
  const { column, columnIndex, rowGroup, rowGroupRows, chunk, spans, wanted } = read;
  const index = await arrowIndexOf(read);
  const batch = index.batches[rowGroup];
  if (batch === undefined || batch.offset !== chunk.offset || batch.rows !== rowGroupRows)
    throw new FormatError('the file has changed: its batches are different', chunk.offset);
  const place = fieldPlaces(index.fields, batch)[columnIndex];
  if (place === undefined)
    throw new FormatError('the file has changed: its schema is different', chunk.offset);
  const tally = new ReadingTally();
  const buffers = await BatchBuffers.open(read, batch, tally);
  const isWhole = batch.codec !== 'none' || spans.length < 2;
  const { from, to } = isWhole ? { from: 0, to: rowGroupRows } : spans[wanted]!;
  const reader = await new FieldReader(read, index, rowGroup, tally).read({ place, buffers, from, to });
  const columns = new SpanColumns(
    isWhole ? read : { ...read, spans: [{ from: 0, to: to - from }], wanted: 0 },
  );
  const json = new JsonText();
  const { leaf, text } = reader;
  const isJson = column.values.kind === 'json';
  if (!isJson && leaf === null)
    throw new FormatError('the file has changed: its schema is different', chunk.offset);
  const setValue = valueSetter(column, text);
  let replaced = 0;
  for (let row = from; row < to && !columns.isComplete; row++) {
    const { builder } = columns;
    if (builder !== null && !reader.isMissing(row)) {
      if (isJson) {
        reader.write(row, json);
        setJson(builder, json.take());
      } else {
        replaced += setValue(builder, leaf!(row));
      }
    }
    columns.endRow();
  }
  return {
    spans: isWhole ? columns.spans : columns.spans.map((span) => ({ ...span, span: wanted })),
    pages: null,
    bytesRead: tally.bytesRead,
    checksum: isWhole ? tally.checksum : null,
    replaced,
  };
}
