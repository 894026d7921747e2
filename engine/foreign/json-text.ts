import { LogstrataError } from '../terms/errors.js';
import { valueBytesMax } from '../terms/limits.js';

/** Builds the JSON text of a nested value from parts. */
export class JsonText {
  #parts: string[] = [];
  #length = 0;

  /** Appends a part. Throws `limit` when the value exceeds `valueBytesMax` characters. */
  add(text: string): void {
    this.#length += text.length;
    if (this.#length > valueBytesMax)
      throw new LogstrataError('limit', `a nested value has more than ${valueBytesMax} characters`);
    this.#parts.push(text);
  }

  /** Appends `{"name":` for the first field of an object, `,"name":` for later ones. */
  addName(name: string, isFirst: boolean): void {
    this.add(`${isFirst ? '' : ','}${JSON.stringify(name)}:`);
  }

  /** Appends the key of an object, which `writeKey` writes as JSON: a string as it is; other JSON is quoted as a string. */
  addKey(writeKey: () => void): void {
    const before = this.#parts;
    this.#parts = [];
    writeKey();
    const key = this.#parts.join('');
    this.#parts = before;
    this.add(`${key.startsWith('"') ? key : JSON.stringify(key)}:`);
  }

  /** Returns the text and clears the builder for the next value. */
  take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return text;
  }
}
