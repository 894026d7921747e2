import { crc32 } from 'node:zlib';
import { pageBytesMax, metadataBytesMax } from '../core/limits.js';
import { type ChunkPlace, cursorColumn, type FileColumn, readFooter } from '../parquet/footer.js';
import { FormatError, magic, tailBytes } from '../parquet/format.js';
import { readPageHeader, type PageHeader } from '../parquet/page-header.js';
import type { ReadableFile, Directory } from '../store/disk/directory.js';
import {
  type SegmentHeader,
  describesSegment,
  readHeader,
  rowGroupChecksum,
} from '../store/sealed/segment-header.js';
import { isLogstrataError, DamageError, LogstrataError } from '../core/errors.js';
import { openDecompressor, type Codec } from '../parquet/compression.js';
import { sameSchema, type Schema, placementField, withoutRemoved } from '../core/schema.js';
import {
  type SegmentEntry,
  type AttachedList,
  livePlaces,
  storedSchema,
  liveRuns,
  mergeRejected,
  type HotEntry,
  type Manifest,
  type RejectedEntry,
  type Run,
} from '../store/manifest/manifest.js';
import { noFilters, filterBytes } from '../store/sealed/segment-filters.js';
import { withFile, type SegmentFooter, hasMagic, readBytes } from '../store/sealed/segment-file.js';
import { partitionOfTime } from '../core/cursor.js';
import { schemaOf } from '../store/reading/agent-state.js';
import { scanHotSegment, type HotBatch, type HotDamage } from '../store/hot/hot-segment-file.js';
import {
  listManifests,
  manifestName,
  readManifestFile,
  lostManifest,
  namedFiles,
  ownFiles,
} from '../store/manifest/manifest-file.js';
import { rejectedBeside } from '../store/writer/open-hot-file.js';
import { rejectedPieces, wholeLines } from '../store/manifest/rejected-file.js';
import { verifySegment, type SegmentDamage } from '../store/sealed/verify-segment.js';
import type { Coverage } from '../store/manifest/coverage.js';
import { lostDay, lostRun, missingHot, type LostRecords } from './lost-records.js';
import { examineLists } from './attached-state.js';
import { isUnsupported, writtenByAnother } from '../store/disk/checked-json.js';
import { readMetadata } from '../store/sealed/segment-metadata.js';
import { timeBoundsOf } from '../store/sealed/sealed-segment-writer.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** Upper bound on the length of a page header, which is about 60 bytes. */
const headerBytesMax = 128;

/** The place of a column chunk's pages. Each page matches the checksum in its header. */
type WalkedChunk = Omit<ChunkPlace, 'bounds'>;

interface Page {
  readonly header: PageHeader;
  /** Length of the page including its header. */
  readonly bytes: number;
  readonly headerBytes: number;
}

/**
 * Finds the column chunks of a sealed segment without its footer. Returns those of each row group; undefined for a damaged one.
 *
 * @param header header of the segment, which has the offset of each row group
 */
async function walkSegment(
  file: ReadableFile,
  { facts, schema, rowGroupOffsets }: SegmentHeader,
): Promise<(readonly WalkedChunk[] | undefined)[]> {
  const walk = new PageWalk(file, facts.footerOffset);
  const found: (readonly WalkedChunk[] | undefined)[] = [];
  for (const [group, rows] of facts.rowGroupRows.entries()) {
    const chunks = await walk.chunksFrom(rowGroupOffsets[group]!, schema.fields.length);
    const isWhole = chunks.length === schema.fields.length && chunks.every((chunk) => chunk.rows === rows);
    found.push(isWhole ? chunks : undefined);
  }
  return found;
}

class PageWalk {
  constructor(
    private readonly file: ReadableFile,
    /** Offset at which pages end. */
    private readonly limit: number,
  ) {}

  /** Up to `count` consecutive chunks from `start` on. */
  async chunksFrom(start: number, count: number): Promise<WalkedChunk[]> {
    const chunks: WalkedChunk[] = [];
    for (let at = start; chunks.length < count; at += chunks.at(-1)!.bytes) {
      const chunk = await this.chunk(at);
      if (chunk === null) break;
      chunks.push(chunk);
    }
    return chunks;
  }

