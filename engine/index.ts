/**
 * The public interface of the engine: open an archive, append, load, scan, maintain. It knows no HTTP, no YAML and no log
 * lines. What only an open archive needs is loaded when one is opened, so that help, mistakes of usage
 * and threads that decode lines don't wait for it.
 */
import type { Archive } from './archive/archive.js';
import type { OpenOptions } from './archive/open-options.js';
import type { ReaderArchive, ReaderOptions } from './far/reader-archive.js';
import type { exportParquet as ExportParquet } from './archive/parquet-export.js';
import type {
  openBackupFolder as OpenBackupFolder,
  openBackupObjects as OpenBackupObjects,
} from './archive/backup-folder.js';
import type { rowsBetween as RowsBetween } from './far/reader-state.js';
import type { FarTier, FarTierSettings } from './far/far-tier.js';
import type { ObjectSettings, ObjectStorage } from './objects/object-storage.js';
import type { innerColumn as InnerColumn } from './foreign/inner-column.js';
import type { ZstdLibrary } from './parquet/zstd-library.js';
import type {
  readForeignFile as ReadForeignFile,
  readForeignObject as ReadForeignObject,
} from './foreign/read-foreign.js';
import type { readTextRows as ReadTextRows } from './store/attached/read-texts.js';

/** Opens a data folder: see `openArchive` in `archive/open-archive.ts`. */
export async function openArchive(path: string, options: OpenOptions): Promise<Archive> {
  const archive = await import('./archive/open-archive.js');
  return archive.openArchive(path, options);
}

/** Opens a folder that a data folder is copied to: see `openBackupFolder` in `archive/backup-folder.ts`. */
export const openBackupFolder: typeof OpenBackupFolder = async (...parameters) => {
  const backupFolder = await import('./archive/backup-folder.js');
  return backupFolder.openBackupFolder(...parameters);
};

/** Opens objects that a data folder is copied to: see `openBackupObjects` in `archive/backup-folder.ts`. */
export const openBackupObjects: typeof OpenBackupObjects = async (...parameters) => {
  const backupObjects = await import('./archive/backup-folder.js');
  return backupObjects.openBackupObjects(...parameters);
};

/** Objects that `s3://` paths name. Nothing is opened before one is asked for. */
export async function openObjectStorage(settings: ObjectSettings): Promise<ObjectStorage> {
  const storage = await import('./objects/object-storage.js');
  return new storage.ObjectStorage(settings);
}

/** The archive of a writer on another machine: see `ReaderArchive` in `far/reader-archive.ts`. */
export async function openReader(options: ReaderOptions): Promise<ReaderArchive> {
  const reader = await import('./far/reader-archive.js');
  return new reader.ReaderArchive(options);
}

/** Records between two positions, for readers on other machines: see `rowsBetween` in `far/reader-state.ts`. */
export const rowsBetween: typeof RowsBetween = async (...parameters) => {
  const reader = await import('./far/reader-state.js');
  return reader.rowsBetween(...parameters);
};

/** A far tier, for `OpenOptions.far`. Throws `unsupported` where the package that reaches it is not installed. */
export async function openFarTier(settings: FarTierSettings): Promise<FarTier> {
  const far = await import('./far/far-tier.js');
  return far.openFarTier(settings);
}

/** libzstd, instantiated once a thread. */
export async function loadZstd(): Promise<ZstdLibrary> {
  const library = await import('./parquet/zstd-library.js');
  return library.loadZstd();
}

/** Writes the answer to a query as Parquet files: see `exportParquet` in `archive/parquet-export.ts`. */
export const exportParquet: typeof ExportParquet = async (...parameters) => {
  const parquetExport = await import('./archive/parquet-export.js');
  return parquetExport.exportParquet(...parameters);
};

/** A column of such a file, or a part of one: see `innerColumn` in `foreign/inner-column.ts`. */
export async function innerColumn(
  ...parameters: Parameters<typeof InnerColumn>
): Promise<ReturnType<typeof InnerColumn>> {
  const inner = await import('./foreign/inner-column.js');
  return inner.innerColumn(...parameters);
}

/** What a file that another program wrote says of itself: see `readForeignFile` in `foreign/read-foreign.ts`. */
export const readForeignFile: typeof ReadForeignFile = async (...parameters) => {
  const reading = await import('./foreign/read-foreign.js');
  return reading.readForeignFile(...parameters);
};

