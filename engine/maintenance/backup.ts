import { dirname } from 'node:path/posix';
import { isLogstrataError, LogstrataError } from '../core/errors.js';
import { filePieceBytes } from '../core/limits.js';
import { isSameData } from '../store/disk/checked-json.js';
import type { Directory } from '../store/disk/directory.js';
import {
  keepPredecessor,
  placeManifest,
  readNewestManifest,
  ownFiles,
} from '../store/manifest/manifest-file.js';
import { isFarOnly, type Manifest } from '../store/manifest/manifest.js';
import type { AgentState } from '../store/reading/agent-state.js';
import { withFile } from '../store/sealed/segment-file.js';

/**
 * Each attempt starts with a newer manifest and keeps the files that were copied. To reach the limit, a writer would have to publish all
 * the time.
 */
const attemptsMax = 100;

export interface BackupOptions {
  readonly signal?: AbortSignal | undefined;
  /** Fraction of the bytes to copy that was copied, 0 to 1. */
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** The result of copying one agent. */
export interface BackupResult {
  /** Number of the manifest that the copy now has. */
  readonly manifest: number;
  readonly records: number;
  /** Number of files that were copied, as a whole or the part by which they had grown, and the number of copied bytes. */
  readonly filesCopied: number;
  readonly bytesCopied: number;
  /** Number of all files of the copy, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Number of files of an earlier state that were removed from the copy. */
  readonly filesRemoved: number;
}

/** The agent to copy. */
export interface BackupSource {
  readonly directory: Directory;
  readonly state: AgentState;
  /** Refreshes the state to the newest committed one. */
  readonly refresh: () => Promise<void>;
}

/** A file of a committed state. */
interface CommittedFile {
  /** Path relative to the agent's folder. */
  readonly file: string;
  /** Committed length. */
  readonly bytes: number;
  /** Whether the file is append-only, so that a shorter copy is its beginning. */
  readonly grows: boolean;
}

interface CommittedState {
  readonly manifest: Manifest;
  readonly records: number;
  /** In the order in which they are copied. Hot files come last, because their batches refer to files of rejected lines. */
  readonly files: CommittedFile[];
}

interface Copying {
  readonly source: BackupSource;
  readonly target: Directory;
  readonly options: BackupOptions;
  filesCopied: number;
  bytesCopied: number;
}

/**
 * Copies an agent's newest committed state into another data folder. That folder can be opened after every step: first the files are
 * copied, then the manifest that names them, and then files of the previous state are removed. Of existing files only the part by which
 * they have grown is copied. So repeating the backup updates the copy, also after an interruption. The agent may be written to meanwhile.
 * Throws `conflict` if the folder holds anything but an earlier state of this agent, `damaged` if the agent is damaged.
 */
export async function backupAgent(
  source: BackupSource,
  target: Directory,
  options: BackupOptions = {},
): Promise<BackupResult> {
  const { state } = source;
  const copying: Copying = { source, target, options, filesCopied: 0, bytesCopied: 0 };
  const before = await readNewestManifest(target, state.agent);
  // The files that are copied next are in no manifest of the copy.
  if (before !== undefined) await keepPredecessor(target, state.agent, before);
  for (let attempt = 1; ; attempt++) {
    await source.refresh();
    const { manifest, records, files } = committedState(source);
    assertEarlierState(target, before, manifest);
    try {
      // Lengths of the indexes of attached files are recorded nowhere, so they are read from the file system. Indexes never grow.
      files.unshift(...(await indexFiles(source, manifest)));
      await copyFiles(copying, files);
    } catch (error) {
      if (attempt < attemptsMax && (await hasMovedOn(source, manifest, error))) continue;
      throw error;
    }
    await placeManifest(target, state.agent, manifest);
    const { filesCopied, bytesCopied } = copying;
    return {
      manifest: manifest.number,
      records,
      filesCopied,
      bytesCopied,
      files: files.length,
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      filesRemoved: await removeOthers(target, state.agent, files),
    };
  }
}

/** The committed state. Synchronous, so that it is consistent. */
function committedState({ directory, state }: BackupSource): CommittedState {
  if (state.damage !== undefined) throw state.damage;
  const { manifest, rowCount } = state;
  if (manifest === undefined)
    throw new LogstrataError('not_found', `agent "${state.agent}" has no records in ${directory.location}`);
  const files: CommittedFile[] = [
    ...manifest.segments.flatMap((entry) =>
      isFarOnly(entry) ? [] : [{ file: entry.file, bytes: entry.bytes, grows: false }],
    ),
    ...manifest.attached.map(({ file, bytes }) => ({ file, bytes, grows: false })),
    ...state.rejected().map(({ file, bytes }) => ({ file, bytes, grows: true })),
    ...state.hot.map(({ entry, endBytes }) => ({ file: entry.file, bytes: endBytes, grows: true })),
  ];
  return { manifest, records: rowCount, files };
}

async function indexFiles(
  { directory, state }: BackupSource,
  manifest: Manifest,
): Promise<readonly CommittedFile[]> {
  const files: CommittedFile[] = [];
  for (const file of manifest.attached.flatMap(({ indexes }) => indexes))
    files.push({ file, bytes: await directory.size(`${state.agent}/${file}`), grows: false });
  return files;
}

/**
 * Throws `conflict` unless the copy can be an earlier state of the same agent. Ordinals are never reused, so every ordinal assigned in the
 * copy must have been assigned in the source too.
 */
function assertEarlierState(target: Directory, copy: Manifest | undefined, newest: Manifest): void {
  if (copy === undefined) return;
  const next = new Map(newest.nextOrdinals);
  const isEarlier =
    copy.number <= newest.number &&
    (copy.number < newest.number || isSameData(copy, newest)) &&
    copy.nextOrdinals.every(([partition, ordinal]) => (next.get(partition) ?? 0) >= ordinal);
  if (isEarlier) return;
  const path = `${target.location}/${copy.agent}`;
  throw new LogstrataError(
    'conflict',
    `${path} has records that this data folder never had: it is a copy of another data folder, or was written to since; name another folder`,
    { path },
  );
}

/** Whether a file is missing because a newer state no longer needs it. */
async function hasMovedOn(
  { state, refresh }: BackupSource,
  manifest: Manifest,
  error: unknown,
): Promise<boolean> {
  if (!isLogstrataError(error) || error.code !== 'not_found') return false;
  await refresh();
  return state.manifest?.number !== manifest.number;
}

/** Copies the missing files, and makes them and their names durable. */
async function copyFiles(copying: Copying, files: readonly CommittedFile[]): Promise<void> {
  const { source, target, options } = copying;
  const { agent } = source.state;
  const missing: { readonly file: CommittedFile; readonly from: number }[] = [];
  const folders = new Set(files.map(({ file }) => dirname(file)));
  await target.makeDirectory(agent);
  for (const folder of folders) await target.makeDirectory(`${agent}/${folder}`);
  for (const file of files) {
    const from = await copiedBytes(target, `${agent}/${file.file}`, file);
    if (from === null || from < file.bytes) missing.push({ file, from: from ?? 0 });
  }
  const bytesWanted = missing.reduce((sum, { file, from }) => sum + file.bytes - from, 0);
  let done = 0;
  for (const { file, from } of missing) {
    await copyFile(copying, file, from, (bytes) => {
      done += bytes;
      copying.bytesCopied += bytes;
      options.onProgress?.(done / bytesWanted);
    });
    copying.filesCopied++;
  }
  for (const folder of folders) await target.syncDirectory(`${agent}/${folder}`);
}

/** Length of the file's copy, which is its beginning; null if there is none. A copy that cannot be its beginning is removed. */
async function copiedBytes(
  target: Directory,
  path: string,
  { bytes, grows }: CommittedFile,
): Promise<number | null> {
  try {
    const there = await target.size(path);
    const isWhole = target.replacesWhole === true;
    if (there === bytes || (grows && there < bytes && !isWhole)) return there;
    // A file that will be replaced in one step stays until then, because the previous state of the copy still names it.
    if (!isWhole) await target.remove(path);
    return null;
  } catch (error) {
    if (isLogstrataError(error) && error.code === 'not_found') return null;
    throw error;
  }
}

async function copyFile(
  { source, target, options }: Copying,
  { file, bytes }: CommittedFile,
  from: number,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const path = `${source.state.agent}/${file}`;
  await withFile(source.directory, path, async (reading) => {
    const writing = from === 0 ? await createAnew(target, path) : await target.openWrite(path);
    try {
      for (let at = from; at < bytes;) {
        options.signal?.throwIfAborted();
        const piece = await reading.read(at, Math.min(filePieceBytes, bytes - at));
        if (piece.length === 0) throw shorterThanCommitted(source, path, at, bytes);
        await writing.write(at, piece);
        at += piece.length;
        onBytes(piece.length);
      }
      await writing.sync();
    } finally {
      await writing.close();
    }
  });
}

/** Creates an empty file, replacing what an earlier attempt may have left. */
async function createAnew(target: Directory, path: string): ReturnType<Directory['create']> {
  if (target.replacesWhole !== true) await target.remove(path);
  return target.create(path);
}

function shorterThanCommitted(
  { directory }: BackupSource,
  path: string,
  at: number,
  bytes: number,
): LogstrataError {
  const where = `${directory.location}/${path}`;
  return new LogstrataError('damaged', `${where} ends at byte ${at} of ${bytes}: run \`logstrata verify\``, {
    path: where,
    offset: at,
  });
}

/** Removes the archive's own files that the copied state does not name. Returns their number. */
async function removeOthers(
  target: Directory,
  agent: string,
  files: readonly CommittedFile[],
): Promise<number> {
  const named = new Set(files.map(({ file }) => file));
  const others = (await ownFiles(target, agent)).filter((file) => !named.has(file));
  for (const file of others) await target.remove(`${agent}/${file}`);
  return others.length;
}
