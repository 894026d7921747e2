import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** One response as it was received. */
export interface WireResponse {
  readonly status: number;
  /** Names in lowercase. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** False if the connection ended before the body did. */
  readonly isWhole: boolean;
}

/** A client with access to the bytes: it sends exactly the given bytes, and reads when it is told to. */
export class Wire {
  readonly socket: Socket;
  /** How the connection ended: `open`, `end` (FIN) or the code of an error. */
  ending = 'open';
  readonly #closed: Promise<void>;
  #received: Buffer[] = [];
  receivedBytes = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.#closed = new Promise((resolve) => socket.on('close', () => resolve()));
    socket.on('data', (chunk: Buffer) => {
      this.#received.push(chunk);
      this.receivedBytes += chunk.length;
    });
    socket.on('end', () => (this.ending = 'end'));
    socket.on('error', (error: NodeJS.ErrnoException) => (this.ending = error.code ?? error.message));
  }

  static async open(address: string): Promise<Wire> {
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new Wire(socket);
  }

  send(text: string | Buffer): this {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
    return this;
  }

  /** Resolves when the server has closed the connection. */
  closed(): Promise<void> {
    return this.#closed;
  }

  get text(): string {
    return this.bytes.toString('latin1');
  }

  get bytes(): Buffer {
    if (this.#received.length > 1) this.#received = [Buffer.concat(this.#received)];
    return this.#received[0] ?? Buffer.alloc(0);
  }

  /** Waits until `count` complete responses have arrived, or the connection has ended. `isHead`: responses have no bodies. */
  async responses(count: number, isHead = false): Promise<WireResponse[]> {
    let isOver = false;
    void this.#closed.then(() => (isOver = true));
    for (;;) {
      const found = parseResponses(this.bytes, isHead);
      if (found.filter((response) => response.isWhole).length >= count || isOver) return found;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

/** Sends one request on its own connection and reads the response. */
export async function ask(
  address: string,
  target: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<WireResponse> {
  const { method = 'GET', headers = {} } = options;
  const lines = Object.entries({ Host: 'test', Connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const wire = await Wire.open(address);
  wire.send(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`);
  await wire.closed();
  const [response] = parseResponses(wire.bytes, method === 'HEAD');
  if (response === undefined) throw new Error(`no response to ${method} ${target} (${wire.ending})`);
  return response;
}

/** Sends bytes on their own connection and reads until the server closes it. */
export async function shout(
  address: string,
  ...packets: (string | Buffer)[]
): Promise<{ response: WireResponse | undefined; wire: Wire }> {
  const wire = await Wire.open(address);
  for (const packet of packets) {
    wire.send(packet);
    await new Promise((resolve) => setTimeout(resolve, packets.length > 1 ? 20 : 0));
  }
  await wire.closed();
  return { response: parseResponses(wire.bytes, false)[0], wire };
}

export function parseResponses(bytes: Buffer, isHead: boolean): WireResponse[] {
  const responses: WireResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    const headEnd = bytes.indexOf('\r\n\r\n', at);
    if (headEnd < 0) break;
    const [statusLine, ...lines] = bytes.toString('latin1', at, headEnd).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine!)?.[1]);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(':')).toLowerCase();
      if (headers.has(name)) throw new Error(`header ${name} is there twice`);
      headers.set(name, line.slice(line.indexOf(':') + 1).trim());
    }
    const start = headEnd + 4;
    if (headers.has('transfer-encoding') && headers.has('content-length'))
      throw new Error('two lengths in one response');
    const body =
      isHead || status === 204 || status === 100
        ? { body: Buffer.alloc(0), end: start }
        : readBody(bytes, start, headers);
    responses.push({ status, headers, body: body.body, isWhole: body.end !== undefined });
    if (body.end === undefined) break;
    at = body.end;
  }
  return responses;
}

function readBody(
  bytes: Buffer,
  start: number,
  headers: ReadonlyMap<string, string>,
): { body: Buffer; end: number | undefined } {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(bytes, start);
  // A refusal by the library itself ends with the connection.
  if (!headers.has('content-length')) return { body: bytes.subarray(start), end: bytes.length };
  const end = start + Number(headers.get('content-length'));
  return { body: bytes.subarray(start, end), end: end <= bytes.length ? end : undefined };
}

function readChunks(bytes: Buffer, start: number): { body: Buffer; end: number | undefined } {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) break;
    const digits = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-fA-F]+$/.test(digits)) throw new Error(`bad chunk size ${JSON.stringify(digits)}`);
    const size = parseInt(digits, 16);
    const end = lineEnd + 2 + size;
    if (size === 0 && bytes.length >= end + 2) return { body: Buffer.concat(chunks), end: end + 2 };
    chunks.push(bytes.subarray(lineEnd + 2, end));
    if (bytes.length < end + 2) break;
    if (bytes.toString('latin1', end, end + 2) !== '\r\n')
      throw new Error('a chunk does not end where it says');
    at = end + 2;
  }
  return { body: Buffer.concat(chunks), end: undefined };
}
