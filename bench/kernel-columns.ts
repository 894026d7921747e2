import { webRecords, type WebRecord } from './web-records.js';

/** The strings of a column. Row r is bytes[offsets[r], offsets[r + 1]). */
export interface Strings {
  readonly rows: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
}

/** A row group of web records in memory, laid out as in the engine. */
export interface WebColumns {
  readonly rows: number;
  readonly message: Strings;
  readonly path: Strings;
  readonly userAgent: Strings;
  readonly requestId: Strings;
  readonly timeMs: BigInt64Array;
  readonly bytesSent: BigInt64Array;
  readonly requestSeconds: Float64Array;
}

function stringsOf(records: readonly WebRecord[], pick: (record: WebRecord) => string): Strings {
  const parts = records.map((record) => Buffer.from(pick(record)));
  const offsets = new Uint32Array(records.length + 1);
  parts.forEach((part, row) => (offsets[row + 1] = offsets[row]! + part.length));
  return { rows: records.length, bytes: new Uint8Array(Buffer.concat(parts)), offsets };
}

/** The columns of `rows` generated records; the same ones for the same number. */
export function webColumns(rows: number): WebColumns {
  const records = [...webRecords({ rows, days: 1, startMs: Date.UTC(2026, 9, 20), seed: 1 })];
  return {
    rows,
    message: stringsOf(records, (record) => record.message),
    path: stringsOf(records, (record) => record.path),
    userAgent: stringsOf(records, (record) => record.userAgent),
    requestId: stringsOf(records, (record) => record.requestId),
    timeMs: BigInt64Array.from(records, (record) => BigInt(record.timeMs)),
    bytesSent: BigInt64Array.from(records, (record) => BigInt(record.bytes)),
    requestSeconds: Float64Array.from(records, (record) => record.requestTime),
  };
}
