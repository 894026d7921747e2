import type {
  ClientHttp2Session,
  Http2Server,
  Http2Stream,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
  SessionOptions,
} from 'node:http2';
import { type Socket, connect, createServer, type Server } from 'node:net';
import { LogstrataError, DamageError, isLogstrataError, type ErrorCode } from '../../core/errors.js';
import { unansweredMax, messageBytesMax, hotBatchBytesMax, connectionsMax } from '../../core/limits.js';
import { hasSystemCode } from '../disk/directory.js';

/*
 * Processes that commit through the writer ask it over HTTP/2 on its socket: one connection a process, one request an operation. A request
 * is POST /VERSION/OPERATION; its body is the arguments as JSON, of as many bytes as the header `args-bytes` says, and the payload behind them. The
 * answer is `{"result": …}` or `{"error": …}`.
 */

/** Version of the operations and of what they exchange. It must be equal on both sides. */
const protocolVersion = 5;
const argsBytes = 'args-bytes';

/** How long the end of a connection waits for a peer that does not read its last answers. */
const lingerMs = 1000;

/** Loaded on demand: a process that has the folder for itself needs nothing of it. */
const loadHttp = () => import('node:http2');

const sessionOptions: SessionOptions = {
  maxSessionMemory: (2 * (messageBytesMax + hotBatchBytesMax)) / 1_000_000,
  settings: { enablePush: false, initialWindowSize: 1024 * 1024, maxConcurrentStreams: unansweredMax },
};

/** Throws `limit` for a message that is too long. */
function checkLengths(jsonBytes: number, payloadBytes: number): void {
  if (jsonBytes <= messageBytesMax && payloadBytes <= hotBatchBytesMax) return;
  throw new LogstrataError(
    'limit',
    `a message has ${jsonBytes} + ${payloadBytes} bytes, more than the maximum of ${messageBytesMax} + ${hotBatchBytesMax}`,
  );
}

/** Reads a body, of at most `bytesMax` bytes. Throws `limit` for more. */
function bodyOf(stream: Http2Stream, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    stream.on('data', (piece: Buffer) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes <= bytesMax) return;
      reject(new LogstrataError('limit', `a message has more than ${bytesMax} bytes`));
      stream.destroy();
    });
    stream.on('end', () => resolve(Buffer.concat(pieces)));
    stream.on('error', reject);
    stream.on('close', () => reject(new LogstrataError('closed', 'the connection has ended')));
  });
}

/** An error encoded as JSON for another process. `code` is null for an unexpected error. */
interface EncodedError {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
}

