import { isUtf8 } from 'node:buffer';
import { fieldTextBytesMax } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import { sourcesOf } from './field-writer.js';
import { Kind, type ParsedLine } from './parsed-line.js';
import { compileTemplate } from '../templates/template.js';

/** Bytes of U+FFFD, which replaces a byte of invalid UTF-8. */
const replacementBytes = 3;

/** Limit on the bytes of a text from a file's path: no system has longer paths. */
const nameBytesMax = 4096;

/** Why a line is rejected of which many fields take the same long text. */
const tooMuchTextReason = `the texts of its fields have more than ${fieldTextBytesMax} bytes together`;

/**
 * Limits the total text that the fields of a line are read from: each may be as long as the line, and there may be a
 * thousand fields. Templates with more than texts and fields are limited by their steps instead.
 */
export class FieldTexts {
  /** Longer lines must be checked by `problem`. */
  readonly lineBytesMax: number;
  /** Places of the parsed fields whose texts are taken, once per use. */
  readonly #places: readonly number[];
  /** Bytes of the constant texts of templates. */
  readonly #fixedBytes: number;

  constructor(fields: readonly FieldDefinition[], placeOf: (name: string) => number) {
    const names: string[] = [];
    let fixedBytes = 0;
    for (const field of fields) {
      const template = field.template === undefined ? undefined : compileTemplate(field.template);
      if (template === undefined) names.push(...sourcesOf(field));
      if (template?.flat === undefined) continue;
      for (const name of template.flat.names) names.push(name);
      for (const text of template.flat.texts) fixedBytes += Buffer.byteLength(text);
    }
    this.#places = names.map(placeOf).filter((place) => place >= 0);
    this.#fixedBytes = fixedBytes;
    const textBytesMax = (fieldTextBytesMax - fixedBytes) / Math.max(1, this.#places.length);
    this.lineBytesMax = Math.floor((textBytesMax - nameBytesMax) / replacementBytes);
  }

  /** Returns null, or the reason to reject a parsed line. */
  problem(line: ParsedLine): string | null {
    let bytes = this.#fixedBytes;
    for (const place of this.#places) {
      if (line.kinds[place] === Kind.absent) continue;
      const text = line.sources[place]!.subarray(line.starts[place], line.ends[place]);
      bytes += isUtf8(text) ? text.length : text.length * replacementBytes;
      if (bytes > fieldTextBytesMax) return tooMuchTextReason;
    }
    return null;
  }
}
