import { reasonPhrase } from './problem.js';
import type { ResponseHead } from './transport.js';

/** How heads begin, for as long as one value of `Date` (RFC 9110, section 6.6.1) holds, which has whole seconds. */
export class HeadTexts {
  readonly #date = new Date().toUTCString();
  /** Of answers that are 200, by their headers: all that are alike have the same object. */
  readonly #starts = new WeakMap<ResponseHead['headers'], string>();

  /** The lines of a head up to those that are the answer's own. */
  startOf({ status, headers }: ResponseHead): string {
    if (status !== 200) return this.#make(status, headers);
    let start = this.#starts.get(headers);
    if (start === undefined) {
      start = this.#make(status, headers);
      this.#starts.set(headers, start);
    }
    return start;
  }

  #make(status: number, headers: ResponseHead['headers']): string {
    let text = `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\nDate: ${this.#date}\r\n`;
    for (const name in headers) text += `${name}: ${headers[name]}\r\n`;
    return text;
  }
}
