import { statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { load } from 'js-yaml';
import {
  type Checkpoint,
  LogstrataError,
  readBounded,
  type AgentStore,
  type Codec,
  type CursorSession,
} from '../../engine/index.js';
import {
  beginning,
  checkpointAt,
  contentBehind,
  headBytesMax,
  tailBytesMax,
} from '../sources/source-position.js';
import { LogNames } from '../collect/logs/log-names.js';
import { readAt, realLogFiles } from '../collect/logs/log-files.js';
import type { FileInput, AgentDefinition } from '../definition/definition.js';
import { describeSystemError } from '../sources/byte-source.js';
import { FugoBatches, type FugoDatabase, type FugoTable } from './fugo-database.js';

/** How far the public service has read each log: path of the log to the offset after the last line read. */
export type FugoOffsets = ReadonlyMap<string, number>;

/** One line per log with a path and a number: room for a hundred thousand logs. */
const offsetsBytesMax = 16 * 1024 * 1024;

/** Path of the offsets file that the service keeps next to its database by default; undefined where it does not exist. */
export function offsetsBeside(database: string): string | undefined {
  const path = join(dirname(database), 'offsets.yaml');
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? path : undefined;
}

/** Reads an offsets file. Throws `SourceError` where it can't be read, and `invalid` for another kind of file. */
export function readOffsets(path: string): FugoOffsets {
  let text: string;
  try {
    const bytes = readBounded(path, offsetsBytesMax);
    if (bytes.length > offsetsBytesMax) throw noOffsets(path, `it has more than ${offsetsBytesMax} bytes`);
    text = bytes.toString('utf8');
  } catch (error) {
    if (error instanceof LogstrataError) throw error;
    throw describeSystemError(error, path);
  }
  let content: unknown;
  try {
    content = text.trim() === '' ? {} : load(text);
  } catch (error) {
    throw noOffsets(path, error instanceof Error ? error.message.split('\n', 1)[0]! : String(error));
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw noOffsets(path, 'it is not a list of paths');
  const offsets = new Map<string, number>();
  for (const [log, offset] of Object.entries(content)) {
    if (!Number.isSafeInteger(offset) || (offset as number) < 0)
      throw noOffsets(path, `${JSON.stringify(offset)} is not a valid offset, for ${log}`);
    offsets.set(log, offset as number);
  }
  return offsets;
}

function noOffsets(path: string, why: string): LogstrataError {
  return new LogstrataError('invalid', `${path} is not an offsets file of the Fugo service: ${why}`, {
    path,
  });
}

/**
 * Checkpoints for an agent's logs at the offsets up to which the service has read them. A log that is gone or shorter than
 * its offset gets none: it is another log or was truncated, and the service would read it from the beginning too.
 */
export async function checkpointsOf(offsets: FugoOffsets, file: FileInput): Promise<Checkpoint[]> {
  const names = new LogNames(file);
  const checkpoints: Checkpoint[] = [];
  for (const [path, offset] of offsets) {
    const name = relative(file.directory, path);
    if (offset === 0 || name.startsWith('../') || names.read(name)?.direct !== true) continue;
    const checkpoint = await checkpointOf(path, offset);
    if (checkpoint !== undefined) checkpoints.push(checkpoint);
  }
  return checkpoints;
}

async function checkpointOf(path: string, offset: number): Promise<Checkpoint | undefined> {
  try {
    const handle = await realLogFiles.open(path);
    try {
      const status = await handle.status();
      if (status.sizeBytes < offset) return undefined;
      const head = await readAt(handle, 0, Math.min(headBytesMax, offset));
      const tailBytes = Math.min(tailBytesMax, offset);
      const tail = await readAt(handle, offset - tailBytes, tailBytes);
      return checkpointAt(
        { ...beginning, ...contentBehind(beginning, head, offset, tail) },
        { path, status, target: null },
      );
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw describeSystemError(error, path);
  }
}

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