  private async chunk(at: number): Promise<WalkedChunk | null> {
    const first = await this.page(at);
    if (first === null) return null;
    const dictionary = first.header.kind === 'dictionary' ? first : null;
    const data = dictionary === null ? first : await this.page(at + first.bytes);
    if (data === null || data.header.kind !== 'data') return null;
    const { header } = data;
    return {
      offset: at,
      bytes: (dictionary?.bytes ?? 0) + data.bytes,
      dictionaryPageBytes: dictionary?.bytes ?? 0,
      uncompressedBytes: (dictionary === null ? 0 : plainBytes(dictionary)) + plainBytes(data),
      dataEncoding: header.encoding,
      rows: header.rows,
      nullCount: header.nullCount,
    };
  }

  /** The page at `at`; null if there is none or if its checksum does not match. */
  private async page(at: number): Promise<Page | null> {
    const bytes = await this.file.read(at, Math.min(headerBytesMax, this.limit - at));
    try {
      const { header, bodyAt } = readPageHeader(bytes, 0, this.limit - at);
      if (header.bytes > pageBytesMax || header.uncompressedBytes > pageBytesMax) return null;
      const body = await this.file.read(at + bodyAt, header.bytes);
      if (body.length !== header.bytes || crc32(body) !== header.checksum) return null;
      return { header, bytes: bodyAt + header.bytes, headerBytes: bodyAt };
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      return null;
    }
  }
}

function plainBytes({ header, headerBytes }: Page): number {
  return headerBytes + header.uncompressedBytes;
}

/** What can be read of a segment without its footer. */
export interface RecoveredSegment {
  /** A reconstructed footer without bounds, gram filters and the chunks of `_cursor`. Lost row groups have no chunks. */
  readonly footer: SegmentFooter;
  /** Indexes of row groups that are damaged. */
  readonly lost: readonly number[];
}

/** A placeholder for the chunk of `_cursor`, which is not read. */
const unreadChunk: ChunkPlace = {
  offset: 0,
  bytes: 0,
  dictionaryPageBytes: 0,
  uncompressedBytes: 0,
  dataEncoding: 0,
  rows: 0,
  nullCount: 0,
  bounds: null,
};

/**
 * Finds the row groups of a segment whose footer cannot be read, by means of its header. A row group is undamaged if each page of each
 * column matches the checksum in its page header and has the expected number of rows, and if the row group matches its checksum in the
 * segment's header. Undefined if the file is missing, its header is damaged or belongs to another segment than `entry`, or no row group is
 * undamaged.
 */
export async function recoverSegment(
  directory: Directory,
  path: string,
  entry: SegmentEntry,
  schema: Schema,
): Promise<RecoveredSegment | undefined> {
  try {
    return await withFile(directory, path, (file) => recoverFile(file, entry, storedSchema(entry, schema)));
  } catch (error) {
    if (isLogstrataError(error) && error.code === 'not_found') return undefined;
    throw error;
  }
}

async function recoverFile(
  file: ReadableFile,
  entry: SegmentEntry,
  schema: Schema,
): Promise<RecoveredSegment | undefined> {
  const header = await readHeader(file);
  if (header === null || !describesSegment(header, entry) || !sameSchema(header.schema, schema))
    return undefined;
  const walked = await walkSegment(file, header);
  const lost: number[] = [];
  const rowGroups: { rows: number; chunks: ChunkPlace[] }[] = [];
  const checksums: number[][] = [];
  for (const [group, rows] of entry.rowGroupRows.entries()) {
    const chunks = walked[group] ?? [];
    const found = await checksumsOf(file, chunks);
    const isWhole = chunks.length > 0 && rowGroupChecksum(found) === header.rowGroupChecksums[group];
    if (!isWhole) lost.push(group);
    rowGroups.push({ rows, chunks: isWhole ? [unreadChunk, ...placesOf(chunks)] : [] });
    checksums.push(isWhole ? [0, ...found] : []);
  }
  if (lost.length === rowGroups.length) return undefined;
  const columns: FileColumn[] = [
    { name: cursorColumn, content: 'cursor' },
    ...schema.fields.map(({ name, type }) => ({ name, content: type })),
  ];
  const { rows, runs, codec, schemaVersion, headerBytes, summaryBytes } = entry;
  const footer = { columns, rows, codec, rowGroups, keyValues: new Map<string, string>() };
  const metadata = { schema, schemaVersion, runs, checksums, ...noFilters, headerBytes, summaryBytes };
  const decompress = await openDecompressor(codec);
  return { footer: { footer, metadata, decompress }, lost };
}

