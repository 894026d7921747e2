import type { LogRecord } from '../records/record.js';
import { readRecordLine } from '../records/record-line.js';
import { FailureError, failureOf } from './failure.js';
import { LineSplitter } from './line-splitter.js';
import { readBody } from './server-door.js';

/** Records that were read from a response in JSON Lines. */
export interface ReadRecords {
  readonly records: readonly LogRecord[];
  /** Whether reading stopped at the bound, before the end of the response. */
  readonly isCut: boolean;
}

/**
 * Reads the records of a response, at least one, until `bytesMax` is exceeded. Throws a FailureError where the response ends in the middle
 * of a record.
 */
export async function readRecords(response: Response, bytesMax: number): Promise<ReadRecords> {
  const records: LogRecord[] = [];
  if (response.body === null) return { records, isCut: false };
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const lines = new LineSplitter();
  let bytes = 0;
  for (;;) {
    const { done, value } = await readBody(() => reader.read());
    if (done) break;
    bytes += value.length;
    for (const line of lines.push(decoder.decode(value, { stream: true })))
      if (line !== '') records.push(readRecordLine(line));
    if (bytes > bytesMax && records.length > 0) {
      await reader.cancel();
      return { records, isCut: true };
    }
  }
  if (lines.isInside)
    throw new FailureError(failureOf('broken', 'the last record of the answer is not whole'));
  return { records, isCut: false };
}
