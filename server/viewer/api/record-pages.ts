import type { Question } from '../query/question.js';
import type { LogRecord } from '../records/record.js';
import { pagePath, type PageAsk } from './first-requests.js';
import { readRecords } from './record-stream.js';
import type { ServerDoor } from './server-door.js';

/** A page of records, oldest first. */
export interface PageAnswer {
  readonly records: readonly LogRecord[];
  /** Whether there are no further records in the requested direction. */
  readonly isEnd: boolean;
  /** The header `Server-Timing`, which tells the cost of the query. */
  readonly timing: string;
}

/** Maximum size of a page in bytes: with records of a megabyte each, a full page would take too much memory. */
const pageBytesMax = 4 * 1024 * 1024;

/** Requests a page. It has fewer records than `limit` where they are large; these are the ones next to the cursor. Throws a FailureError. */
export async function askPage(
  door: ServerDoor,
  question: Question,
  ask: PageAsk,
  signal: AbortSignal,
): Promise<PageAnswer> {
  let limit = ask.limit;
  for (;;) {
    const response = await door.get(pagePath(question, { ...ask, limit }), { signal });
    const { records, isCut } = await readRecords(response, pageBytesMax);
    const timing = response.headers.get('Server-Timing') ?? '';
    const isEnd = !isCut && records.length < limit;
    // A response begins with its oldest record. Without `after`, the records next to the cursor (or to the end) come last and were cut off,
    // so the request is repeated with a lower limit.
    if (!isCut || ask.after !== undefined || limit === 1) return { records, isEnd, timing };
    limit = Math.max(1, Math.floor(Math.min(limit, records.length) / 2));
  }
}
