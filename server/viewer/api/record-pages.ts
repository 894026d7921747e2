import { requestPath, type Question } from '../query/question.js';
import type { LogRecord } from '../records/record.js';
import { readRecords } from './record-stream.js';
import type { ServerDoor } from './server-door.js';

/** Where a page lies: the newest records, or those next to a cursor. */
export interface PageAsk {
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly limit: number;
}

/** A page, the oldest record first. */
export interface PageAnswer {
  readonly records: readonly LogRecord[];
  /** Nothing lies behind it in the direction that was asked for. */
  readonly isEnd: boolean;
  /** What the query cost, as the server says it. */
  readonly timing: string;
}

/** What one page takes of memory: records of a megabyte must not fill it. */
const pageBytesMax = 4 * 1024 * 1024;

/**
 * Asks for a page. One whose records are larger than a page should be has fewer of them: those next to the cursor. Throws a
 * FailureError.
 */
export async function askPage(
  door: ServerDoor,
  question: Question,
  ask: PageAsk,
  signal: AbortSignal,
): Promise<PageAnswer> {
  const { after, before } = ask;
  let limit = ask.limit;
  for (;;) {
    const more: (readonly [string, string])[] = [['limit', String(limit)]];
    if (after !== undefined) more.push(['after', after]);
    if (before !== undefined) more.push(['before', before]);
    const response = await door.get(requestPath('query', question, more), { signal });
    const { records, isCut } = await readRecords(response, pageBytesMax);
    const timing = response.headers.get('Server-Timing') ?? '';
    const isEnd = !isCut && records.length < limit;
    // An answer begins with its oldest record. Without `after` those next to the cursor, or to the end, come last: ask for fewer.
    if (!isCut || after !== undefined || limit === 1) return { records, isEnd, timing };
    limit = Math.max(1, Math.floor(Math.min(limit, records.length) / 2));
  }
}
