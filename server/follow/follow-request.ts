import type { Query, SeveralCursors } from '../../engine/index.js';
import { parsePosition } from '../http/parameters.js';
import { badParameter, ProblemError } from '../http/problem.js';
import type { TransportRequest } from '../http/transport.js';

export const eventStreamType = 'text/event-stream';

/** Whether a request asks for a stream of events: its `Accept` header is exactly `text/event-stream`. */
export function asksToFollow(request: TransportRequest): boolean {
  return request.header('accept') === eventStreamType;
}

/**
 * The query that a stream begins with. If the client names its last event (`Last-Event-ID`) or gives `after`, these are all records after
 * that cursor; otherwise the newest `limit` records. Throws a `ProblemError` for HTTP/1.0 and for parameters that a stream can't honour.
 */
export function followedQuery(query: Query, request: TransportRequest, cursors?: SeveralCursors): Query {
  if (request.version === '1.0')
    throw new ProblemError(
      505,
      'a stream has no length known in advance, which HTTP/1.0 needs: use HTTP/1.1',
      {
        closes: true,
      },
    );
  if (query.before !== undefined)
    throw badParameter(
      'before',
      '"before" cannot be used with a stream, which continues with new records: remove it',
    );
  const format = query.form?.format ?? 'jsonl';
  if (format !== 'jsonl')
    throw badParameter(
      'format',
      `the events of a stream always have records as JSON: remove "format", which is "${format}"`,
    );
  const after = lastEvent(request, cursors) ?? query.after;
  return after === undefined ? query : { ...query, after, limit: Number.MAX_SAFE_INTEGER };
}

/** The position in `Last-Event-ID`, which a client sends when it reconnects; undefined without one. */
function lastEvent(request: TransportRequest, cursors: SeveralCursors | undefined): Query['after'] {
  const id = request.header('last-event-id');
  return id === '' ? undefined : parsePosition('Last-Event-ID', id, cursors);
}