/** Encodes an error for another process. */
function encodeError(error: unknown): EncodedError {
  if (isLogstrataError(error)) {
    return { code: error.code, message: error.message, path: error.path, offset: error.offset };
  }
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

/** Decodes an error of another process. */
function decodeError({ code, message, path, offset }: EncodedError): Error {
  if (code === null) return new Error(`the process that writes failed: ${message}`);
  const place = { path, offset };
  return code === 'damaged' ? new DamageError(message, place) : new LogstrataError(code, message, place);
}

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
  #server: Promise<Http2Server> | undefined;
  readonly #connections = new Set<ServerConnection>();
  #operations: Promise<ChannelOperations>;
  #provide: (operations: ChannelOperations) => void = () => {};
  #stopping = false;

  /** @param role role of this process, for messages */
  constructor(private readonly role: string) {
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
    // Until the session handles its errors.
    socket.on('error', () => {});
    this.#server ??= this.#open();
    void this.#server.then((server) => {
      if (this.#stopping) socket.destroy();
      else server.emit('connection', socket);
    });
  }

  async #open(): Promise<Http2Server> {
    const { createServer: createHttpServer } = await loadHttp();
    const server = createHttpServer(sessionOptions);
    server.on('session', (session) => {
      const connection: ServerConnection = new ServerConnection(session, (name, args, payload) =>
        this.#perform(name, args, payload, connection),
      );
      this.#connections.add(connection);
      void connection.ended.then(() => this.#connections.delete(connection));
    });
    // The connection with the error ends.
    server.on('sessionError', () => {});
    return server;
  }

  async #perform(
    path: string,
    args: unknown,
    payload: Uint8Array,
    connection: ChannelConnection,
  ): Promise<unknown> {
    this.#assertServing();
    const [, version, name = ''] = path.split('/');
    if (version !== String(protocolVersion)) {
      const message = `process ${process.pid} (${this.role}) runs another version of logstrata`;
      throw new LogstrataError('unsupported', message);
    }
    // A process asks nothing first, to find out whether the writer is there and has its version.
    if (name === '') return null;
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

class ServerConnection implements ChannelConnection {
  readonly #atEnd: (() => Promise<void>)[] = [];
  readonly ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #requests = 0;
  #finishing = false;
  #isEnding = false;

  constructor(
    private readonly session: ServerHttp2Session,
    private readonly perform: (path: string, args: unknown, payload: Uint8Array) => Promise<unknown>,
  ) {
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    session.on('stream', (stream, headers) => {
      this.#requests++;
      // A request whose connection has ended gets no answer.
      stream.on('error', () => {});
      void this.#answer(stream, headers).finally(() => {
        this.#requests--;
        this.#endWhenIdle();
      });
    });
    session.on('close', () => this.#endWhenIdle());
  }

  onClose(work: () => Promise<void>): void {
    if (this.#isEnding) void this.#runAtEnd(work);
    else this.#atEnd.push(work);
  }

  /** Ends the connection once its requests are answered. */
  finish(): Promise<void> {
    this.#finishing = true;
    this.#endWhenIdle();
    return this.ended;
  }

  async #answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    let answer: object;
    try {
      const path = String(headers[':path']);
      const jsonBytes = Number(headers[argsBytes]);
      const body = await bodyOf(stream, messageBytesMax + hotBatchBytesMax);
      // The body of a request that its process has given up may be cut off.
      if (body.length !== Number(headers['content-length']) || !(jsonBytes >= 0 && jsonBytes <= body.length))
        throw new LogstrataError('invalid', 'a message does not have the length that it says');
      checkLengths(jsonBytes, body.length - jsonBytes);
      const args: unknown = JSON.parse(body.toString('utf8', 0, jsonBytes));
      // Copied, because batches need alignment.
      const payload = new Uint8Array(body.subarray(jsonBytes));
      answer = { result: (await this.perform(path, args, payload)) ?? null };
    } catch (error) {
      answer = { error: encodeError(error) };
    }
    if (stream.destroyed) return;
    const text = Buffer.from(JSON.stringify(answer));
    stream.respond({ ':status': 'error' in answer ? 500 : 200 });
    stream.end(text.length <= messageBytesMax ? text : undefined);
  }

  #endWhenIdle(): void {
    const session = this.session;
    const isOver = session.closed || session.destroyed || this.#finishing;
    if (this.#requests > 0 || this.#isEnding || !isOver) return;
    this.#isEnding = true;
    session.close();
    setTimeout(() => session.destroy(), lingerMs).unref();
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
  #pending = 0;

  private constructor(private readonly session: ClientHttp2Session) {
    session.unref();
    // Its requests fail, and nothing else.
    session.on('error', () => {});
  }

  /** Takes over a connected socket. */
  static async over(socket: Socket): Promise<WriterChannel> {
    // Until the session handles its errors.
    socket.on('error', () => {});
    const { connect: connectHttp } = await loadHttp();
    if (socket.destroyed) throw gone();
    const options = { ...sessionOptions, createConnection: () => socket };
    return new WriterChannel(connectHttp('http://writer', options));
  }

  /** Whether the connection to the writer's process is still open. */
  get alive(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  async request(operation: string, args: unknown, payload = new Uint8Array(0)): Promise<unknown> {
    if (!this.alive) throw gone();
    const json = Buffer.from(JSON.stringify(args));
    checkLengths(json.length, payload.length);
    if (this.#pending++ === 0) this.session.ref();
    try {
      const { result, error } = await this.#exchange(operation, json, payload);
      if (error !== undefined) throw decodeError(error);
      return result;
    } finally {
      if (--this.#pending === 0) this.session.unref();
    }
  }

  async #exchange(
    operation: string,
    json: Buffer,
    payload: Uint8Array,
  ): Promise<{ readonly result?: unknown; readonly error?: EncodedError }> {
    try {
      const path = `/${protocolVersion}/${operation}`;
      const stream = this.session.request({
        ':method': 'POST',
        ':path': path,
        [argsBytes]: json.length,
        'content-length': json.length + payload.length,
      });
      if (payload.length > 0) stream.write(json);
      stream.end(payload.length > 0 ? payload : json);
      return JSON.parse((await bodyOf(stream, messageBytesMax)).toString()) as { result?: unknown };
    } catch (error) {
      throw gone(error);
    }
  }

  async close(): Promise<void> {
    const session = this.session;
    if (session.destroyed) return;
    const closed = new Promise<void>((resolve) => session.once('close', () => resolve()));
    session.ref();
    session.destroy();
    await closed;
  }
}

function gone(cause?: unknown): LogstrataError {
  const message = 'the process that writes to this folder has ended: run the command again';
  return new LogstrataError('closed', message, { cause });
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
