import { assert } from '../../terms/assert.js';
import type { RecordBatch } from '../../columns/column.js';
import { DamageError } from '../../terms/errors.js';
import type { Schema } from '../../terms/schema.js';
import { decodeBatchMessage, encodeBatchMessage } from './arrow-batch.js';
import { sealedMessageBytes } from './sealed-message.js';

/** A batch as bytes for another process: one sealed Arrow message. Throws `limit` when it is too large for one. */
export function encodeBatch(schema: Schema, batch: RecordBatch): Uint8Array {
  assert(batch.columns.length === schema.fields.length, 'a batch has a column for each field');
  return encodeBatchMessage(schema, batch, null, '', 0);
}

/**
 * Reads what `encodeBatch` wrote with the same fields. Throws `damaged` when it is anything else. Columns share memory with
 * `bytes` where they can.
 */
export function decodeBatch(schema: Schema, bytes: Uint8Array): RecordBatch {
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  if (sealedMessageBytes(aligned, 0, 0) !== aligned.length || aligned.length === 0) {
    throw new DamageError(
      `${bytes.length} bytes that should be a batch of records are not whole, or not one`,
      {},
    );
  }
  return decodeBatchMessage(aligned, schema, false).batch;
}