function placesOf(chunks: readonly WalkedChunk[]): ChunkPlace[] {
  return chunks.map((place) => ({ ...place, bounds: null }));
}

/** The crc32 of each chunk of a row group. */
async function checksumsOf(file: ReadableFile, chunks: readonly WalkedChunk[]): Promise<number[]> {
  const checksums: number[] = [];
  for (const { offset, bytes } of chunks) checksums.push(crc32(await file.read(offset, bytes)));
  return checksums;
}

/** A sealed segment, divided into whole and lost rows. */
export class Finding {
  readonly livePlaces: number;
  /** Live runs in undamaged row groups. */
  readonly wholeRuns: readonly Run[];
  private readonly lostRuns: readonly Run[];

  constructor(
    readonly entry: SegmentEntry,
    readonly schema: Schema,
    /** Whether a manifest lists it. */
    readonly listed: boolean,
    readonly damages: readonly SegmentDamage[],
    /** A reconstructed footer, if the file's own cannot be read. */
    readonly footer?: SegmentFooter,
  ) {
    this.livePlaces = livePlaces(entry);
    const { whole, lost } = splitRuns(entry, damages);
    this.wholeRuns = whole;
    this.lostRuns = lost;
  }

  get file(): string {
    return this.entry.file;
  }

  /** The reason of the first damage that costs records, or else of the first damage. */
  get reason(): string {
    const [first] = this.damages;
    return (this.damages.find(({ costs }) => costs !== 'nothing') ?? first)?.reason ?? '';
  }

  /** The records of the damaged row groups, except those that are in `coverage` because another file has them. */
  lostBeyond(coverage: Coverage): LostRecords[] {
    const { reason } = this;
    const lost = this.lostRuns
      .flatMap((run) => coverage.missing(run))
      .map((run) => lostRun(this.file, reason, run));
    const rows = this.entry.rows - this.entry.runs.reduce((sum, run) => sum + run.rows, 0);
    if (rows > 0)
      lost.push({
        ...lostDay(this.file, `${reason}, and its header does not have all positions`),
        records: rows,
      });
    return lost;
  }
}

function splitRuns(entry: SegmentEntry, damages: readonly SegmentDamage[]): { whole: Run[]; lost: Run[] } {
  const isAllLost = damages.some(({ costs }) => costs === 'segment');
  const lostGroups = new Set(
    damages.filter(({ costs }) => costs === 'rowGroup').map(({ rowGroup }) => rowGroup),
  );
  const whole: Run[] = [];
  const lost: Run[] = [];
  let end = 0;
  entry.rowGroupRows.forEach((rows, group) => {
    const first = end;
    end += rows;
    const into = isAllLost || lostGroups.has(group) ? lost : whole;
    for (const run of liveRuns(entry)) {
      const from = Math.max(run.firstRow, first);
      const to = Math.min(run.firstRow + run.rows, end);
      const firstOrdinal = run.firstOrdinal + from - run.firstRow;
      if (from < to) into.push({ partition: run.partition, firstOrdinal, firstRow: from, rows: to - from });
    }
  });
  return { whole, lost };
}

/** A hot file and its undamaged batches. */
export interface HotFinding {
  readonly file: string;
  readonly listed: boolean;
  /** The file's entry in the manifest, or what it would be. */
  readonly entry: HotEntry;
  readonly schema: Schema;
  readonly batches: readonly HotBatch[];
  readonly damages: readonly HotDamage[];
}

/** Everything that was found of an agent. */
export interface Findings {
  /** The newest readable manifest. */
  base: Manifest | undefined;
  /** Whether the manifest must be rebuilt from the files, because there is none or the newest is damaged. */
  isRebuilt: boolean;
  /** Whether nothing is damaged or missing. */
  isWhole: boolean;
  /** Highest number of all manifests, readable or not; 0 for none. */
  highestNumber: number;
  badManifests: string[];
  schemas: { version: number; schema: Schema }[];
  segments: Finding[];
  hot: HotFinding[];
  /** Readable lists of attached files. */
  attached: AttachedList[];
  /** Number of records in hot files that are kept unchanged. */
  hotRecordsKept: number;
  rejected: { readonly entry: RejectedEntry; readonly listed: boolean }[];
  badRejected: { file: string; reason: string }[];
  /** Files from which nothing can be read. */
  illegible: { file: string; reason: string }[];
  lost: LostRecords[];
  highestPartition: number;
}

