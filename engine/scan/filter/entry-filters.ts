import type { BytesColumn } from '../../columns/column.js';
import {
  addEntries,
  entryFilterBytes,
  entryFilterShift,
  entryHash,
  mayHaveEntry,
} from '../../kernels/entry-filter.js';
import { filteredEntriesMin, searchesBeforeFilter } from '../../terms/limits.js';

/** What is known of the entries of a dictionary, for as long as the column is in memory. */
interface EntryFilter {
  searches: number;
  shift: number;
  bitmap: Uint8Array | null;
}

const known = new WeakMap<BytesColumn, EntryFilter>();

/**
 * Whether a dictionary may have an entry that is these bytes: false only when it has not. Most dictionaries of an archive lack what a
 * query asks for, and such a query takes most of its time for reading all of their entries. So a dictionary gets a filter once it has been
 * searched so often that making the filter takes no longer than the searches have.
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
