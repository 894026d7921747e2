import type { LogRecord } from '../records/record.js';
import { readRecordLine } from '../records/record-line.js';
import { FailureError, failureOf } from './failure.js';
import { LineSplitter } from './line-splitter.js';
import { readBody } from './server-door.js';

/** Records of an answer in JSON Lines. */
export interface ReadRecords {
  readonly records: readonly LogRecord[];
  /** The answer was longer than what was to be read of it. */
  readonly isCut: boolean;
}

/** Reads an answer up to a bound of bytes, and at least its first record. Throws a FailureError when it breaks off. */
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