/** Reads every manifest, and every byte of every file that may hold records. Changes nothing. */
export async function examine(context: RepairContext, options: RepairOptions): Promise<Findings> {
  const { directory, agent } = context;
  const found: Findings = {
    base: undefined,
    isRebuilt: false,
    isWhole: false,
    highestNumber: 0,
    badManifests: [],
    schemas: [],
    segments: [],
    hot: [],
    attached: [],
    hotRecordsKept: 0,
    rejected: [],
    badRejected: [],
    illegible: [],
    lost: [],
    highestPartition: 0,
  };
  await examineManifests(directory, agent, found);
  found.schemas = [...(found.base?.schemas ?? [])];
  const files = await filesOf(directory, agent, found);
  if (files.length === 0 && found.base === undefined)
    throw new LogstrataError('not_found', `${directory.location} has nothing of agent "${agent}"`, {
      path: agent,
    });
  const step = (done: number): void => {
    if (options.signal?.aborted) throw new LogstrataError('cancelled', 'the repair was stopped');
    options.onProgress?.(done / files.length);
  };
  const segments = files.filter((file) => file.startsWith('dt='));
  for (const [i, file] of segments.entries()) {
    step(i);
    await examineSegment(directory, agent, file, found);
  }
  if (options.schema !== undefined && found.schemas.length === 0)
    found.schemas.push({ version: 1, schema: options.schema });
  if (found.schemas.length === 0)
    throw new LogstrataError(
      'invalid',
      `no stored file of agent "${agent}" describes its fields: the repair needs its file in the agents folder`,
    );
  for (const file of files) if (file.startsWith('hot/')) await examineHot(directory, agent, file, found);
  const lists = await examineLists(directory, agent, found.base?.attached ?? []);
  found.attached = lists.whole;
  found.illegible.push(...lists.illegible);
  found.lost.push(...lists.lost);
  step(segments.length);
  await examineRejectedFiles(directory, agent, files, found);
  step(files.length);
  found.highestPartition = Math.max(
    found.base?.highestPartition ?? 0,
    ...segments.map((file) => partitionOfTime(lostDay(file, '').fromMs)),
    ...found.segments.map(({ entry }) => entry.runs.at(-1)!.partition),
  );
  for (const finding of found.hot)
    if (staysHot(found, finding))
      for (const { batch } of finding.batches) found.hotRecordsKept += batch.length;
  found.isWhole =
    !found.isRebuilt &&
    found.segments.every(({ damages }) => damages.length === 0) &&
    found.hot.every(({ damages }) => damages.length === 0) &&
    found.badRejected.length + found.illegible.length === 0;
  return found;
}

/** Whether the next manifest can name a hot file unchanged. It cannot if batches refer to a lost file of rejected lines. */
export function staysHot(found: Findings, { damages, batches }: HotFinding): boolean {
  if (found.isRebuilt || damages.length > 0) return false;
  const isBad = (name: string): boolean => found.badRejected.some(({ file }) => file === name);
  return !batches.some(({ meta }) => meta.rejected !== null && isBad(meta.rejected.file));
}

async function examineManifests(directory: Directory, agent: string, found: Findings): Promise<void> {
  const { numbers, impossible } = await listManifests(directory, agent);
  found.highestNumber = numbers.at(-1) ?? 0;
  found.badManifests.push(...impossible);
  for (const number of numbers.reverse()) {
    try {
      const manifest = await readManifestFile(directory, agent, number);
      found.base ??= manifest;
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      found.badManifests.push(manifestName(number));
    }
  }
  // A file with an impossible number may be the newest manifest under a damaged name.
  const isNewest = found.base !== undefined && found.base.number === found.highestNumber;
  const isLost = isNewest && (await lostManifest(directory, found.base!)) !== undefined;
  found.isRebuilt = !isNewest || isLost || impossible.length > 0;
}

/** The files that the manifest names. If it has to be rebuilt, also all files that it might have named. */
async function filesOf(directory: Directory, agent: string, found: Findings): Promise<string[]> {
  const files = new Set(found.base === undefined ? [] : namedFiles(found.base, []));
  if (found.isRebuilt) for (const file of await ownFiles(directory, agent)) files.add(file);
  return [...files].sort();
}

