import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { ResponseReader } from './response-reader.js';

/** What a load of requests came to. */
export interface HttpFigures {
  readonly requests: number;
  readonly bodyBytes: number;
  readonly seconds: number;
  /** From each request to the last byte of its answer, in no order. */
  readonly answeredMs: readonly number[];
}

async function open(url: URL): Promise<Socket> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  await once(socket, 'connect');
  return socket;
}

function requestBytes(url: URL): Buffer {
  return Buffer.from(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`, 'latin1');
}

/**
 * Asks `url` again and again over `connections` connections that stay open, one request at a time on each, for `seconds`. Rejects
 * when an answer is not 200 or a connection breaks.
 */
export async function driveRequests(url: URL, connections: number, seconds: number): Promise<HttpFigures> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(url)));
  const request = requestBytes(url);
  const readers = sockets.map(() => new ResponseReader());
  const answeredMs: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  try {
    await Promise.all(sockets.map((socket, i) => askUntil(socket, readers[i]!, request, endMs, answeredMs)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return {
    requests: readers.reduce((sum, { responses }) => sum + responses, 0),
    bodyBytes: readers.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
    seconds: (performance.now() - startMs) / 1000,
    answeredMs,
  };
}

function askUntil(
  socket: Socket,
  reader: ResponseReader,
  request: Buffer,
  endMs: number,
  answeredMs: number[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let askedMs = performance.now();
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    socket.on('data', (piece: Buffer) => {
      const before = reader.responses;
      try {
        reader.take(piece);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      if (reader.responses === before) return;
      const nowMs = performance.now();
      answeredMs.push(nowMs - askedMs);
      askedMs = nowMs;
      if (nowMs < endMs) socket.write(request);
      else resolve();
    });
    socket.write(request);
  });
}

/** When a client leaves: at the first bytes of the answer, or so long after it has asked. */
export type Leaving = 'first bytes' | { readonly afterMs: number };

/** Asks `url`, and breaks the connection in the middle. Says whether the whole answer had come by then. */
export async function askAndLeave(url: URL, leaving: Leaving): Promise<{ readonly hadAll: boolean }> {
  const socket = await open(url);
  const reader = new ResponseReader();
  try {
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('the server closed a connection')));
      socket.on('data', (piece: Buffer) => {
        reader.take(piece);
        if (leaving === 'first bytes') resolve();
      });
      if (leaving !== 'first bytes') setTimeout(resolve, leaving.afterMs);
      socket.write(requestBytes(url));
    });
    return { hadAll: reader.responses > 0 };
  } finally {
    socket.resetAndDestroy();
  }
}
