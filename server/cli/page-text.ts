import { formatCounted } from './terminal.js';

/** Longer strings are cut in an answer. */
const stringCharactersMax = 2000;

/** What a page may have. */
export interface PageBounds {
  /** Whether the page begins at its start: then records are left out at its end, else at its start. */
  readonly isFromStart: boolean;
  readonly limit: number;
  readonly bytesMax: number;
}

/** A page of JSON Lines as text of bounded size. Whole records are left out, and long strings cut; the answer says so, and how to go on. */
export class PageText {
  readonly #bounds: PageBounds;
  #rest: Buffer = Buffer.alloc(0);
  readonly #lines: string[] = [];
  #bytes = 0;
  /** Records that the page has, and those of them that were too many. */
  #count = 0;
  #cutStrings = 0;
  #isFull = false;

  constructor(bounds: PageBounds) {
    this.#bounds = bounds;
  }

  /** Whether no further record can be added. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Adds the next bytes of the answer. */
  add(piece: Uint8Array): void {
    const bytes = Buffer.concat([this.#rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(lineEnd); end >= 0 && !this.#isFull; end = bytes.indexOf(lineEnd, start)) {
      this.#addLine(bytes.toString('utf8', start, end));
      start = end + 1;
    }
    this.#rest = Buffer.from(bytes.subarray(start));
  }

  #addLine(whole: string): void {
    const { isFromStart, bytesMax } = this.#bounds;
    let line = this.#shortened(whole);
    if (Buffer.byteLength(line) > bytesMax)
      line = `{"_cursor":"${cursorOf(whole)}","_left_out":"the record is too long: ask for some of its fields"}`;
    const bytes = Buffer.byteLength(line) + 1;
    if (isFromStart && this.#bytes + bytes > bytesMax) {
      this.#isFull = true;
      return;
    }
    this.#count++;
    this.#lines.push(line);
    this.#bytes += bytes;
    while (this.#bytes > bytesMax) this.#bytes -= Buffer.byteLength(this.#lines.shift()!) + 1;
  }

  /** A line without the ends of its long strings. Numbers keep all their digits. */
  #shortened(line: string): string {
    if (line.length <= stringCharactersMax) return line;
    return line.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, (text) => {
      if (text.length <= stringCharactersMax) return text;
      const value = JSON.parse(text) as string;
      if (value.length <= stringCharactersMax) return text;
      this.#cutStrings++;
      return JSON.stringify(
        `${value.slice(0, stringCharactersMax)}… (${value.length - stringCharactersMax} more characters)`,
      );
    });
  }

  /** The cursor of the first record; empty where there is none. */
  get first(): string {
    return cursorOf(this.#lines[0] ?? '');
  }

  /** The records, and a text about them. */
  answer(): string[] {
    const { isFromStart, limit } = this.#bounds;
    const shown = this.#lines.length;
    if (shown === 0) return ['no record'];
    const last = cursorOf(this.#lines.at(-1)!);
    const left = this.#count - shown;
    const notes = [
      formatCounted(shown, 'record'),
      ...(this.#isFull || left > 0 ? ['further ones were left out, as the answer would be too long'] : []),
      ...(this.#cutStrings > 0
        ? [`the ends of ${formatCounted(this.#cutStrings, 'long string')} were cut off`]
        : []),
      ...(isFromStart && !this.#isFull && this.#count < limit ? ['there are no later ones now'] : []),
      ...(!isFromStart && left === 0 && this.#count < limit ? ['there are no earlier ones'] : []),
    ];
    return [
      this.#lines.join('\n'),
      `${notes.join('; ')}. Earlier: before=${this.first}; later: after=${last}`,
    ];
  }
}

const lineEnd = 0x0a;

function cursorOf(line: string): string {
  return /^\{"_cursor":"([^"]*)"/.exec(line)?.[1] ?? '';
}
