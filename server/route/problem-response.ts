import { problemBody } from '../http/problem.js';
import type { ProblemError } from '../http/problem.js';
import type { TransportResponse } from '../http/transport.js';

/** Every answer is what it says: no browser may take a log's line for a page. */
export const noSniffHeaders = { 'X-Content-Type-Options': 'nosniff' };

/** Answers with a problem. `headers` go with those of the problem itself. */
export function sendProblem(
  response: TransportResponse,
  problem: ProblemError,
  headers: Readonly<Record<string, string>> = {},
): void {
  void response.send(
    {
      status: problem.status,
      headers: {
        'Content-Type': 'application/problem+json',
        'Cache-Control': 'no-store',
        ...noSniffHeaders,
        ...problem.headers,
        ...headers,
      },
      closes: problem.closes,
    },
    Buffer.from(problemBody(problem)),
  );
}
