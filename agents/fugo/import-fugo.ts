import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type AgentStore,
  type Checkpoint,
  type Codec,
  type CursorSession,
  LogstrataError,
} from '../../engine/index.js';
import type { AgentDefinition } from '../definition/definition.js';
import { FugoBatches } from './fugo-batches.js';
import type { FugoDatabase, FugoTable } from './fugo-database.js';
import { checkpointsOf, type FugoOffsets } from './fugo-offsets.js';

/** What is imported, and where to. */
export interface FugoImport {
  readonly store: AgentStore;
  readonly definition: AgentDefinition;
  readonly database: FugoDatabase;
  readonly table: FugoTable;
  readonly offsets: FugoOffsets;
  readonly codec?: Codec | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the table, 0 … 1, and the number of records read. */
  readonly onProgress: (fraction: number, records: number) => void;
}

/** Result of importing a table. */
export interface FugoResult {
  readonly records: number;
  /** Cursors of the first and the last of these records; null without records. */
  readonly firstCursor: number | null;
  readonly lastCursor: number | null;
  /** Bytes of the values that were read, and of the files that the records were stored in (`bytesOnDisk`). */
  readonly inputBytes: number;
  readonly bytesOnDisk: number;
  readonly unreadableValues: number;
  readonly replacedBytes: number;
  /** Columns of the table that no field is named after; they were not imported. */
  readonly columnsLeft: readonly string[];
  /** Number of logs that are followed from the service's offsets. */
  readonly logs: number;
}

/**
 * Imports the records of a table that are not stored yet, each under its own cursor, and the offsets of the agent's logs, in
 * one publication. Throws what `CursorSession` throws, and the errors of reading the database; nothing is stored then.
 */
export async function importFugo(wanted: FugoImport): Promise<FugoResult> {
  const { store, definition, offsets } = wanted;
  const session = await store.beginCursorLoad(wanted.codec === undefined ? {} : { codec: wanted.codec });
  try {
    const batches = new FugoBatches(session.schema, wanted.table);
    const read = await readTable(wanted, session, batches);
    const checkpoints = await newCheckpoints(store, await logsOf(definition, offsets));
    const { counters } = batches;
    let bytesOnDisk = 0;
    if (read.records > 0 || checkpoints.length > 0) {
      const check = (): Promise<void> => Promise.resolve(wanted.database.requireUnchanged());
      ({ bytesOnDisk } = await session.commit({ checkpoints, counters, check }));
    }
    const fields = new Set(definition.fields.map(({ name }) => name));
    const columnsLeft = wanted.table.columns.filter((column) => !fields.has(column));
    return { ...read, ...counters, bytesOnDisk, columnsLeft, logs: checkpoints.length };
  } finally {
    await session.abort();
  }
}

function logsOf({ file }: AgentDefinition, offsets: FugoOffsets): Promise<Checkpoint[]> {
  return file === undefined ? Promise.resolve([]) : checkpointsOf(offsets, file);
}

/** Excludes logs that the store already has a checkpoint of: these are followed from there. */
async function newCheckpoints(store: AgentStore, checkpoints: readonly Checkpoint[]): Promise<Checkpoint[]> {
  const known = new Set((await store.checkpoints()).map(({ inode }) => inode));
  return checkpoints.filter(({ inode }) => !known.has(inode));
}

async function readTable(
  { database, table, signal, onProgress }: FugoImport,
  session: CursorSession,
  batches: FugoBatches,
): Promise<Pick<FugoResult, 'records' | 'firstCursor' | 'lastCursor'>> {
  const from = session.nextOrdinal;
  let records = 0;
  let firstCursor: number | null = null;
  let lastCursor: number | null = null;
  const store = async (): Promise<void> => {
    const { batch, cursors } = batches.take();
    await session.append(batch, cursors);
    records += batch.length;
    onProgress((lastCursor! - from + 1) / (table.lastCursor - from + 1), records);
    // Reading is synchronous: let signals and the terminal have their turn.
    await nextTurn();
    signal.throwIfAborted();
  };
  for (const row of database.rows(table.name, batches.columns, from)) {
    if (!batches.add(row)) {
      const message = `a text of the record with the cursor ${row.cursor} of table ${table.name} is too long: nothing was stored`;
      throw new LogstrataError('limit', message);
    }
    firstCursor ??= row.cursor;
    lastCursor = row.cursor;
    if (batches.isFull) await store();
  }
  if (lastCursor !== null) await store();
  return { records, firstCursor, lastCursor };
}
