import type { DictionaryColumn, PlainColumn } from '../../columns/column.js';
import { decodeHybrid, largestCode } from '../../kernels/bit-packing.js';
import { spreadBits } from '../../kernels/bitmap.js';
import { spreadCodes } from '../../kernels/spread.js';
import { encoding, FormatError } from '../../parquet/format.js';
import type { StoredPage } from './stored-page.js';

/** Up to this many dictionary entries, a code fits one byte. */
const byteEntriesMax = 256;

/** Collects the dictionary codes of consecutive pages. */
export class CodePages {
  readonly #codes: Uint8Array | Uint16Array;
  readonly #entries: PlainColumn;

  /** @param entries the dictionary's entries, converted to the column's type; at least one */
  constructor(rows: number, entries: PlainColumn) {
    this.#codes = entries.length <= byteEntriesMax ? new Uint8Array(rows) : new Uint16Array(rows);
    this.#entries = entries;
  }

  /** The codes of all rows, with the dictionary. */
  get column(): DictionaryColumn {
    const codes = this.#codes;
    return { kind: 'dictionary', length: codes.length, codes, values: this.#entries, validity: null };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    const codes = this.#codes.subarray(row, row + rows);
    decodeCodes(page, codes, this.#entries.length);
    if (bits !== null) spreadCodes(codes, bits, rows, present);
  }
}

/** Decodes the codes of a page to the beginning of `codes`. Throws `FormatError`, also for a code beyond the dictionary. */
function decodeCodes(page: StoredPage, codes: Uint8Array | Uint16Array, entries: number): void {
  const width = page.values[0] ?? 0;
  if (width > 8 * codes.BYTES_PER_ELEMENT) {
    // The bit width is larger than the array's elements, but no valid code is.
    codes.set(decodeEntryCodes(page, entries));
    return;
  }
  checkCodes(page, decodeHybrid(page.values, 1, page.present, width, codes), codes, entries);
}

/** Decodes the codes of a page, for a dictionary of any size. Throws `FormatError`, also for a code beyond the dictionary. */
export function decodeEntryCodes(page: StoredPage, entries: number): Uint32Array {
  const codes = new Uint32Array(page.present);
  checkCodes(page, decodeHybrid(page.values, 1, page.present, page.values[0] ?? 0, codes), codes, entries);
  return codes;
}

function checkCodes(
  { present, at, values }: StoredPage,
  end: number,
  codes: Uint8Array | Uint16Array | Uint32Array,
  entries: number,
): void {
  if (present > 0 && (values.length === 0 || end < 0))
    throw new FormatError('the dictionary codes are malformed', at);
  if (largestCode(codes, present) >= entries)
    throw new FormatError('a code is beyond the end of the dictionary', at);
}

/** Collects the booleans of consecutive pages as codes 0 and 1. */
export class BoolPages {
  readonly #codes: Uint8Array;

  constructor(rows: number) {
    this.#codes = new Uint8Array(rows);
  }

  /** The booleans of all rows, as codes into a dictionary of 0 and 1. */
  get column(): DictionaryColumn {
    const values = BigInt64Array.of(0n, 1n);
    return {
      kind: 'dictionary',
      length: this.#codes.length,
      codes: this.#codes,
      values: { kind: 'int64', length: 2, values, validity: null },
      validity: null,
    };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits, at, values } = page;
    const codes = this.#codes.subarray(row, row + rows);
    if (page.encoding === encoding.plain) {
      if (values.length < (present + 7) >> 3)
        throw new FormatError(`the page has ${values.length} bytes for ${present} bits`, at);
      spreadBits(values, present, codes);
    } else if (page.encoding === encoding.rle) {
      // The runs are preceded by their length in four bytes.
      const read = present === 0 ? 0 : values.length < 4 ? -1 : decodeHybrid(values, 4, present, 1, codes);
      if (read < 0) throw new FormatError('the runs are malformed', at);
    } else {
      throw new FormatError(`the encoding ${page.encoding} is not supported for booleans`, at);
    }
    if (bits !== null) spreadCodes(codes, bits, rows, present);
  }
}
