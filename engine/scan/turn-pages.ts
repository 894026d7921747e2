import { isDeepStrictEqual } from 'node:util';
import { assert } from '../terms/assert.js';
import type { Position } from '../terms/cursor.js';
import { turnPagesMax } from '../terms/limits.js';
import type { Schema } from '../terms/schema.js';
import type { LentSpace } from './write/piece-space.js';
import type { AnswerForm, Query, ScanStats } from './plan/query.js';
import type { Snapshot } from '../store/reading/snapshot.js';

/** A page and the memory that it was written to. The memory is given back once the last reader has left. */
export class SharedPage {
  readonly bytes: Uint8Array;
  readonly #space: LentSpace;
  #readers = 1;

  constructor(bytes: Uint8Array, space: LentSpace) {
    this.bytes = bytes;
    this.#space = space;
  }

  /** Adds a reader, who must call `leave` too. */
  join(): this {
    this.#readers++;
    return this;
  }

  /** Must be called once by each reader. The last one gives back the memory. */
  leave(): void {
    assert(this.#readers > 0, 'each reader of a page leaves once');
    if (--this.#readers === 0) this.#space.close();
  }
}

/** A page, and the query that it answers. */
interface AnsweredQuery {
  readonly runs: Snapshot['runs'];
  readonly schema: Schema;
  readonly query: Query;
  readonly stats: ScanStats;
  readonly page: SharedPage;
}

/** The pages of this turn of the event loop, oldest first. */
let pages: AnsweredQuery[] = [];

/**
 * The page that was written in this turn of the event loop for the same query on the same state, joined by one reader; null where there is
 * none. Many clients that poll the end of a log ask in the same turn. `stats` then say that this query has looked at nothing.
 */
export function sharedPage({ runs, schema }: Snapshot, query: Query, stats: ScanStats): SharedPage | null {
  for (const known of pages) {
    if (known.runs !== runs || known.schema !== schema || !areAlike(known.query, query)) continue;
    stats.runs = known.stats.runs;
    stats.rowGroups = known.stats.rowGroups;
    stats.rowsReturned = known.stats.rowsReturned;
    return known.page.join();
  }
  return null;
}

/**
 * Keeps a page until the turn of the event loop ends, for the same query in that turn. Keeping it longer would hold memory for a query that
 * may never come again.
 */
export function sharePage(
  { runs, schema }: Snapshot,
  query: Query,
  stats: ScanStats,
  page: SharedPage,
): void {
  if (pages.length === 0) setImmediate(endTurn);
  else if (pages.length === turnPagesMax) pages.shift()!.page.leave();
  pages.push({ runs, schema, query, stats, page: page.join() });
}

function endTurn(): void {
  const over = pages;
  pages = [];
  for (const { page } of over) page.leave();
}

/** Whether two queries are equal. Neither has predicates. */
function areAlike(one: Query, other: Query): boolean {
  return (
    one.limit === other.limit &&
    isSame(one.after, other.after) &&
    isSame(one.before, other.before) &&
    isSameForm(one.form, other.form)
  );
}

function isSameForm(one: AnswerForm | undefined, other: AnswerForm | undefined): boolean {
  if (one === other) return true;
  return one?.format === other?.format && isDeepStrictEqual(one?.fields, other?.fields);
}

function isSame(one: Position | undefined, other: Position | undefined): boolean {
  return one?.partition === other?.partition && one?.ordinal === other?.ordinal;
}
