import type { Socket } from 'node:net';
import { lingerBytesMax, lingerTimeoutMs } from './http-limits.js';
import { problemBody, reasonPhrase } from './problem.js';
import type { ProblemError } from './problem.js';

/** A whole response for a connection that speaks no HTTP any more, with `Connection: close`. */
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
 * Ends our side of a connection, behind what has been written to it. What the client still sends is read and dropped for a
 * while: closing a socket with unread bytes resets it, and the client would lose the answer that says what was wrong.
 */
export function closeAfterReading(socket: Socket, words?: Buffer): void {
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  // The time counts from when the kernel has all that was written: until then a slow client may take as long as it needs.
  socket.on('finish', () => (timer = setTimeout(() => socket.destroy(), lingerTimeoutMs)));
  socket.on('close', () => clearTimeout(timer));
  socket.on('end', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > lingerBytesMax) socket.destroy();
  });
  socket.resume();
  if (words === undefined) socket.end();
  else socket.end(words);
}
