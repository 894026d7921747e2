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

  /** Looks headers up in the table that Node has made, except Host, of which that table has only the first line. */
  header(name: string): string | undefined {
    if (name === 'host') return headerOf(this.#request.rawHeaders, name);
    const value = this.#request.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }
}

/** Prefix of an IPv4 address on a socket that accepts both IPv4 and IPv6. */
const mappedPrefix = '::ffff:';