/** The same of an object: see `readForeignObject` in `foreign/read-foreign.ts`. */
export const readForeignObject: typeof ReadForeignObject = async (...parameters) => {
  const reading = await import('./foreign/read-foreign.js');
  return reading.readForeignObject(...parameters);
};

/** Reads columns of a Parquet file as texts: see `readTextRows` in `store/attached/read-texts.ts`. */
export const readTextRows: typeof ReadTextRows = async (...parameters) => {
  const reading = await import('./store/attached/read-texts.js');
  return reading.readTextRows(...parameters);
};

export type { FarTier, FarTierSettings };
export type { FarEvent, FarReport, FetchResult, ShipResult } from './archive/shipping.js';

// An archive, and what it tells.
export type { AgentStore, KnownSources } from './archive/agent-store.js';
export type { Archive } from './archive/archive.js';
export type { ReadableStore, RecordStore, ScanOfState, Seen } from './archive/reading-store.js';
export type { ReaderArchive, ReaderOptions } from './far/reader-archive.js';
export type { AgentFigures, ArchiveFigures } from './archive/archive-figures.js';
export type { Trouble } from './archive/archive-figures.js';
export type { OpenOptions } from './archive/open-options.js';
export type { SeenState } from './archive/reading-store.js';
export type { RetentionOutlook } from './maintenance/agent-retention.js';
export type { BackupFolder } from './archive/backup-folder.js';
export type { BackupResult } from './maintenance/backup.js';
export type { CompactOptions, CompactResult } from './maintenance/compaction.js';
export type { LostRecords } from './maintenance/lost-records.js';
export type { RemovalPreview, RemovalRequest, StoredLoad } from './maintenance/removal.js';
export type { RepairReport } from './maintenance/repair.js';
export type { AttachedStats, StoreStats } from './maintenance/stats.js';
export type { Damage, VerifyOptions, VerifyReport } from './maintenance/verify.js';
export {
  CountBoundError,
  lackedField,
  type CountBound,
  type CountedBucket,
  type CountedValue,
  type CountQuery,
  type Counts,
  type NumberAnswers,
  type TimeBucket,
  type TimeBuckets,
} from './scan/count-query.js';
export {
  functionsOf,
  numberFunctions,
  type NumberAnswer,
  type NumberFunction,
} from './numbers/number-functions.js';
export type {
  AnswerForm,
  AnyPredicate,
  AnywherePredicate,
  CompareOp,
  FieldPredicate,
  Predicate,
  Query,
  ScanStats,
  StringOp,
} from './scan/query.js';
export type { PieceIterator, Scan, ScanOptions } from './scan/scan.js';
export type { LostLoad, Restorable } from './store/manifest/coverage.js';
export { samePolicy } from './store/manifest/retention-policy.js';
export type { PolicyCause, RetentionEvent } from './store/manifest/retention-policy.js';
export type { OverCount, Retention, Taken } from './store/manifest/retention-policy.js';
export { encodeDeleted, type DeletedRows, type RowRanges } from './store/attached/deleted-rows.js';
export type { AttachedFile, MovedFile, RemadeFile } from './store/attached/attached-list.js';

// Readers on other machines.
export { borderOf, encodeBorder, schemaTag } from './far/border.js';
export type { RowsAnswer, RowsQuestion } from './far/reader-state.js';
export type { WriterQuestion, WriterAgents, WriterClient } from './far/reader-state.js';
export { connectMsMax, farAskMsMax, readerLagMsMax } from './core/limits.js';

// Several agents in one answer.
export type { SeveralQuery } from './several/several-answer.js';
export { CursorProblem, jointOf, type SeveralCursors } from './several/several-cursor.js';
export type { SeveralSeen, SeveralStore } from './several/several-store.js';

// Records on their way in.
export type {
  AppendResult,
  CommitExtras,
  LoadBatch,
  LoadResult,
  CursorSession,
  LoadSession,
  RejectedLine,
  SourcePart,
} from './store/manifest/commit.js';
export { checkpointKey } from './store/manifest/commit.js';
export type {
  Checkpoint,
  Counters,
  LoadedPart,
  LoadEntry,
  RejectedEntry,
  RetentionPolicy,
  RetentionRule,
  RuleFilter,
} from './store/manifest/manifest.js';
export { aheadWarning, fillTimes, isAhead, lastPlacementTimes } from './store/manifest/placement.js';

