import { type Socket, connect, createServer, type Server } from 'node:net';
import { LogstrataError, DamageError, isLogstrataError, type ErrorCode } from '../../core/errors.js';
import { unansweredMax, messageBytesMax, hotBatchBytesMax, connectionsMax } from '../../core/limits.js';
import { hasSystemCode } from '../disk/directory.js';

/**
 * A message between two processes. Its bytes are the length of the JSON and the length of the payload (u32 each, little-endian), the JSON
 * (an object), and the payload.
 */
interface Frame {
  readonly json: Readonly<Record<string, unknown>>;
  readonly payload: Uint8Array;
}

/** Limits on the lengths of a frame's parts. */
interface FrameBounds {
  readonly jsonBytesMax: number;
  readonly payloadBytesMax: number;
}

const headerBytes = 8;

/** Encodes the header and JSON of a frame, to be followed by the payload. Throws `limit` if the frame exceeds `bounds`. */
export function encodeFrame(json: object, payload: Uint8Array, bounds: FrameBounds): Buffer {
  const text = Buffer.from(JSON.stringify(json));
  checkLengths(text.length, payload.length, bounds);
  const head = Buffer.allocUnsafe(headerBytes + text.length);
  head.writeUInt32LE(text.length, 0);
  head.writeUInt32LE(payload.length, 4);
  text.copy(head, headerBytes);
  return head;
}

function checkLengths(jsonBytes: number, payloadBytes: number, bounds: FrameBounds): void {
  if (jsonBytes <= bounds.jsonBytesMax && payloadBytes <= bounds.payloadBytesMax) return;
  throw new LogstrataError(
    'limit',
    `a message has ${jsonBytes} + ${payloadBytes} bytes, more than the maximum of ${bounds.jsonBytesMax} + ${bounds.payloadBytesMax}`,
  );
}

/** Assembles frames that arrive in pieces. Holds at most one frame and one piece. */
class FrameReader {
  bounds: FrameBounds;
  #pieces: Buffer[] = [];
  #length = 0;
  #wanted = headerBytes;

  constructor(bounds: FrameBounds) {
    this.bounds = bounds;
  }

  /** Adds a piece, and yields the frames that are complete with it. Throws `limit` or `invalid` for anything that is not a frame. */
  *push(piece: Buffer): Generator<Frame> {
    this.#pieces.push(piece);
    this.#length += piece.length;
    while (this.#length >= this.#wanted) {
      const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [bytes];
      const jsonBytes = bytes.readUInt32LE(0);
      const payloadBytes = bytes.readUInt32LE(4);
      checkLengths(jsonBytes, payloadBytes, this.bounds);
      const frameBytes = headerBytes + jsonBytes + payloadBytes;
      if (bytes.length < frameBytes) {
        this.#wanted = frameBytes;
        return;
      }
      const rest = bytes.subarray(frameBytes);
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#length = rest.length;
      this.#wanted = headerBytes;
      const payloadStart = headerBytes + jsonBytes;
      // Copied, because a view would keep the whole received piece in memory, and because batches need alignment.
      const payload = new Uint8Array(bytes.subarray(payloadStart, frameBytes));
      yield { json: parseObject(bytes.toString('utf8', headerBytes, payloadStart)), payload };
    }
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LogstrataError('invalid', 'a message is not JSON', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LogstrataError('invalid', 'a message is not a JSON object');
  }
  return value as Readonly<Record<string, unknown>>;
}

/** An error encoded as JSON for another process. `code` is null for an unexpected error. */
export interface EncodedError {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
}

// A record of all codes, so that a new code fails to compile until it is added here.
const errorCodes: Readonly<Record<ErrorCode, true>> = {
  invalid: true,
  damaged: true,
  not_found: true,
  exists: true,
  locked: true,
  conflict: true,
  limit: true,
  disk_full: true,
  unavailable: true,
  io: true,
  cancelled: true,
  timeout: true,
  unsupported: true,
  closed: true,
  absent: true,
};

/** Encodes an error for another process. */
function encodeError(error: unknown): EncodedError {
  if (isLogstrataError(error)) {
    return { code: error.code, message: error.message, path: error.path, offset: error.offset };
  }
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

/** Decodes an error of another process. */
function decodeError(value: unknown): Error {
  const { code, message, path, offset } = (value ?? {}) as Partial<Record<keyof EncodedError, unknown>>;
  const text = typeof message === 'string' ? message : 'it gave no reason';
  const place = {
    ...(typeof path === 'string' ? { path } : {}),
    ...(typeof offset === 'number' ? { offset } : {}),
  };
  if (code === 'damaged') return new DamageError(text, place);
  if (typeof code === 'string' && Object.hasOwn(errorCodes, code)) {
    return new LogstrataError(code as ErrorCode, text, place);
  }
  return new Error(`the process that writes failed: ${text}`);
}

const bounds: FrameBounds = { jsonBytesMax: messageBytesMax, payloadBytesMax: hotBatchBytesMax };

/** Limits before the hello, so that an unknown process cannot use much memory. */
const helloBounds: FrameBounds = { jsonBytesMax: 4096, payloadBytesMax: 0 };

/** A connection without a hello after this time is closed. */
const helloTimeoutMs = 10_000;

/** How long the end of a connection waits for a peer that does not read its last answers. */
const lingerMs = 1000;

const noPayload = new Uint8Array(0);

/** The connection of another process, as seen by the operations that it requests. */
export interface ChannelConnection {
  /** Runs `work` once the connection has ended for any reason and its requests are done; at once if it has ended already. */
  onClose(work: () => Promise<void>): void;
}

/** Handles a request. The result is encoded as JSON. Errors are sent to the other process with their code. */
export type ChannelOperation = (
  args: unknown,
  payload: Uint8Array,
  connection: ChannelConnection,
) => Promise<unknown>;

/** The operations that the writer serves, by name. */
export type ChannelOperations = Readonly<Record<string, ChannelOperation>>;

/** The writer's side of the channel. Serves requests of any number of connections. */
export class ChannelServer {
  readonly #hello: (args: unknown) => Promise<unknown>;
  readonly #connections = new Set<ServerConnection>();
  #operations: Promise<ChannelOperations>;
  #provide: (operations: ChannelOperations) => void = () => {};
  #stopping = false;

  /** @param hello checks and answers the first request of a connection. Until it has succeeded, other requests are refused. */
  constructor(hello: (args: unknown) => Promise<unknown>) {
    this.#hello = hello;
    this.#operations = new Promise((resolve) => {
      this.#provide = resolve;
    });
  }

