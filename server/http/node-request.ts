import type { IncomingMessage } from 'node:http';
import { headerOf } from './header-lines.js';
import type { TransportRequest } from './transport.js';

/** A request as node:http has read it. */
export class NodeRequest implements TransportRequest {
  readonly method: string;
  readonly version: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly #request: IncomingMessage;

  constructor(request: IncomingMessage) {
    this.#request = request;
    this.method = request.method!;
    this.version = request.httpVersion;
    const target = request.url!;
    const question = target.indexOf('?');
    this.rawPath = question < 0 ? target : target.slice(0, question);
    this.rawQuery = question < 0 ? '' : target.slice(question + 1);
  }

  get remoteAddress(): string {
    const address = this.#request.socket.remoteAddress ?? '';
    return address.startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address;
  }

  /** Of Node's own table, which it has made already. Of several Hosts that names the first alone. */
  header(name: string): string | undefined {
    if (name === 'host') return headerOf(this.#request.rawHeaders, name);
    const value = this.#request.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }
}

/** An IPv4 address on a socket that takes IPv6 as well. */
const mappedPrefix = '::ffff:';
