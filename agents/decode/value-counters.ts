/** Counts of problems with values. */
export interface ValueCounters {
  /** Values that could not be read as their field's type and are null. */
  unreadableValues: number;
  /** Invalid UTF-8 sequences, and halves of surrogate pairs in JSON, that became U+FFFD. */
  replacedBytes: number;
  /** NULs at the beginning of lines, which were left out. */
  nulBytes: number;
}

/** Unreadable values of one field. */
export interface UnreadableField {
  /** Number of the field in its agent. */
  readonly field: number;
  readonly values: number;
  /** The first unreadable text that is not `isNoValue`, if there is one, or its beginning. */
  readonly example: string;
}

/** Limit on the bytes of an example; a longer text is cut. */
const exampleBytesMax = 60;

/** Whether an unreadable text is how logs write that there is no value: a dash or nothing. */
export function isNoValue(example: string): boolean {
  return example === '' || example === '-';
}

/** Counts problems with values over the life of a decoder, also by field. */
export class ValueTally implements ValueCounters {
  unreadableValues = 0;
  replacedBytes = 0;
  nulBytes = 0;
  readonly #fields = new Map<number, { values: number; readonly example: string }>();
  /** Fields counted since the beginning of a line that may be dropped; null outside such a line. */
  #ofLine: number[] | null = null;
  #before = { unreadableValues: 0, replacedBytes: 0 };

  /** Counts an unreadable value of a field; its text is source[start, end). */
  addUnreadable(field: number, source: Uint8Array, start: number, end: number): void {
    this.unreadableValues++;
    this.#ofLine?.push(field);
    const known = this.#fields.get(field);
    const isMissing = end - start === 0 || (end - start === 1 && source[start] === 0x2d);
    if (known !== undefined && (isMissing || !isNoValue(known.example))) {
      known.values++;
      return;
    }
    const text = Buffer.from(source.subarray(start, Math.min(end, start + exampleBytesMax))).toString();
    const example = end - start > exampleBytesMax ? `${text}…` : text;
    this.#fields.set(field, { values: 1 + (known?.values ?? 0), example });
  }

  /** Begins a line whose counts may have to be dropped, because it is decoded again elsewhere. */
  beginLine(): void {
    this.#ofLine = [];
    this.#before = { unreadableValues: this.unreadableValues, replacedBytes: this.replacedBytes };
  }

  /** Reverts what was counted since `beginLine`. */
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

  /** Keeps what was counted since `beginLine`. */
  keepLine(): void {
    this.#ofLine = null;
  }

  /** Returns the fields with unreadable values since the last call. */
  takeFields(): UnreadableField[] {
    const fields = [...this.#fields].map(([field, { values, example }]) => ({ field, values, example }));
    this.#fields.clear();
    return fields;
  }
}

/** Adds up counts by field; the first example of each is kept that is a value. */
export function joinUnreadable(
  into: Map<number, UnreadableField>,
  fields: readonly UnreadableField[],
): Map<number, UnreadableField> {
  for (const each of fields) {
    const known = into.get(each.field);
    if (known === undefined) into.set(each.field, each);
    else {
      const { example } = isNoValue(known.example) ? each : known;
      into.set(each.field, { ...known, example, values: known.values + each.values });
    }
  }
  return into;
}
