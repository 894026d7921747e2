import { headerOf } from './header-lines.js';
import { textOfAddress } from './remote-address.js';
import type { TransportRequest } from './transport.js';
import type { UwsHttpRequest, UwsHttpResponse } from './uws-binary.js';

/** A request as uWebSockets.js has read it: HTTP/1.1, or it would have refused it. */
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
    // The library's own look-up takes an empty value for a missing header, and gives only the first of several. Whether there is a body must
    // not depend on that.
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