  /** Provides the operations. Requests that came before wait for this. */
  serve(operations: ChannelOperations): void {
    this.#provide(operations);
  }

  /** Serves a new connection. Refuses it after `stop`. */
  accept(socket: Socket): void {
    // An idle connection must not keep the process alive.
    socket.unref();
    if (this.#stopping) {
      socket.destroy();
      return;
    }
    const connection = new ServerConnection(socket, this.#hello, (name, args, payload, self) =>
      this.#perform(name, args, payload, self),
    );
    this.#connections.add(connection);
    connection.onClose(() => {
      this.#connections.delete(connection);
      return Promise.resolve();
    });
  }

  async #perform(
    name: string,
    args: unknown,
    payload: Uint8Array,
    connection: ChannelConnection,
  ): Promise<unknown> {
    this.#assertServing();
    const operations = await this.#operations;
    this.#assertServing();
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation === undefined) {
      throw new LogstrataError('unsupported', `the process that writes does not know "${name}"`);
    }
    return operation(args, payload, connection);
  }

  #assertServing(): void {
    if (this.#stopping) throw new LogstrataError('closed', 'the process that writes is stopping');
  }

  /** Refuses new requests, and ends every connection once its requests are answered. Resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    // Wake requests that still wait for `serve`; they are refused.
    this.#provide({});
    // Idle connections end first: requests of the others may wait for units that these hold.
    await Promise.all([...this.#connections].map((connection) => connection.finish()));
  }
}

type Perform = (
  name: string,
  args: unknown,
  payload: Uint8Array,
  connection: ChannelConnection,
) => Promise<unknown>;

class ServerConnection implements ChannelConnection {
  readonly #socket: Socket;
  readonly #reader = new FrameReader(helloBounds);
  readonly #hello: (args: unknown) => Promise<unknown>;
  readonly #perform: Perform;
  readonly #atEnd: (() => Promise<void>)[] = [];
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #isKnown = false;
  #requests = 0;
  #finishing = false;
  #socketClosed = false;
  #isEnding = false;

  constructor(socket: Socket, hello: (args: unknown) => Promise<unknown>, perform: Perform) {
    this.#socket = socket;
    this.#hello = hello;
    this.#perform = perform;
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    socket.setTimeout(helloTimeoutMs, () => {
      if (!this.#isKnown) socket.destroy();
    });
    socket.on('data', (piece: Buffer) => this.#take(piece));
    // Every error is followed by 'close', which handles it.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#socketClosed = true;
      this.#endWhenIdle();
    });
  }

  onClose(work: () => Promise<void>): void {
    if (this.#isEnding) void this.#runAtEnd(work);
    else this.#atEnd.push(work);
  }

  /** Ends the connection once its requests are answered. */
  finish(): Promise<void> {
    this.#finishing = true;
    this.#endWhenIdle();
    return this.#ended;
  }

  #take(piece: Buffer): void {
    try {
      for (const frame of this.#reader.push(piece)) {
        if (this.#socket.destroyed) return;
        this.#begin(frame);
      }
    } catch {
      // Not a valid frame: the rest of the stream cannot be decoded.
      this.#socket.destroy();
      return;
    }
    if (this.#requests >= unansweredMax) this.#socket.pause();
  }

  #begin(frame: Frame): void {
    this.#requests++;
    void this.#answer(frame).finally(() => {
      this.#requests--;
      if (this.#requests < unansweredMax) this.#socket.resume();
      this.#endWhenIdle();
    });
  }

  async #answer({ json, payload }: Frame): Promise<void> {
    const { id, operation, args } = json;
    const isHello = !this.#isKnown;
    try {
      if (isHello && operation !== 'hello') throw new LogstrataError('invalid', 'a request before the hello');
      const name = String(operation);
      const result = await (isHello ? this.#hello(args) : this.#perform(name, args, payload, this));
      if (isHello) {
        this.#isKnown = true;
        this.#socket.setTimeout(0);
        this.#reader.bounds = bounds;
      }
      this.#send({ id, result: result ?? null });
    } catch (error) {
      this.#send({ id, error: encodeError(error) });
      if (isHello) this.#socket.destroySoon();
    }
  }

  #send(json: object): void {
    if (this.#socket.destroyed) return;
    this.#socket.write(encodeFrame(json, noPayload, bounds));
  }

  #endWhenIdle(): void {
    if (this.#requests > 0 || this.#isEnding || !(this.#socketClosed || this.#finishing)) return;
    this.#isEnding = true;
    this.#socket.destroySoon();
    setTimeout(() => this.#socket.destroy(), lingerMs).unref();
    void Promise.all(this.#atEnd.map((work) => this.#runAtEnd(work))).then(this.#resolveEnded);
  }

  async #runAtEnd(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch {
      // Nobody is left to report the error to. Files that remain are removed when the archive is next opened.
    }
  }
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Sends requests to the writer's process. */
export interface ChannelClient {
  /**
   * Requests an operation and waits for its answer. Throws the error of the operation; `closed` if the other process has gone, in which
   * case the operation may or may not have been done; `limit` if the request is too large.
   */
  request(operation: string, args: unknown, payload?: Uint8Array): Promise<unknown>;
}

