import { headerOf } from './header-lines.js';
import { textOfAddress } from './remote-address.js';
import type { TransportRequest } from './transport.js';
import type { UwsHttpRequest, UwsHttpResponse } from './uws-binary.js';

/** A request as uWebSockets.js has read it. The version is always 1.1, because uWebSockets.js refuses all others. */
export class UwsRequest implements TransportRequest {
  readonly method: string;
  readonly version = '1.1';
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly #response: UwsHttpResponse;
  readonly #lines: string[] = [];

  constructor(response: UwsHttpResponse, request: UwsHttpRequest) {
    this.#response = response;
    this.method = request.getCaseSensitiveMethod();
    this.rawPath = request.getUrl();
    // The library's own look-up treats an empty value as a missing header, and returns only the first of several. The check whether a
    // request has a body must see all of them.
    request.forEach((name, value) => this.#lines.push(name, value));
    this.rawQuery = request.getQuery() ?? '';
  }

  get remoteAddress(): string {
    return textOfAddress(new Uint8Array(this.#response.getRemoteAddress()));
  }

  header(name: string): string | undefined {
    return headerOf(this.#lines, name);
  }
}
