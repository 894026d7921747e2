import { realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { LogstrataError } from '../terms/errors.js';
import type { Directory } from '../store/disk/directory.js';
import { openRealDirectory } from '../store/disk/real-directory.js';
import { AgentFolders } from '../store/manifest/agent-folders.js';
import { connectToWriter, lockForWriting, type WriterLock } from '../store/writer/writer-link.js';
import { refused, writerOperations } from '../store/writer/writer-operations.js';

/** A folder that data folders are copied to. While it is open nothing else writes there, and nothing reads. */
export interface BackupFolder {
  readonly directory: Directory;
  /** Agents that it holds, sorted. */
  agents(): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * Opens the folder at the absolute `path`, which is made where it is not there, for a copy of the data folder at `source`. Throws `invalid` where one of the
 * two lies in the other, or the folder holds something and no records, and `locked` where another process writes to it.
 */
export async function openBackupFolder(path: string, source: string): Promise<BackupFolder> {
  assertApart(path, source);
  const directory = await openRealDirectory(path, { create: true });
  const { location } = directory;
  // Links may lead from one into the other.
  assertApart(await realpath(location), await realpath(source));
  const lock = await lockForWriting(location, 'backup');
  if (lock === undefined) throw await lockedBy(location);
  const refusal = `process ${process.pid} is updating the copy in ${location}: wait until it has ended`;
  const noWriter = () => Promise.reject(new LogstrataError('locked', refusal));
  lock.serve(refused(writerOperations(noWriter), refusal));
  const folders = new AgentFolders(directory, () => {});
  try {
    await assertCopy(directory, folders);
  } catch (error) {
    await end(lock);
    throw error;
  }
  return { directory, agents: () => folders.agents(), close: () => end(lock) };
}

async function end(lock: WriterLock): Promise<void> {
  await lock.stopServing();
  await lock.release();
}

function assertApart(target: string, source: string): void {
  const isWithin = (inner: string, outer: string): boolean =>
    inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : `${outer}${sep}`);
  if (!isWithin(target, source) && !isWithin(source, target)) return;
  throw new LogstrataError(
    'invalid',
    `a copy of ${source} can't be stored in ${target}: name a folder that is not inside the other, nor contains it`,
    { path: target },
  );
}

async function lockedBy(location: string): Promise<LogstrataError> {
  const link = await connectToWriter(location);
  const who = link === undefined ? 'another process' : `process ${link.holder.pid} (${link.holder.role})`;
  await link?.close();
  return new LogstrataError('locked', `${who} writes to ${location}: stop it, or name another folder`, {
    path: location,
  });
}

/** Throws `invalid` for a folder with other things in it, which was hardly meant. Names with a dot or `_` first are the lock's, the tokens', and file systems' own. */
export async function assertCopy(directory: Directory, folders: AgentFolders): Promise<void> {
  const other = (await directory.list('')).find((name) => !/^[._]/.test(name) && name !== 'lost+found');
  if (other === undefined || (await folders.agents()).length > 0) return;
  throw new LogstrataError(
    'invalid',
    `${directory.location} contains ${JSON.stringify(other)} but no records: name an empty or new folder, or an earlier copy`,
    { path: directory.location },
  );
}
