import { problemBody } from '../http/problem.js';
import type { ProblemError } from '../http/problem.js';
import type { TransportResponse } from '../http/transport.js';

/** Keeps browsers from guessing a content type: they might take a log line for an HTML page and run its scripts. */
export const noSniffHeaders = { 'X-Content-Type-Options': 'nosniff' };

/** Answers with a problem as JSON (RFC 9457). `headers` are sent in addition to those of the problem. */
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
