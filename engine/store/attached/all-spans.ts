import type { Column } from '../../columns/column.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/reading/decode-foreign.js';
import { assert } from '../../terms/assert.js';
import { changeColumn, type ValueChange } from './column-source.js';

/** The values of a column in all spans of a row group. */
export interface AllSpans {
  /** By span. */
  readonly columns: readonly Column[];
  /** crc32 of the column chunk's bytes; null if they were not read in one pass. */
  readonly checksum: number | null;
}

/** Reads a column in all spans of a row group. `read.wanted` is ignored. */
export async function readAllSpans(read: ForeignRead, change: ValueChange): Promise<AllSpans> {
  const found = new Map<number, Column>();
  let { pages } = read;
  let checksum: number | null = null;
  for (let wanted = 0; wanted < read.spans.length; wanted++) {
    if (found.has(wanted)) continue;
    const decoded = await decodeForeign({ ...read, pages, wanted });
    for (const { span, column } of decoded.spans) found.set(span, changeColumn(column, change));
    assert(found.has(wanted), 'a reading gives the wanted span');
    pages = decoded.pages;
    checksum ??= decoded.checksum;
  }
  return { columns: read.spans.map((_, span) => found.get(span)!), checksum };
}
