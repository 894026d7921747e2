import type { Column } from '../../columns/column.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/reading/decode-foreign.js';
import { assert } from '../../terms/assert.js';
import { changeColumn, type ValueChange } from './column-source.js';

/** A column of all spans of a row group, one reading after another. */
export interface AllSpans {
  /** By span. */
  readonly columns: readonly Column[];
  /** crc32 of the bytes of the chunk; null where they were not read in one go. */
  readonly checksum: number | null;
}

/** Reads a column of all spans of a row group; which of them `read` wants means nothing. */
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
