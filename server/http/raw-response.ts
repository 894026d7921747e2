import type { Socket } from 'node:net';
import { farewellMs } from './http-limits.js';
import { problemBody, reasonPhrase } from './problem.js';
import type { ProblemError } from './problem.js';

/** The bytes of a complete response for a connection on which Node can't parse HTTP any more. It has `Connection: close`. */
export function rawProblem(problem: ProblemError): Buffer {
  const body = Buffer.from(problemBody(problem));
  const lines = [`HTTP/1.1 ${problem.status} ${reasonPhrase(problem.status)}`];
  for (const [name, value] of Object.entries(problem.headers)) lines.push(`${name}: ${value}`);
  lines.push(
    'Content-Type: application/problem+json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  );
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return Buffer.concat([head, body]);
}

/**
 * Ends our side of a connection after everything that was written to it, with `words` last. Bytes that the client still sends are read and
 * dropped for a while: closing a socket with unread bytes resets it, and the client would lose the answer that says what was wrong.
 */
export function closeAfterReading(socket: Socket, words?: Buffer): void {
  let timer: NodeJS.Timeout | undefined;
  // The time counts from the moment at which the operating system has everything. Until then the client may be slow.
  socket.on('finish', () => (timer = setTimeout(() => socket.destroy(), farewellMs)));
  socket.on('close', () => clearTimeout(timer));
  socket.on('end', () => socket.destroy());
  socket.resume();
  if (words === undefined) socket.end();
  else socket.end(words);
}