async function examineSegment(
  directory: Directory,
  agent: string,
  file: string,
  found: Findings,
): Promise<void> {
  const { base } = found;
  const known = base?.segments.find((entry) => entry.file === file);
  let entry: SegmentEntry;
  let schema: Schema;
  if (known !== undefined) {
    entry = known;
    schema = schemaOf(base!, known.schemaVersion);
  } else {
    try {
      const read = await readFoundSegment(directory, agent, file);
      schema = read.schema;
      entry = { ...read.entry, schemaVersion: versionOf(found, read.schema, read.entry.schemaVersion) };
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      found.illegible.push({ file, reason: error.message });
      found.lost.push(lostDay(file, error.message));
      return;
    }
  }
  const damages = await verifySegment(directory, `${agent}/${file}`, entry, schema);
  const recovered = damages.some(({ costs }) => costs === 'segment')
    ? await recoverSegment(directory, `${agent}/${file}`, entry, schema)
    : undefined;
  const listed = known !== undefined;
  found.segments.push(
    recovered === undefined
      ? new Finding(entry, schema, listed, damages)
      : new Finding(entry, schema, listed, withoutFooter(damages, recovered.lost), recovered.footer),
  );
}

/** The damages of a segment whose footer was reconstructed: the footer costs nothing, only the row groups that were not found do. */
function withoutFooter(damages: readonly SegmentDamage[], lost: readonly number[]): SegmentDamage[] {
  const [first] = damages.filter(({ costs }) => costs === 'segment');
  const reason = `${first!.reason}, and some row groups are damaged`;
  const groups = lost.map((rowGroup) => ({ ...first!, reason, rowGroup, costs: 'rowGroup' as const }));
  return [{ ...first!, costs: 'nothing' }, ...groups];
}

async function isThere(directory: Directory, path: string): Promise<boolean> {
  try {
    await directory.size(path);
    return true;
  } catch (error) {
    if (isLogstrataError(error) && error.code === 'not_found') return false;
    throw error;
  }
}

/** The version for a file's schema in the next manifest: the version in the file, unless another schema has it already. */
function versionOf(found: Findings, schema: Schema, wanted: number): number {
  const same = found.schemas.find((known) => sameSchema(known.schema, schema));
  if (same !== undefined) return same.version;
  const isTaken = found.schemas.some(({ version }) => version === wanted);
  const version = isTaken ? Math.max(...found.schemas.map((known) => known.version)) + 1 : wanted;
  found.schemas.push({ version, schema });
  found.schemas.sort((a, b) => a.version - b.version);
  return version;
}

async function examineHot(directory: Directory, agent: string, file: string, found: Findings): Promise<void> {
  const known = found.base?.hot.find((entry) => entry.file === file);
  if (known !== undefined) {
    await readHot(directory, agent, found, known, schemaOf(found.base!, known.schemaVersion), true);
    return;
  }
  for (const { version, schema } of found.schemas) {
    const entry = {
      file,
      schemaVersion: version,
      committedBytes: null,
      foldedBytes: 0,
      runs: [],
      createdMs: 0,
    };
    if (await readHot(directory, agent, found, entry, schema, false)) return;
  }
  const reason = 'its beginning is damaged, or its fields are unknown';
  found.illegible.push({ file, reason });
  found.lost.push(lostDay(file, reason));
}

/** Reads a hot file under a schema. Returns false if the file has another schema. */
async function readHot(
  directory: Directory,
  agent: string,
  found: Findings,
  entry: HotEntry,
  schema: Schema,
  listed: boolean,
): Promise<boolean> {
  const { file, foldedBytes } = entry;
  const path = `${agent}/${file}`;
  if (!(await isThere(directory, path))) {
    // It may have been sealed after the older manifest: then its rows are in segments that this manifest does not list.
    const isSealed = found.isRebuilt && found.segments.some((segment) => !segment.listed);
    if (isSealed && foldedBytes === 0) return true;
    const damages = [missingHot(entry, 'the file is not there')];
    found.hot.push({ file, listed, entry, schema, batches: [], damages });
    return true;
  }
  const length = found.isRebuilt ? await lostLength(directory, path, entry) : entry;
  const { batches, damages } = await scanHotSegment(directory, path, schema, length);
  if (!listed && damages.some(({ offset }) => offset === 0)) return false;
  const last = damages.at(-1);
  if (found.isRebuilt && last !== undefined && last.offset >= foldedBytes && last.before === null)
    damages.splice(-1, 1, {
      ...last,
      reason: 'its end is not a complete batch: it is damaged or was never committed',
    });
  found.hot.push({ file, listed, entry, schema, batches, damages });
  return true;
}