// Files of other programs.
export {
  isSameFooter,
  type ForeignChunk,
  type ForeignColumn,
  type ForeignFile,
  type ForeignFormat,
} from './foreign/foreign-file.js';
export type { FileToImport, ImportedRows } from './store/attached/read-rows.js';

// Objects of object storages.
export { isObjectPath, objectPath, objectPlace } from './objects/object-client.js';
export type { ObjectStamp, ObjectVersion } from './objects/object-client.js';
export type { FoundObject, ObjectSettings, ObjectStorage } from './objects/object-storage.js';

// Columns.
export { BatchBuilder } from './columns/batch-builder.js';
export type {
  ColumnBuilder,
  FloatColumnBuilder,
  IntColumnBuilder,
  StringColumnBuilder,
} from './columns/column-builder.js';
export { columnValue, type RecordBatch } from './columns/column.js';
export { conversionOf } from './columns/convert-column.js';
export { headerBytes, unpackBatch } from './columns/packed-batch.js';

// Memory that kernels and threads share, and threads.
export { copyBytes } from './kernels/copy.js';
export { ContentHash } from './kernels/xxh64.js';
export { RangeArena } from './core/arena.js';
export { leaseMemory, type MemoryLease } from './core/memory-lease.js';
export { openScratchWithin, type Scratch } from './core/scratch.js';
export { foreignMemory, workingOn, type MemoryRange } from './core/shared-memory.js';
export { KernelModule, requireSimd, type KernelMemory } from './core/wasm.js';
export { dropInOrder, finishInOrder, mapInOrder, startInOrder, type Pending } from './workers/in-order.js';
export { Semaphore } from './workers/semaphore.js';
export { buffersOf, taskIn, type Finished } from './workers/task.js';
export { WorkerPool, workersDefault } from './workers/worker-pool.js';

// Files.
export {
  choiceField,
  countField,
  listField,
  parseJsonObject,
  textField,
  textOrNullField,
  type JsonObject,
} from './store/disk/checked-json.js';
export type { Directory, ReadableFile } from './store/disk/directory.js';
export type { Codec } from './parquet/compression.js';
export type { ZstdLibrary } from './parquet/zstd-library.js';
export { readBounded } from './store/disk/bounded-file.js';
export { fileSystemError, hasSystemCode } from './store/disk/directory.js';
export { openRealDirectory } from './store/disk/real-directory.js';

// Terms.
export { assert, AssertionError, assertNever } from './core/errors.js';
export {
  comparePositions,
  formatCursor,
  parseCursor,
  type JointPosition,
  type Position,
} from './core/cursor.js';
export { firstIndex, groupBy } from './core/arrays.js';
export { closing, orDeadline } from './core/waiting.js';
export {
  DamageError,
  isLogstrataError,
  LogstrataError,
  type ErrorCode,
  type ErrorPlace,
} from './core/errors.js';
export {
  agentsMax,
  answerBytesMax,
  calendarEndMs,
  calendarFromMs,
  configBytesMax,
  connectionsMax,
  countBucketsMax,
  countTopMax,
  fieldTextBytesMax,
  fieldsMax,
  knownQueriesMax,
  graceMsDefault,
  idleMs,
  int64Max,
  int64Min,
  jsonDepthMax,
  largeFileBytesMin,
  lineBytesMax,
  maintenanceIntervalMs,
  messageBytesMax,
  predicatesMax,
  queryTimeoutMsDefault,
  rowGroupBytesMax,
  rowGroupRowsMax,
  shownCharactersMax,
  unansweredMax,
  valueBytesMax,
  workerFileBytesMin,
  workersMax,
  zstdAfterMsDefault,
} from './core/limits.js';
export { bytesBeforeThreads } from './core/limits.js';
export { lineFormats, type LineFormat } from './core/schema.js';
export { nearName } from './core/near-name.js';
export {
  answeredValue,
  fieldNameProblem,
  filtersKey,
  fieldTypes,
  typeFacts,
  isAgentName,
  makeSchema,
  placementField,
  timeUnits,
  type AttachedColumn,
  type Field,
  type FieldIndex,
  type FieldType,
  type Schema,
  type TimeUnit,
} from './core/schema.js';
export { pointAt, pointLength } from './core/fold.js';
export { repairUtf8 } from './core/utf8.js';
