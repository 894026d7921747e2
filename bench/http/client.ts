import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { ResponseReader } from './response-reader.js';

/** What a load of requests came to. */
export interface HttpFigures {
  readonly requests: number;
  readonly bodyBytes: number;
  /** The same of each connection. */
  readonly connections: readonly { readonly requests: number; readonly bodyBytes: number }[];
  readonly seconds: number;
  /** From each request to the last byte of its answer, in no order. */
  readonly answeredMs: readonly number[];
}

/** What a read takes at most: a long answer comes in few calls. */
const readBytesMax = 1024 * 1024;

/**
 * Where all connections read into. What has come is looked at before the next read begins, and a buffer anew for each of them costs
 * more than the bytes do.
 */
const readBuffer = Buffer.alloc(readBytesMax);

/** A connection, and what has come over it. */
interface Client {
  readonly socket: Socket;
  readonly reader: ResponseReader;
  /** Called after each read; throws nothing. */
  onRead: () => void;
}

async function open(url: URL): Promise<Client> {
  const reader = new ResponseReader();
  const socket = connect({
    host: url.hostname,
    port: Number(url.port),
    noDelay: true,
    onread: {
      buffer: readBuffer,
      callback: (bytes) => {
        try {
          reader.take(readBuffer.subarray(0, bytes));
          client.onRead();
        } catch (error) {
          socket.destroy(error instanceof Error ? error : new Error(String(error)));
        }
        return true;
      },
    },
  });
  const client: Client = { socket, reader, onRead: () => undefined };
  await once(socket, 'connect');
  return client;
}

/** @param headers whole lines of the head, each with its end */
function requestBytes(url: URL, headers = ''): Buffer {
  const line = `GET ${url.pathname}${url.search} HTTP/1.1`;
  return Buffer.from(`${line}\r\nHost: ${url.host}\r\n${headers}\r\n`, 'latin1');
}

/**
 * Asks `urls` again and again over `connections` connections that stay open, each for one of them, in turns where they are fewer; one
 * request at a time on each, for `seconds`. Rejects when an answer is not 200 or a connection breaks.
 *
 * @param headers lines that each request has besides, each with its end
 */
export async function driveRequests(
  urls: readonly URL[],
  connections: number,
  seconds: number,
  headers = '',
): Promise<HttpFigures> {
  const asked = Array.from({ length: connections }, (_, i) => urls[i % urls.length]!);
  const clients = await Promise.all(asked.map((url) => open(url)));
  const requests = asked.map((url) => requestBytes(url, headers));
  const answeredMs: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  try {
    await Promise.all(clients.map((client, i) => askUntil(client, requests[i]!, endMs, answeredMs)));
  } finally {
    for (const { socket } of clients) socket.destroy();
  }
  const figures = clients.map(({ reader: { responses, bodyBytes } }) => ({ requests: responses, bodyBytes }));
  return {
    requests: figures.reduce((sum, { requests }) => sum + requests, 0),
    bodyBytes: figures.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
    connections: figures,
    seconds: (performance.now() - startMs) / 1000,
    answeredMs,
  };
}

function askUntil(client: Client, request: Buffer, endMs: number, answeredMs: number[]): Promise<void> {
  const { socket, reader } = client;
  return new Promise((resolve, reject) => {
    let askedMs = performance.now();
    let { responses } = reader;
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    client.onRead = () => {
      if (reader.responses === responses) return;
      responses = reader.responses;
      const nowMs = performance.now();
      answeredMs.push(nowMs - askedMs);
      askedMs = nowMs;
      if (nowMs < endMs) socket.write(request);
      else resolve();
    };
    socket.write(request);
  });
}

/** When a client leaves: at the first bytes of the answer, or so long after it has asked. */
export type Leaving = 'first bytes' | { readonly afterMs: number };

/** Asks `url`, and breaks the connection in the middle. Says whether the whole answer had come by then. */
export async function askAndLeave(url: URL, leaving: Leaving): Promise<{ readonly hadAll: boolean }> {
  const client = await open(url);
  const { socket, reader } = client;
  try {
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('the server closed a connection')));
      client.onRead = () => {
        if (leaving === 'first bytes') resolve();
      };
      if (leaving !== 'first bytes') setTimeout(resolve, leaving.afterMs);
      socket.write(requestBytes(url));
    });
    return { hadAll: reader.responses > 0 };
  } finally {
    socket.resetAndDestroy();
  }
}