/** The requesting side of the channel, over one connection. */
export class WriterChannel implements ChannelClient {
  readonly #socket: Socket;
  readonly #reader = new FrameReader(bounds);
  readonly #pending = new Map<number, PendingRequest>();
  #nextId = 1;
  #alive = true;

  /** Takes over a connected socket. The first request must be `hello`. */
  constructor(socket: Socket) {
    this.#socket = socket;
    socket.unref();
    socket.on('data', (piece: Buffer) => this.#take(piece));
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
  }

  /** Whether the connection to the writer's process is still open. */
  get alive(): boolean {
    return this.#alive;
  }

  async request(operation: string, args: unknown, payload: Uint8Array = noPayload): Promise<unknown> {
    if (!this.#alive) throw gone();
    const id = this.#nextId++;
    const head = encodeFrame({ id, operation, args }, payload, bounds);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#socket.ref();
      this.#socket.write(head);
      if (payload.length > 0) this.#socket.write(payload);
    });
  }

  async close(): Promise<void> {
    if (this.#socket.closed) return;
    const closed = new Promise<void>((resolve) => {
      this.#socket.once('close', () => resolve());
    });
    this.#socket.ref();
    this.#socket.destroySoon();
    await closed;
  }

  #take(piece: Buffer): void {
    try {
      for (const { json } of this.#reader.push(piece)) this.#settle(json);
    } catch {
      this.#socket.destroy();
    }
  }

  #settle(json: Frame['json']): void {
    const id = typeof json['id'] === 'number' ? json['id'] : 0;
    const request = this.#pending.get(id);
    if (request === undefined) return;
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#socket.unref();
    if (json['error'] === undefined) request.resolve(json['result']);
    else request.reject(decodeError(json['error']));
  }

  #end(): void {
    this.#alive = false;
    for (const request of this.#pending.values()) request.reject(gone());
    this.#pending.clear();
  }
}

function gone(): LogstrataError {
  return new LogstrataError(
    'closed',
    'the process that writes to this folder has ended: run the command again',
  );
}

/** Creates a socket at `path`, which must not exist, and listens. Rejects with the system's error. */
export function listenAt(path: string, accept: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.maxConnections = connectionsMax;
    server.once('error', reject);
    server.listen({ path }, () => {
      // The listening socket must not keep the process alive.
      server.unref();
      resolve(server);
    });
  });
}

/**
 * Connects to the process that listens at `path`. Resolves to `busy` if it accepts no connection now, and to undefined if no process
 * listens. Rejects with the system's error.
 */
export function connectTo(path: string): Promise<Socket | 'busy' | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error) => {
      if (hasSystemCode(error, 'ECONNREFUSED', 'ENOENT')) resolve(undefined);
      else if (hasSystemCode(error, 'EAGAIN', 'ECONNRESET')) resolve('busy');
      else reject(error);
    });
  });
}

/** Whether a process listens at `path`. Rejects with the system's error if that cannot be determined. */
export async function isListenedAt(path: string): Promise<boolean> {
  const socket = await connectTo(path);
  if (socket !== undefined && socket !== 'busy') socket.destroy();
  return socket !== undefined;
}
