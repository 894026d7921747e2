import { assert, DamageError } from '../../core/errors.js';
import type { RecordBatch } from '../../columns/column.js';
import type { Schema } from '../../core/schema.js';
import { decodeBatchMessage, encodeBatchMessage } from './arrow-batch.js';
import { sealedMessageBytes } from './sealed-message.js';

/** Encodes a batch for another process, as one sealed Arrow message. Throws `limit` if it is too large. */
export function encodeBatch(schema: Schema, batch: RecordBatch): Uint8Array {
  assert(batch.columns.length === schema.fields.length, 'a batch has a column for each field');
  return encodeBatchMessage(schema, batch, null, '', 0);
}

/** Decodes what `encodeBatch` wrote with the same schema. Throws `damaged` for anything else. Columns share memory with `bytes` if it is aligned. */
export function decodeBatch(schema: Schema, bytes: Uint8Array): RecordBatch {
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  if (sealedMessageBytes(aligned, 0, 0) !== aligned.length || aligned.length === 0) {
    throw new DamageError(
      `${bytes.length} bytes that should be a batch of records are incomplete or something else`,
      {},
    );
  }
  return decodeBatchMessage(aligned, schema, false).batch;
}
