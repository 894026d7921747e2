import type { Socket } from 'node:net';
import { headTimeoutMs, idleTimeoutMs, stallTimeoutMs, sweepIntervalMs } from './http-limits.js';
import type { HeadTexts } from './head-texts.js';
import { NetResponse } from './net-response.js';
import { ProblemError } from './problem.js';
import { sendProblem } from './problem-response.js';
import { closeGently } from './raw-response.js';
import { RequestReader } from './request-reader.js';
import type { ReadRequest } from './request-reader.js';
import type { RequestHandler } from './transport.js';

/** What a connection needs of its transport. */
export interface NetDoor {
  readonly methods: readonly string[];
  readonly handler: RequestHandler;
  readonly isStopping: boolean;
  /** At most `sweepIntervalMs` behind the clock. */
  readonly nowMs: number;
  readonly heads: HeadTexts;
}

/**
 * One client's connection: reads its requests and has them answered, one at a time, and the next only when the kernel has taken the
 * answer before it. So what a client does not read stays in the kernel's buffers, and one piece in ours.
 */
export class NetConnection {
  readonly socket: Socket;
  readonly door: NetDoor;
  readonly #reader: RequestReader;
  #answer: NetResponse | undefined;
  #isTaking = false;
  #isClosing = false;
  #isDraining = false;
  /** When the head that is being read has begun, or the last answer was taken. */
  #sinceMs: number;

  constructor(socket: Socket, door: NetDoor) {
    this.socket = socket;
    this.door = door;
    this.#reader = new RequestReader(door.methods);
    this.#sinceMs = door.nowMs;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    // A client that has closed its side is gone, as for node:http: what is under way for it is cancelled.
    socket.on('end', () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#answer?.leave());
    socket.on('drain', () => this.#onDrain());
    socket.on('timeout', () => socket.destroy());
  }

  /** Bytes wait for the client to take some. If it takes none for a while it is gone; node:net sees to that. */
  awaitDrain(): void {
    this.#isDraining = true;
    this.socket.setTimeout(stallTimeoutMs);
  }

  /** The answer under way has been handed over whole. */
  finishAnswer(closes: boolean): void {
    this.#answer = undefined;
    this.#sinceMs = this.door.nowMs;
    if (closes) this.#close();
    else this.#takeRequests();
  }

  /** Closes what has been idle for too long, or is too slow with a head. */
  sweep(): void {
    if (this.#answer !== undefined || this.#isClosing || this.socket.writableLength > 0) return;
    const limitMs = this.#reader.hasBegun ? headTimeoutMs : idleTimeoutMs;
    // The beginning was noted by a clock that may have been behind by one sweep.
    if (this.door.nowMs - this.#sinceMs > limitMs + sweepIntervalMs) this.socket.destroy();
  }

  /** Closes a connection that waits for a request. One that is answering closes behind the answer. */
  stop(): void {
    if (this.#answer === undefined && !this.#isClosing && this.socket.writableLength === 0) this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #onData(chunk: Buffer): void {
    if (this.#isClosing) return;
    if (!this.#reader.hasBegun) this.#sinceMs = this.door.nowMs;
    this.#reader.push(chunk);
    if (this.#answer === undefined) this.#takeRequests();
    // While an answer is under way we keep reading, to learn when the client goes away, but not without bound.
    if (this.#reader.isFull) this.socket.pause();
  }

  /** A loop, because answers that end at once would otherwise go as deep as a client sends requests ahead. */
  #takeRequests(): void {
    if (this.#isTaking) return;
    this.#isTaking = true;
    while (this.#answer === undefined && !this.#isClosing && this.socket.writableLength === 0) {
      const next = this.#reader.next();
      if (next === undefined) {
        // When the server stops, a request that is there already was still told so; then the connection closes.
        if (this.door.isStopping) this.#close();
        break;
      }
      if (!this.#reader.isFull) this.socket.resume();
      this.#begin(next);
    }
    this.#isTaking = false;
  }

  #begin({ request, isHead }: ReadRequest): void {
    const isRefused = request instanceof ProblemError;
    const answer = new NetResponse(this, isHead, isRefused || request.closes);
    this.#answer = answer;
    if (isRefused) sendProblem(answer, request);
    else this.door.handler(request, answer);
  }

  #onDrain(): void {
    if (!this.#isDraining) return;
    this.#isDraining = false;
    this.socket.setTimeout(0);
    this.#sinceMs = this.door.nowMs;
    if (this.#answer === undefined) this.#takeRequests();
    else this.#answer.goOn();
  }

  #close(): void {
    this.#isClosing = true;
    closeGently(this.socket);
  }
}
