import { createServer } from 'node:net';
import { LogstrataError } from '../../engine/index.js';
import { formatAddress, listenOn } from './listen.js';
import type { RequestHandler, Transport } from './transport.js';
import type { Uws, UwsApp, UwsHttpRequest, UwsHttpResponse } from './uws-binary.js';
import { UwsRequest } from './uws-request.js';
import { UwsResponse } from './uws-response.js';
import type { UwsTransportState } from './uws-response.js';

/** The transport on uWebSockets.js. */
export class UwsTransport implements Transport, UwsTransportState {
  readonly name = 'uws';
  isStopping = false;
  readonly #uws: Uws;
  readonly #handler: RequestHandler;
  #app: UwsApp | undefined;
  #listening: object | undefined;
  /** Number of open connections, and of answers under way. */
  #connections = 0;
  #answering = 0;
  /** Whether uWebSockets.js had to keep the last bytes of an answer that has ended. */
  #isKeeping = false;
  #whenQuiet: (() => void) | undefined;

  constructor(uws: Uws, handler: RequestHandler) {
    this.#uws = uws;
    this.#handler = handler;
  }

  async listen(host: string, port: number): Promise<number> {
    // Without this option uWebSockets.js names itself in every answer.
    this.#uws._cfg('silent');
    const app = this.#uws.App();
    app.filter((_response, change) => {
      this.#connections += change;
      this.#checkQuiet();
    });
    app.any('/*', (response, request) => this.#take(response, request));
    const listening = await new Promise<object | false>((resolve) => {
      const { LIBUS_LISTEN_EXCLUSIVE_PORT } = this.#uws;
      app.listen(host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, resolve);
    });
    if (listening === false) throw await this.#refusal(host, port);
    this.#app = app;
    this.#listening = listening;
    return this.#uws.us_socket_local_port(listening);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    if (this.#listening !== undefined) this.#uws.us_listen_socket_close(this.#listening);
    this.#listening = undefined;
    const quiet = new Promise<void>((resolve) => (this.#whenQuiet = resolve));
    this.#checkQuiet();
    await quiet;
    this.#close();
  }

  destroy(): Promise<void> {
    this.isStopping = true;
    this.#close();
    return Promise.resolve();
  }

  finished(isKept: boolean): void {
    this.#answering--;
    if (isKept) this.#isKeeping = true;
    this.#checkQuiet();
  }

  #take(response: UwsHttpResponse, request: UwsHttpRequest): void {
    this.#answering++;
    const taken = new UwsRequest(response, request);
    this.#handler(taken, new UwsResponse(response, taken, this));
  }

  /**
   * Lets `stop` go on once no answer is under way. uWebSockets.js gives no access to idle connections, so `stop` then closes all at once.
   * If uWebSockets.js had to keep bytes of an ended answer, `stop` goes on only when all connections have closed.
   */
  #checkQuiet(): void {
    if (!this.isStopping) return;
    if (this.#isKeeping ? this.#connections === 0 : this.#answering === 0) this.#whenQuiet?.();
  }

  #close(): void {
    this.#app?.close();
    this.#app = undefined;
    this.#listening = undefined;
  }

  /** Finds out why uWebSockets.js can't listen, which it does not say: Node is asked to listen on the same address. */
  async #refusal(host: string, port: number): Promise<LogstrataError> {
    const server = createServer();
    try {
      await listenOn(server, host, port);
    } catch (error) {
      if (error instanceof LogstrataError) return error;
      throw error;
    }
    await new Promise((resolve) => server.close(resolve));
    return new LogstrataError(
      'invalid',
      `uWebSockets.js can't listen on ${formatAddress(host, port)}; use the transport "node"`,
    );
  }
}
