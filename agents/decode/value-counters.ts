/** What became of values. */
export interface ValueCounters {
  /** Values that did not read as their field's type and are null. */
  unreadableValues: number;
  /** Byte sequences that were not UTF-8 (and halves of surrogate pairs in JSON) and became U+FFFD. */
  replacedBytes: number;
}

/** The values of one field that did not read as its type. */
export interface UnreadableField {
  /** Number of the field in its agent. */
  readonly field: number;
  readonly values: number;
  /** The text of the first of them, or its beginning. */
  readonly example: string;
}

/** A longer text is shown by its beginning. */
const exampleBytesMax = 60;

/** Counts what becomes of values over the life of a decoder, and which fields they are of. */
export class ValueTally implements ValueCounters {
  unreadableValues = 0;
  replacedBytes = 0;
  readonly #fields = new Map<number, { values: number; readonly example: string }>();
  /** Fields that were counted since a line began that may be dropped; null where none may. */
  #ofLine: number[] | null = null;
  #before = { unreadableValues: 0, replacedBytes: 0 };

  /** Counts a value of a field, whose text is source[start, end). */
  addUnreadable(field: number, source: Uint8Array, start: number, end: number): void {
    this.unreadableValues++;
    this.#ofLine?.push(field);
    const known = this.#fields.get(field);
    if (known !== undefined) {
      known.values++;
      return;
    }
    const text = Buffer.from(source.subarray(start, Math.min(end, start + exampleBytesMax))).toString();
    this.#fields.set(field, { values: 1, example: end - start > exampleBytesMax ? `${text}…` : text });
  }

  /** A line begins that may turn out to be counted elsewhere. */
  beginLine(): void {
    this.#ofLine = [];
    this.#before = { unreadableValues: this.unreadableValues, replacedBytes: this.replacedBytes };
  }

  /** Takes back what was counted since the line began. */
  dropLine(): void {
    this.unreadableValues = this.#before.unreadableValues;
    this.replacedBytes = this.#before.replacedBytes;
    for (const field of this.#ofLine ?? []) {
      const known = this.#fields.get(field)!;
      known.values--;
      if (known.values === 0) this.#fields.delete(field);
    }
    this.#ofLine = null;
  }

  /** The line stays. */
  keepLine(): void {
    this.#ofLine = null;
  }

  /** The fields with values that did not read since this was asked last. */
  takeFields(): UnreadableField[] {
    const fields = [...this.#fields].map(([field, { values, example }]) => ({ field, values, example }));
    this.#fields.clear();
    return fields;
  }
}

/** Adds up counts by field; the first example of each stays. */
export function joinUnreadable(
  into: Map<number, UnreadableField>,
  fields: readonly UnreadableField[],
): Map<number, UnreadableField> {
  for (const each of fields) {
    const known = into.get(each.field);
    into.set(each.field, known === undefined ? each : { ...known, values: known.values + each.values });
  }
  return into;
}