/**
 * The length to examine when the manifest is rebuilt: the whole file, because batches may have been committed after an older manifest
 * recorded the length.
 */
async function lostLength(
  directory: Directory,
  path: string,
  { foldedBytes }: HotEntry,
): Promise<Pick<HotEntry, 'committedBytes' | 'foldedBytes'>> {
  return { foldedBytes, committedBytes: Math.max(foldedBytes, await directory.size(path)) };
}

/** Examines the files of rejected lines: those named by a manifest or by a batch, and those whose batches are lost. */
async function examineRejectedFiles(
  directory: Directory,
  agent: string,
  files: readonly string[],
  found: Findings,
): Promise<void> {
  const inBatches = found.hot.flatMap(({ batches }) => batches.flatMap(({ meta }) => meta.rejected ?? []));
  const known = new Map(
    mergeRejected(found.base?.rejected ?? [], inBatches).map((entry) => [entry.file, entry]),
  );
  const named = new Set([...files.filter((file) => file.startsWith('rejected/')), ...known.keys()]);
  for (const file of named) await examineRejected(directory, agent, file, known.get(file), found);
  for (const { file: hot, damages } of found.hot) {
    const file = rejectedBeside(hot);
    if (damages.length === 0 || named.has(file) || !(await isThere(directory, `${agent}/${file}`))) continue;
    found.badRejected.push({ file, reason: `it belongs to damaged batches of ${hot}` });
  }
}

async function examineRejected(
  directory: Directory,
  agent: string,
  file: string,
  known: RejectedEntry | undefined,
  found: Findings,
): Promise<void> {
  const path = `${agent}/${file}`;
  if (known !== undefined && (await isWhole(directory, path, known))) {
    found.rejected.push({ entry: known, listed: true });
  } else if (!(await isThere(directory, path))) {
    found.badRejected.push({ file, reason: 'the file is not there' });
  } else if (known !== undefined && !found.isRebuilt) {
    found.badRejected.push({ file, reason: 'its checksum differs' });
  } else {
    const entry = { file, ...(await wholeLines(directory, path)) };
    found.rejected.push({ entry, listed: known !== undefined });
  }
}

async function isWhole(directory: Directory, path: string, entry: RejectedEntry): Promise<boolean> {
  try {
    // Reading to the end verifies the length and checksum.
    for await (const _ of rejectedPieces(directory, path, entry));
    return true;
  } catch (error) {
    if (!isLogstrataError(error) || (error.code !== 'damaged' && error.code !== 'not_found')) throw error;
    return false;
  }
}

/** What a segment file says of itself, if no manifest lists it. */
export interface FoundSegment {
  /** If only the header was readable, the runs may not cover all rows. */
  readonly entry: SegmentEntry;
  readonly schema: Schema;
}

/**
 * Reads a segment's manifest entry from its footer, or if that is damaged, from its header. Facts that only a manifest knows are missing:
 * what the segment replaced, and what retention has removed of it. Throws `DamageError` if neither can be read.
 *
 * @param file path relative to the agent's folder
 */
export function readFoundSegment(directory: Directory, agent: string, file: string): Promise<FoundSegment> {
  return withFile(directory, `${agent}/${file}`, async (open) => {
    try {
      return await describe(open, file);
    } catch (error) {
      if (!(error instanceof FormatError) && !(error instanceof LogstrataError)) throw error;
      if (isUnsupported(error)) throw writtenByAnother(open.path, open.path, error);
      if (error instanceof LogstrataError && error.code !== 'damaged') throw error;
      throw new DamageError(`neither its header nor its footer describes it: ${error.message}`, {
        path: open.path,
        cause: error,
      });
    }
  });
}

