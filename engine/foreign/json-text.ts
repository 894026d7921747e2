import { LogstrataError } from '../terms/errors.js';
import { valueBytesMax } from '../terms/limits.js';

/** The JSON of a nested value, which is written part by part. */
export class JsonText {
  #parts: string[] = [];
  #length = 0;

  /** Adds a part. Throws `limit` when the value becomes too long. */
  add(text: string): void {
    this.#length += text.length;
    if (this.#length > valueBytesMax)
      throw new LogstrataError('limit', `a nested value of more than ${valueBytesMax} characters`);
    this.#parts.push(text);
  }

  /** Adds `{"name":`, or `,"name":` for what is not the first. */
  addName(name: string, isFirst: boolean): void {
    this.add(`${isFirst ? '' : ','}${JSON.stringify(name)}:`);
  }

  /** Adds what `writeKey` writes as the key of an object: a string as it is, anything else as the string that its JSON is. */
  addKey(writeKey: () => void): void {
    const before = this.#parts;
    this.#parts = [];
    writeKey();
    const key = this.#parts.join('');
    this.#parts = before;
    this.add(`${key.startsWith('"') ? key : JSON.stringify(key)}:`);
  }

  /** What was added; the next value begins. */
  take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return text;
  }
}
