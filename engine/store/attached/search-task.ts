import type { Column } from '../../columns/column.js';
import { BlockSearch, searchRoomBytes } from '../../kernels/block-search.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { bufferBytes } from '../../memory/allocator.js';
import { withKeptScratch } from '../../memory/scratch.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { searchParquet, type SearchedSpans } from '../../foreign/parquet/search-parquet.js';
import { decodeForeign } from '../../foreign/reading/decode-foreign.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import type { FileIdentity } from './attached-file.js';
import { assertSameFile } from './same-file.js';

/** A column of strings of an attached file to be searched. Every value that matches contains one of the needles. */
export interface SearchJob {
  readonly read: ForeignRead;
  readonly attached: FileIdentity;
  readonly needles: readonly KernelNeedle[];
}

/** Searches a column without keeping it. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function work({ read, attached, needles }: SearchJob): Promise<Finished<SearchedSpans>> {
  await assertSameFile(read.path, read.format, attached);
  const found = await searchParquet(read, needles);
  if (found !== null) return { result: found, transfer: [] };
  const { spans, bytesRead } = await decodeForeign(read);
  const searched = spans.map(({ span, column }) => ({ span, mayHold: mayHold(column, needles) }));
  return { result: { spans: searched, bytesRead }, transfer: [] };
}

/** Whether the concatenated bytes of all values contain a needle. Also true if there is no memory for the search. */
function mayHold(column: Column, needles: readonly KernelNeedle[]): boolean {
  const values = column.kind === 'dictionary' ? column.values : column;
  if (values.kind !== 'bytes') return true;
  const { offsets, length, bytes } = values;
  const text = bytes.subarray(offsets[0], offsets[length]);
  if (text.length === 0) return false;
  const textBytes = bufferBytes(text.length);
  return withKeptScratch(textBytes + searchRoomBytes(needles), 0, (kept) => {
    if (kept === null) return true;
    const block = kept.subarray(0, text.length);
    block.set(text);
    const search = new BlockSearch(block, null, needles, kept.subarray(textBytes));
    return search.search(text.length) !== 'none';
  });
}

/** Searches a column of a row group on a thread. */
export const searchTask: Task<SearchJob, SearchedSpans> = { module: builtModule(import.meta.url), work };
