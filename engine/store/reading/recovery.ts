import { closing } from '../../core/waiting.js';
import { DamageError, isLogstrataError, LogstrataError } from '../../core/errors.js';
import type { AgentState, HotFile } from './agent-state.js';
import { filePieceBytes } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import type { Directory, ReadableFile, WritableFile } from '../disk/directory.js';
import { readHotSegment } from '../hot/hot-segment-file.js';
import {
  keepPredecessor,
  newestManifestNumber,
  readNewestManifest,
  lostManifest,
  ownFiles,
  renamedFiles,
  unnamedFiles,
} from '../manifest/manifest-file.js';
import type { HotEntry, Manifest } from '../manifest/manifest.js';
import { withFile } from '../sealed/segment-file.js';

/** The writer's newest committed state, for readers in other processes. */
export interface Heads {
  readonly manifest: number;
  /** Committed length of each hot file in bytes, by its path. */
  readonly hot: Readonly<Record<string, number>>;
}

/** Attempts to read a manifest and heads that belong together while the writer keeps publishing. */
const headsAttemptsMax = 100;

/** `writer` may write to the files, because no other process does; `reader` must not. */
export type RecoveryRole = 'writer' | 'reader';

/**
 * Updates `state` to the newest committed state on disk. `heads` asks the writer and gives undefined when there is no writer. Hot data is
 * then made durable before it is read, so that no query returns records that a crash could undo. Damage is stored in `state.damage`: it
 * fails the queries of this agent, not the process.
 */
export async function readCommitted(
  directory: Directory,
  state: AgentState,
  heads: () => Promise<Heads | undefined>,
  role: RecoveryRole = 'reader',
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const known = await heads();
    try {
      if (known !== undefined && known.manifest === state.manifest?.number) {
        await readHotFiles(directory, state, known, role);
        return;
      }
      const manifest = await readStoredManifest(directory, state.agent);
      if (manifest === undefined) return;
      if (known !== undefined && known.manifest !== manifest.number && attempt < headsAttemptsMax) continue;
      if (manifest.number !== state.manifest?.number) await state.replaceManifest(manifest);
      await readHotFiles(directory, state, known, role);
      state.damage = undefined;
      return;
    } catch (error) {
      if (await hasGone(directory, state, error, attempt)) continue;
      state.damage = asDamage(error);
      return;
    }
  }
}

/** Whether a file is missing because a newer manifest no longer names it. The caller then reads that manifest. */
async function hasGone(
  directory: Directory,
  state: AgentState,
  error: unknown,
  attempt: number,
): Promise<boolean> {
  if (!isLogstrataError(error) || error.code !== 'not_found' || attempt >= headsAttemptsMax) return false;
  return (await newestManifestNumber(directory, state.agent)) !== state.manifest?.number;
}

/** Turns "not found" into damage, because the manifest names the file. Rethrows errors that say nothing about the data. */
export function asDamage(error: unknown): DamageError {
  if (error instanceof DamageError) return error;
  if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
  return new DamageError(error.message, { path: error.path, cause: error });
}

/** The newest schema of an agent's stored records. Throws like `readStoredManifest`, and `not_found` where the agent has no manifest. */
export async function readStoredSchema(directory: Directory, agent: string): Promise<Schema> {
  const manifest = await readStoredManifest(directory, agent);
  const schema = manifest?.schemas.at(-1)?.schema;
  if (schema !== undefined) return schema;
  const message = `agent "${agent}" has no records in ${directory.location}`;
  throw new LogstrataError('not_found', message, { path: agent });
}

/**
 * The newest manifest of an agent, or undefined when none was ever published. Throws like `readNewestManifest`, and `damaged` where there
 * are files of records whose manifest was lost, which no crash can cause.
 */
export async function readStoredManifest(directory: Directory, agent: string): Promise<Manifest | undefined> {
  const manifest = await readNewestManifest(directory, agent);
  const lost = manifest === undefined ? undefined : await lostManifest(directory, manifest);
  if (lost !== undefined) throw lost;
  if (manifest !== undefined) return manifest;
  const files = (await ownFiles(directory, agent)).length;
  if (files === 0) return undefined;
  // The first manifest is published before any file. So either one was published since the first read, or all manifests are lost.
  const since = await readNewestManifest(directory, agent);
  if (since !== undefined) return since;
  const path = `${directory.location}/${agent}`;
  throw new DamageError(
    `${path} has lost its manifest and has only ${files} ${files === 1 ? 'file' : 'files'} of records: ` +
      `run \`logstrata verify ${agent} --repair\` to adopt them`,
    { path },
  );
}

async function readHotFiles(
  directory: Directory,
  state: AgentState,
  heads: Heads | undefined,
  role: RecoveryRole,
): Promise<void> {
  for (const hot of state.hot) {
    const committed = hot.entry.committedBytes ?? heads?.hot[hot.entry.file] ?? null;
    if (committed !== null && committed <= hot.endBytes) continue;
    const path = `${state.agent}/${hot.entry.file}`;
    if (committed === null && heads === undefined) await makeDurable(directory, path, hot.entry, role);
    await readHotFile(directory, state, hot, committed);
  }
}

async function readHotFile(
  directory: Directory,
  state: AgentState,
  hot: HotFile,
  committed: number | null,
): Promise<void> {
  const path = `${state.agent}/${hot.entry.file}`;
  const { foldedBytes } = hot.entry;
  const read = await readHotSegment(directory, path, hot.schema, committed, hot.endBytes, foldedBytes);
  const { batches, endBytes } = read;
  for (const batch of batches) state.addBatch(hot, batch, batch.offset < foldedBytes);
  hot.endBytes = Math.max(hot.endBytes, endBytes);
}

/**
 * Makes the content of a hot file durable before it is shown, because bytes that were written but not synced may vanish in a power cut.
 * The system does not report a failed sync of an earlier process again, and may keep unwritten bytes in its cache as if they were on disk.
 * So a process that may write rewrites all bytes that no manifest counts yet, and then syncs.
 */
async function makeDurable(
  directory: Directory,
  path: string,
  { foldedBytes }: HotEntry,
  role: RecoveryRole,
): Promise<void> {
  try {
    await closing(directory.openWrite(path), async (file) => {
      if (role === 'writer') await withFile(directory, path, (source) => copyFrom(source, file, foldedBytes));
      await file.sync();
    });
  } catch (error) {
    // A reader without write permission cannot sync, and reads the file as it is.
    if (!isLogstrataError(error) || error.code !== 'io') throw error;
  }
}

async function copyFrom(source: ReadableFile, target: WritableFile, from: number): Promise<void> {
  const end = await source.size();
  for (let at = from; at < end; at += filePieceBytes)
    await target.write(at, await source.read(at, Math.min(filePieceBytes, end - at)));
}

/** Removes what crashes leave behind: unfinished units, files that no manifest names, and rejected lines of failed commits. */
export async function cleanUp(directory: Directory, state: AgentState): Promise<void> {
  const { agent } = state;
  if (state.manifest === undefined) return;
  await directory.removeDirectory(`${agent}/building`);
  const unnamed = await unnamedFiles(directory, agent, state.namedFiles());
  for (const file of [...unnamed, ...(await renamedFiles(directory, agent))])
    await directory.remove(`${agent}/${file}`);
  await keepPredecessor(directory, agent, state.manifest);
}
