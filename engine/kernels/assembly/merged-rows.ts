// Writes rows of several tables in one order as lines of JSON or CSV. `../merged-rows.ts` lays out the tables and the list.
import { copyLoose } from './copy';
import {
  agentsOfCall,
  beginLines,
  columnCountOfCall,
  columnsOfCall,
  Csv,
  descriptorBytes,
  endLine,
  fixedBytesOfCall,
  isCsv,
  isCsvOfCall,
  Json,
  keyBytesOffset,
  keyOffset,
  leadOfCall,
  ordinalsOfCall,
  rowsAhead,
  rowsOfCall,
  toOfCall,
  touchRows,
  writeDigits,
  writeRows,
  writeValues,
} from './json-rows';

/** Copies the key of a column. Returns the end. */
function writeKey(at: usize, columns: usize, column: usize): usize {
  const keyBytes = load<u32>(column, keyBytesOffset);
  copyLoose(at, columns + <usize>load<u32>(column, keyOffset), keyBytes);
  return at + keyBytes;
}

/** Loads the data of the entries [from, to), table by table, as `touchRows` does. `rows` has room for as many row numbers. */
function touchEntries(
  tables: usize,
  tableCount: u32,
  list: usize,
  entryBytes: usize,
  rows: usize,
  from: u32,
  to: u32,
): void {
  for (let table: u32 = 0; table < tableCount; table++) {
    let count: u32 = 0;
    for (let i = from; i < to; i++) {
      const entry = list + <usize>i * entryBytes;
      if (<u32>load<u16>(entry) != table) continue;
      store<u32>(rows + ((<usize>count) << 2), load<u32>(entry, 4));
      count++;
    }
    if (count == 0) continue;
    const place = tables + ((<usize>table) << 3);
    const columns = <usize>load<u32>(place);
    touchRows(columns, columns + <usize>load<u32>(place, 4) * descriptorBytes, rows, 0, count);
  }
}

/** The entries before this one have been loaded. A call that continues a line keeps the value. */
let seen: u32 = 0;

/**
 * Writes the lines of the entries [from, to) of a list, from `at` on. An entry is the number of its table (16 bits; 16 more are not read
 * here), its row, and a position of 64 bits of each agent. Of each table, `tables` has the address of the columns and their number. The keys of
 * the first two columns are what comes before the positions and after them. `room` is for 64 row numbers. Stops and continues as `writeRows`
 * does.
 */
function writeMerged<Form>(call: usize, from: u32, firstColumn: u32, at: usize, atMax: usize): u32 {
  const tables = <usize>load<u32>(call, columnsOfCall);
  const tableCount = load<u32>(call, columnCountOfCall);
  const fixedBytes = load<u32>(call, fixedBytesOfCall);
  const list = <usize>load<u32>(call, rowsOfCall);
  const room = <usize>load<u32>(call, ordinalsOfCall);
  const to = load<u32>(call, toOfCall);
  const lead = load<u32>(call, leadOfCall);
  let isBegun = firstColumn != 0;
  beginLines(at, isBegun);
  if (!isBegun) {
    seen = from;
    if (atMax - at < <usize>fixedBytes) return from;
  }
  const valuesMax = atMax - fixedBytes;
  const entryBytes = <usize>(8 + 8 * load<u32>(call, agentsOfCall));
  for (let i = from; i < to; i++) {
    const entry = list + <usize>i * entryBytes;
    const table = tables + ((<usize>load<u16>(entry)) << 3);
    const columns = <usize>load<u32>(table);
    const columnsEnd = columns + <usize>load<u32>(table, 4) * descriptorBytes;
    if (!isBegun) {
      if (at > valuesMax) return i;
      if (i == seen) {
        seen = min<u32>(to, i + rowsAhead);
        touchEntries(tables, tableCount, list, entryBytes, room, i, seen);
      }
      // Without `lead`, the object overwrites the comma.
      if (!isCsv<Form>()) store<u8>(at, 0x2c);
      at = writeKey(at + lead, columns, columns);
      const positionsEnd = entry + entryBytes;
      for (let position = entry + 8; position < positionsEnd; position += 8) {
        store<u8>(at, 0x2e);
        at = writeDigits(at + 1, load<u64>(position));
      }
      at = writeKey(at, columns, columns + descriptorBytes);
    }
    const first = isBegun ? <usize>firstColumn : 2;
    isBegun = false;
    at = writeValues<Form>(
      at,
      columns,
      columns + first * descriptorBytes,
      columnsEnd,
      load<u32>(entry, 4),
      valuesMax,
    );
    if (at == 0) return i;
    at = endLine<Form>(at);
  }
  return to;
}

/** Writes the lines of a call, see `writeRows` and `writeMerged`. */
export function writeLines(call: usize, from: u32, firstColumn: u32, at: usize, atMax: usize): u32 {
  const isMerged = load<u32>(call, agentsOfCall) != 0;
  if (load<u32>(call, isCsvOfCall) != 0)
    return isMerged
      ? writeMerged<Csv>(call, from, firstColumn, at, atMax)
      : writeRows<Csv>(call, from, firstColumn, at, atMax);
  return isMerged
    ? writeMerged<Json>(call, from, firstColumn, at, atMax)
    : writeRows<Json>(call, from, firstColumn, at, atMax);
}