async function describe(open: ReadableFile, file: string): Promise<FoundSegment> {
  const header = await readHeader(open);
  if (header === null) return describeByFooter(file, await footerAtEnd(open));
  const { facts, schema } = header;
  const { footerOffset, footerBytes, footerChecksum } = facts;
  const stored = await open.read(footerOffset, footerBytes);
  if (crc32(stored) === footerChecksum) return describeByFooter(file, { stored, footerOffset });
  return foundSegment({ ...facts, file, replaces: [] }, schema);
}

/** A segment whose file has this schema. How many rows were removed is not known here; a segment without a footer is rewritten anyway. */
function foundSegment(entry: SegmentEntry, stored: Schema): FoundSegment {
  const schema = withoutRemoved(stored);
  return { entry: schema === stored ? entry : { ...entry, removed: entry.removed ?? [] }, schema };
}

interface StoredFooter {
  readonly footerOffset: number;
  /** The footer's Thrift structure, its length and the magic number. */
  readonly stored: Uint8Array;
}

async function footerAtEnd(open: ReadableFile): Promise<StoredFooter> {
  const bytes = await open.size();
  const tail = await readBytes(open, Math.max(0, bytes - tailBytes), tailBytes);
  if (!hasMagic(tail.subarray(tailBytes - magic.length)))
    throw new DamageError('it does not end with "PAR1"', {});
  const structureBytes = new DataView(tail.buffer, tail.byteOffset, tailBytes).getUint32(0, true);
  const footerBytes = structureBytes + tailBytes;
  if (footerBytes > Math.min(bytes, metadataBytesMax))
    throw new DamageError(`it claims a footer of ${footerBytes} bytes`, {});
  const footerOffset = bytes - footerBytes;
  return { footerOffset, stored: await readBytes(open, footerOffset, footerBytes) };
}

function describeByFooter(file: string, { footerOffset, stored }: StoredFooter): FoundSegment {
  const footer = readFooter(stored.subarray(0, stored.length - tailBytes));
  const metadata = readMetadata(footer.keyValues);
  const { schema, schemaVersion, runs, gramFilters, headerBytes, summaryBytes } = metadata;
  const rowGroups = footer.rowGroups.length;
  const placement = placementField(schema);
  const bounds =
    placement < 0 ? [] : footer.rowGroups.map((group) => group.chunks[placement + 1]?.bounds ?? null);
  const entry: SegmentEntry = {
    file,
    bytes: footerOffset + stored.length,
    rows: footer.rows,
    rowGroupRows: footer.rowGroups.map(({ rows }) => rows),
    runs,
    ...timeBoundsOf(bounds),
    footerOffset,
    footerBytes: stored.length,
    footerChecksum: crc32(stored),
    schemaVersion,
    codec: footer.codec,
    gramFilterBytes: filterBytes({ ...noFilters, gramFilters }, rowGroups),
    valueFilterBytes: filterBytes({ ...metadata, gramFilters: [] }, rowGroups),
    summaryBytes,
    replaces: [],
    headerBytes,
    ...(metadata.removed === undefined ? {} : { removed: metadata.removed }),
  };
  assertCovered(entry);
  return foundSegment(entry, schema);
}

/** Asserts that the runs ascend and cover every row once. Throws `damaged`. */
function assertCovered(entry: SegmentEntry): void {
  let row = 0;
  let before: SegmentEntry['runs'][number] | undefined;
  for (const run of entry.runs) {
    const ascends =
      before === undefined ||
      run.partition > before.partition ||
      (run.partition === before.partition && run.firstOrdinal >= before.firstOrdinal + before.rows);
    if (run.firstRow !== row || run.rows < 1 || !ascends)
      throw new DamageError('its runs do not follow one another', {});
    row += run.rows;
    before = run;
  }
  const groupRows = entry.rowGroupRows.reduce((sum, rows) => sum + rows, 0);
  if (row !== entry.rows || row === 0 || groupRows !== row)
    throw new DamageError(`its runs have ${row} rows, its row groups ${groupRows} of ${entry.rows}`, {});
}

export interface RepairContext {
  readonly directory: Directory;
  readonly agent: string;
  /** Id of the unit of work that builds new segments. */
  readonly id: string;
  readonly now: () => number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

export interface RepairOptions {
  /** Asked whether files that no manifest lists are to be adopted. If refused, they are put into quarantine. */
  readonly adopt: (files: readonly string[]) => Promise<boolean>;
  /** The agent's configured schema. Needed only if no file has one. */
  readonly schema?: Schema | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
