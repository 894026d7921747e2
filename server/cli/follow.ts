import {
  formatCursor,
  isLogstrataError,
  type AgentStore,
  type Query,
  type SeenState,
} from '../../engine/index.js';
import { FollowedPosition } from '../follow/follower.js';
import { linesAsEvents } from '../follow/event-stream.js';
import { formatCounted, tell } from './terminal.js';
import { UsageError } from './failure.js';
import type { RecordOutput } from './record-output.js';

const firstCursor = '0'.repeat(16);
/** Milliseconds between two readings without a reported change. They reveal errors that make the archive unreadable. */
const lookMs = 5000;

/**
 * Prepares a query to be followed: with `after` it has no limit, else it begins with the newest records. Throws a `UsageError` for options
 * that can't be combined with following.
 */
export function followedQuery(query: Query): Query {
  const format = query.form?.format ?? 'jsonl';
  if (query.before !== undefined)
    throw new UsageError('--before cannot be combined with --follow, which continues with new records');
  if (format !== 'jsonl')
    throw new UsageError(
      `--follow writes records as they arrive: as JSON Lines or with --table, not as ${format}`,
    );
  return query.after === undefined ? query : { ...query, limit: Number.MAX_SAFE_INTEGER };
}

/**
 * Writes the result of a query, and then, until the signal, each record that becomes visible after the last one, in the order of positions.
 * It reads the archive like any command, so it works whichever process writes, even without a server. It tracks which records were written,
 * so none is lost or repeated. Records that are inserted before the last written one are not written; their number is reported on standard
 * error.
 */
export async function follow(
  store: AgentStore,
  query: Query,
  output: RecordOutput,
  signal: AbortSignal,
): Promise<void> {
  const { after, predicates, form } = query;
  const position = new FollowedPosition(after === undefined ? firstCursor : formatCursor(after));
  const later: Query = {
    limit: Number.MAX_SAFE_INTEGER,
    after: { partition: 0, ordinal: 0 },
    predicates,
    form,
  };
  const changes = new Changes(store, signal);
  let seen: SeenState | null = null;
  try {
    while (!signal.aborted) {
      changes.isNew = false;
      const { scan, state }: Awaited<ReturnType<AgentStore['scanAdded']>> = await store.scanAdded(
        seen === null ? query : later,
        seen,
        { signal, lends: true },
      );
      for await (const piece of scan.lines) {
        const lines = position.take(linesAsEvents(piece), null);
        if (lines !== null) await output.write(lines);
      }
      // Where no record was written, following continues after the state that was read.
      if (position.last === firstCursor) position.last = formatCursor(state.last);
      seen = state;
      tellBehind(position);
      await changes.next();
    }
  } catch (error) {
    if (signal.aborted) return;
    if (isLogstrataError(error) && position.last !== firstCursor)
      tell(`logstrata: following has stopped; to continue: --after ${position.last}`);
    throw error;
  } finally {
    changes.end();
  }
}

function tellBehind(position: FollowedPosition): void {
  const behind = position.takeEarlier();
  if (behind === null) return;
  const records = formatCounted(behind.count, 'record');
  tell(`late: ${records} stored before ${position.last}, the first at ${behind.lowest}`);
}

/** Waits for changes of a store. Its timer keeps the process alive. */
class Changes {
  /** Whether there was a change since the caller last set this to false. */
  isNew = false;
  readonly #signal: AbortSignal;
  readonly #endListening: () => void;
  #wake: () => void = () => undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(store: AgentStore, signal: AbortSignal) {
    this.#signal = signal;
    this.#endListening = store.onChange(this.#note);
    this.#timer = setInterval(this.#note, lookMs);
    signal.addEventListener('abort', this.#note);
  }

  next(): Promise<void> {
    if (this.isNew) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  end(): void {
    clearInterval(this.#timer);
    this.#endListening();
    this.#signal.removeEventListener('abort', this.#note);
  }

  readonly #note = (): void => {
    this.isNew = true;
    this.#wake();
  };
}
