import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { ResponseReader } from './response-reader.js';

/** The result of driving requests. */
export interface HttpFigures {
  readonly requests: number;
  readonly bodyBytes: number;
  /** The figures of each connection. */
  readonly connections: readonly { readonly requests: number; readonly bodyBytes: number }[];
  readonly seconds: number;
  /** Milliseconds from each request to the last byte of its response, in no particular order. */
  readonly answeredMs: readonly number[];
}

/** Maximum bytes per read: a long response takes few calls. */
const readBytesMax = 1024 * 1024;

/**
 * The buffer that all connections read into. Data are processed before the next read, so it can be shared; a new buffer for each read would
 * cost more than processing the data.
 */
const readBuffer = Buffer.alloc(readBytesMax);

/** A connection and the reader of its responses. */
interface Client {
  readonly socket: Socket;
  readonly reader: ResponseReader;
  /** Called after each read; must not throw. */
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

/** @param headers header lines, each with its line end */
function requestBytes(url: URL, headers = ''): Buffer {
  const line = `GET ${url.pathname}${url.search} HTTP/1.1`;
  return Buffer.from(`${line}\r\nHost: ${url.host}\r\n${headers}\r\n`, 'latin1');
}

/**
 * Sends requests for `urls` for `seconds`, over `connections` keep-alive connections with one request at a time on each. Each connection
 * requests one of the URLs; they are assigned in turn. Rejects where a response is not 200 or a connection breaks.
 *
 * @param headers additional header lines of each request, each with its line end
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

/** When a client leaves: at the first bytes of the response, or this long after the request. */
export type Leaving = 'first bytes' | { readonly afterMs: number };

/** Sends a request and breaks the connection before the response has ended. Returns whether the whole response had arrived by then. */
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
