import type { Socket } from 'node:net';
import { LogstrataError } from '../../terms/errors.js';
import { channelRequestsMax, frameJsonBytesMax, framePayloadBytesMax } from '../../terms/limits.js';
import { encodeFrame, FrameReader, type Frame, type FrameBounds } from './frame.js';
import { decodeError, encodeError } from './remote-error.js';

const bounds: FrameBounds = { jsonBytesMax: frameJsonBytesMax, payloadBytesMax: framePayloadBytesMax };

/** Before a process has said who it is, it can take no memory. */
const helloBounds: FrameBounds = { jsonBytesMax: 4096, payloadBytesMax: 0 };

/** A connection that has not said who it is by then is none of ours. */
const helloTimeoutMs = 10_000;

/** How long a process that does not read its last answers may hold up the end of its connection. */
const lingerMs = 1000;

const noPayload = new Uint8Array(0);

/** One other process, as the operations that it asks for see it. */
export interface ChannelConnection {
  /** Runs `work` when the connection has ended, however it ended, and what it had asked for is done; at once if it has. */
  onClose(work: () => Promise<void> | void): void;
}

/** Answers a request with what becomes JSON. Errors reach the other process with their code. */
export type ChannelOperation = (
  args: unknown,
  payload: Uint8Array,
  connection: ChannelConnection,
) => Promise<unknown>;

export type ChannelOperations = Readonly<Record<string, ChannelOperation>>;

/** The writer's side of the channel: serves requests of any number of connections. */
export class ChannelServer {
  readonly #hello: (args: unknown) => Promise<unknown>;
  readonly #connections = new Set<ServerConnection>();
  #operations: Promise<ChannelOperations>;
  #provide: (operations: ChannelOperations) => void = () => {};
  #stopping = false;

  /** `hello` checks who connects and answers it; until it has succeeded, a connection gets nothing else. */
  constructor(hello: (args: unknown) => Promise<unknown>) {
    this.#hello = hello;
    this.#operations = new Promise((resolve) => {
      this.#provide = resolve;
    });
  }

  /** Requests that came before wait for this. */
  serve(operations: ChannelOperations): void {
    this.#provide(operations);
  }

  accept(socket: Socket): void {
    // Waiting for requests is no reason for the process to stay.
    socket.unref();
    if (this.#stopping) {
      socket.destroy();
      return;
    }
    const connection = new ServerConnection(socket, this.#hello, (name, args, payload, self) =>
      this.#perform(name, args, payload, self),
    );
    this.#connections.add(connection);
    connection.onClose(() => void this.#connections.delete(connection));
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

  /** Refuses what is asked from now on, ends every connection once its requests are answered, and waits for that. */
  async stop(): Promise<void> {
    this.#stopping = true;
    // Requests that waited for `serve` must not wait for ever.
    this.#provide({});
    // Idle connections end first: what they hold may be what the requests of the others wait for.
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
  readonly #atEnd: (() => Promise<void> | void)[] = [];
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
    // What went wrong shows in 'close', which always follows.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#socketClosed = true;
      this.#endWhenIdle();
    });
  }

  onClose(work: () => Promise<void> | void): void {
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
      // Not one of us, or out of step: nothing that follows can be understood.
      this.#socket.destroy();
      return;
    }
    if (this.#requests >= channelRequestsMax) this.#socket.pause();
  }

  #begin(frame: Frame): void {
    this.#requests++;
    void this.#answer(frame).finally(() => {
      this.#requests--;
      if (this.#requests < channelRequestsMax) this.#socket.resume();
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

  async #runAtEnd(work: () => Promise<void> | void): Promise<void> {
    try {
      await work();
    } catch {
      // The process that would want to know is gone; what it left is removed when the archive is next opened.
    }
  }
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** What asks the process that writes. */
export interface ChannelClient {
  /**
   * Asks for an operation and waits for its answer. Throws what the operation threw; `closed` when the other process has
   * gone, and then it is not known whether the operation was done; `limit` when the request is too large to send.
   */
  request(operation: string, args: unknown, payload?: Uint8Array): Promise<unknown>;
}

/** The other side of the channel, over one connection. */
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

  /** Whether the process that writes is still there, as far as this one has noticed. */
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
    'the process that writes to this folder has gone: run the command again',
  );
}
