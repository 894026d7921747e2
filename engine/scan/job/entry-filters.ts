import type { BytesColumn } from '../../columns/column.js';
import {
  addEntries,
  entryFilterBytes,
  entryFilterShift,
  entryHash,
  mayHaveEntry,
} from '../../kernels/entry-filter.js';
import { filteredEntriesMin, searchesBeforeFilter } from '../../terms/limits.js';

/** A filter over the entries of a dictionary, kept while the column is in memory. `bitmap` is null until the filter is made. */
interface EntryFilter {
  searches: number;
  shift: number;
  bitmap: Uint8Array | null;
}

const known = new WeakMap<BytesColumn, EntryFilter>();

/**
 * Whether a dictionary may have `wanted` as an entry; false only where it has not. Most dictionaries lack what a query asks for, and such a
 * query spends most of its time reading all of their entries. So a dictionary gets a filter once it has been searched so often that making
 * the filter takes no longer than the searches have taken.
 */
export function mayHaveExact(entries: BytesColumn, wanted: Uint8Array): boolean {
  if (entries.length < filteredEntriesMin) return true;
  let filter = known.get(entries);
  if (filter === undefined) {
    filter = { searches: 0, shift: entryFilterShift(entries.length), bitmap: null };
    known.set(entries, filter);
  }
  if (filter.bitmap === null) {
    if (++filter.searches <= searchesBeforeFilter) return true;
    filter.bitmap = new Uint8Array(entryFilterBytes(filter.shift));
    addEntries(entries.offsets, entries.bytes, entries.length, filter.shift, filter.bitmap);
  }
  return mayHaveEntry(entryHash(wanted, 0, wanted.length), filter.shift, filter.bitmap);
}
