import { closing } from '../../core/waiting.js';
import { randomBytes } from 'node:crypto';
import { DamageError, LogstrataError, isLogstrataError } from '../../core/errors.js';
import { metadataBytesMax } from '../../core/limits.js';
import { isSameData, readingChecked } from '../disk/checked-json.js';
import { type Directory, joinPath, writeWhole } from '../disk/directory.js';
import { decodeManifest, encodeManifest } from './manifest-format.js';
import { type Manifest, isFarOnly, type RejectedEntry } from './manifest.js';
import { isAgentName } from '../../core/schema.js';
import { isRemovalName } from '../disk/real-directory.js';

/**
 * Manifest numbers have sixteen digits, of which the first is 0. No agent publishes 10¹⁵ times, and up to there the next number is exact as
 * a double.
 */
const manifestPattern = /^manifest-(0\d{15})$/;
const impossiblePattern = /^manifest-[1-9]\d{15}$/;
const temporaryPattern = /^manifest-\d{16}\.[0-9a-f]+\.tmp$/;

/** If the manifest is removed while a reader opens it, the reader retries. A writer would have to publish this often in the meantime. */
const readAttemptsMax = 100;

/** Published manifests that are kept: the newest, and the one before it for readers that are still opening it. */
const manifestsKept = 2;

/** Name of the manifest with this number. */
export function manifestName(number: number): string {
  return `manifest-${String(number).padStart(16, '0')}`;
}

/** The numbers of the manifests in the folder, ascending, and the names of files that look like manifests but have impossible numbers. */
export async function listManifests(
  directory: Directory,
  agentFolder: string,
): Promise<{ numbers: number[]; impossible: string[] }> {
  const names = await directory.list(agentFolder);
  const numbers = names.flatMap((name) => manifestPattern.exec(name)?.[1] ?? []).map(Number);
  return {
    numbers: numbers.sort((a, b) => a - b),
    impossible: names.filter((name) => impossiblePattern.test(name)),
  };
}

/** The number of the newest manifest, without reading it; undefined when there is none. */
export async function newestManifestNumber(
  directory: Directory,
  agentFolder: string,
): Promise<number | undefined> {
  return (await listManifests(directory, agentFolder)).numbers.at(-1);
}

/**
 * The newest manifest of an agent, or undefined when none was ever published. Throws `damaged` when it is not what was written. The
 * manifest before it is never used instead, because its answers would lack records. Throws `unsupported` for a newer format.
 */
export async function readNewestManifest(
  directory: Directory,
  agentFolder: string,
): Promise<Manifest | undefined> {
  for (let attempt = 0; attempt < readAttemptsMax; attempt++) {
    const { numbers, impossible } = await listManifests(directory, agentFolder);
    if (impossible.length > 0) throw impossibleNumber(directory, joinPath(agentFolder, impossible[0]!));
    const number = numbers.at(-1);
    if (number === undefined) return undefined;
    try {
      const manifest = await readManifestFile(directory, agentFolder, number);
      // The name is visible before it is durable. Answers from this manifest must still hold after a crash.
      await directory.syncDirectory(agentFolder);
      return manifest;
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    }
  }
  throw new LogstrataError(
    'io',
    `the manifests in ${place(directory, agentFolder)} change too fast to read`,
    {
      path: place(directory, agentFolder),
    },
  );
}

/** The error for a file with an impossible number. It may be the newest manifest with a damaged name, so ignoring it could leave out records. */
export function impossibleNumber(directory: Directory, path: string): DamageError {
  const where = place(directory, path);
  return new DamageError(
    `${where} has a number that no manifest can have: run \`logstrata verify --repair\` to put it aside`,
    { path: where },
  );
}

/** Reads one manifest by its number. Throws like `readNewestManifest`, and `not_found` when it is gone. */
export async function readManifestFile(
  directory: Directory,
  agentFolder: string,
  number: number,
): Promise<Manifest> {
  const path = joinPath(agentFolder, manifestName(number));
  const where = place(directory, path);
  const bytes = await readWhole(directory, path);
  const advice = '; run `logstrata verify --repair` to keep all intact records';
  return readingChecked('manifest', where, advice, async () => {
    const manifest = decodeManifest(bytes);
    if (manifest.number !== number) throw new DamageError(`it says that it is number ${manifest.number}`, {});
    return manifest;
  });
}

async function readWhole(directory: Directory, path: string): Promise<Uint8Array> {
  return closing(directory.openRead(path), async (file) => {
    const sizeBytes = await file.size();
    if (sizeBytes > metadataBytesMax) {
      throw new LogstrataError('limit', `${place(directory, path)} has more than ${metadataBytesMax} bytes`, {
        path: place(directory, path),
      });
    }
    return await file.read(0, sizeBytes);
  });
}

/**
 * Publishes the agent's next state durably: writes it to a temporary file, syncs it, and links it to the next number, which only one writer
 * can do.
 *
 * @throws LogstrataError `conflict` when another process has published in between; `invalid` for a state that could not be read again;
 * `limit` for one that is too large; `disk_full` and `io` when it could not be written, in which case the old one stays. If the sync of the
 * folder fails (`io`), readers may have seen the new state and a crash may undo it: nothing more can be published until the agent is opened
 * again.
 */
export async function publishManifest(
  directory: Directory,
  agentFolder: string,
  manifest: Manifest,
): Promise<void> {
  const bytes = encodeManifest(manifest);
  if (bytes.length > metadataBytesMax) {
    throw new LogstrataError('limit', `the manifest of ${manifest.agent} would have ${bytes.length} bytes`);
  }
  assertReadsBack(manifest, bytes);
  await assertNext(directory, agentFolder, manifest.number);
  const path = joinPath(agentFolder, manifestName(manifest.number));
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    await writeWhole(directory, temporary, bytes);
    await linkNext(directory, temporary, path);
  } catch (error) {
    await directory.remove(temporary).catch(() => {});
    throw error;
  }
  if ((await newestManifestNumber(directory, agentFolder)) !== manifest.number) {
    // The number was free only because another writer has passed it and removed its file.
    await directory.remove(path);
    throw conflict(directory, path);
  }
  await directory.syncDirectory(agentFolder);
  await removeOld(directory, agentFolder, manifest.number);
}

/**
 * Places a manifest that another folder has published, durably, and keeps the one before it. After a crash the newest one is the old or the
 * new one. Nobody else may write to the folder. Throws `disk_full`, `io`.
 */
export async function placeManifest(
  directory: Directory,
  agentFolder: string,
  manifest: Manifest,
): Promise<void> {
  await writeManifest(directory, agentFolder, manifest);
  const before = (await listManifests(directory, agentFolder)).numbers.at(-2) ?? 0;
  const kept = [manifestName(manifest.number), manifestName(before)];
  for (const other of await directory.list(agentFolder)) {
    const isOther = manifestPattern.test(other) || temporaryPattern.test(other);
    if (isOther && !kept.includes(other)) await directory.remove(joinPath(agentFolder, other));
  }
}

/**
 * Writes the same state under the number before it, if the folder has no other manifest than this one: it was copied, or the others were
 * damaged. Then a manifest that is alone is one whose successor was lost (`lostManifest`). Nobody else may write to the folder.
 */
export async function keepPredecessor(
  directory: Directory,
  agentFolder: string,
  manifest: Manifest,
): Promise<void> {
  const { numbers } = await listManifests(directory, agentFolder);
  if (numbers.length > 1 || manifest.number === 1) return;
  await writeManifest(directory, agentFolder, { ...manifest, number: manifest.number - 1 });
}

async function writeManifest(directory: Directory, agentFolder: string, manifest: Manifest): Promise<void> {
  const name = manifestName(manifest.number);
  const isWhole = directory.replacesWhole === true;
  const temporary = joinPath(agentFolder, `${name}.${randomBytes(4).toString('hex')}.tmp`);
  await writeWhole(directory, isWhole ? joinPath(agentFolder, name) : temporary, encodeManifest(manifest));
  if (!isWhole) await directory.rename(temporary, joinPath(agentFolder, name));
  await directory.syncDirectory(agentFolder);
}

/** Throws `invalid` unless the bytes decode to the same manifest. An unreadable newest manifest would make all records unreadable. */
function assertReadsBack(manifest: Manifest, bytes: Uint8Array): void {
  let problem = 'a part of it would be lost';
  try {
    if (isSameData(decodeManifest(bytes), manifest)) return;
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    problem = error.message;
  }
  throw new LogstrataError(
    'invalid',
    `the next manifest of ${manifest.agent} could not be read again, and was not published: ${problem}`,
  );
}

async function assertNext(directory: Directory, agentFolder: string, number: number): Promise<void> {
  const newest = (await newestManifestNumber(directory, agentFolder)) ?? 0;
  if (newest !== number - 1) throw conflict(directory, joinPath(agentFolder, manifestName(newest)));
}

async function linkNext(directory: Directory, from: string, to: string): Promise<void> {
  try {
    await directory.link(from, to);
  } catch (error) {
    if (isLogstrataError(error) && (error.code === 'exists' || error.code === 'not_found')) {
      throw conflict(directory, to);
    }
    throw error;
  }
}

function conflict(directory: Directory, path: string): LogstrataError {
  const where = place(directory, path);
  return new LogstrataError(
    'conflict',
    `another process writes here, or this one failed while publishing: ${where} exists; stop the other process and start again`,
    { path: where },
  );
}

/** Removes old manifests and the temporary files of interrupted publications. Ignores failures: the next publication tries again. */
async function removeOld(directory: Directory, agentFolder: string, number: number): Promise<void> {
  try {
    for (const name of await directory.list(agentFolder)) {
      const match = manifestPattern.exec(name);
      const isOld = match !== null && Number(match[1]) <= number - manifestsKept;
      if (isOld || temporaryPattern.test(name)) await directory.remove(joinPath(agentFolder, name));
    }
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
  }
}

function place(directory: Directory, path: string): string {
  return `${directory.location}/${path}`;
}

/** Lists the agents' folders in a data folder. */
export class AgentFolders {
  /** Names of which a warning was given already. */
  readonly #told = new Set<string>();

  constructor(
    private readonly directory: Directory,
    private readonly onWarning: (message: string) => void,
  ) {}

  /** Names of the agents that have anything stored, sorted. Skips a file that has an agent's name, and warns of it once. */
  async agents(): Promise<string[]> {
    const names: string[] = [];
    for (const name of await this.directory.list('')) {
      if (!isAgentName(name)) continue;
      if (!(await this.directory.isFolder(name))) this.#tell(name);
      else if ((await this.directory.list(name)).some(isOwn)) names.push(name);
    }
    return names;
  }

  #tell(name: string): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    const { location } = this.directory;
    this.onWarning(
      `${location}/${name} is skipped: the data folder has one folder per agent, and this is not one`,
    );
  }
}

function isOwn(file: string): boolean {
  return /^(manifest-|dt=|hot$|rejected$)/.test(file);
}

/**
 * Paths, relative to the agent's folder, of all files of a committed state: those that the manifest names, and the files of rejected lines
 * that hot batches have added since.
 */
export function namedFiles(manifest: Manifest, hotRejected: readonly RejectedEntry[]): Set<string> {
  const files = new Set<string>();
  for (const entry of manifest.segments) if (!isFarOnly(entry)) files.add(entry.file);
  for (const { file } of manifest.hot) files.add(file);
  for (const { file, indexes } of manifest.attached) for (const own of [file, ...indexes]) files.add(own);
  for (const { file } of [...manifest.rejected, ...hotRejected]) files.add(file);
  return files;
}

const ownFolders = /^(dt=\d{4,}-\d\d-\d\d|hot|rejected|attached)$/;

const ownNames = /^[0-9a-f]{12}(-\d{5,})?\.(parquet|arrows|jsonl|list|index)$/;

/** The archive's own files in an agent's folder that its newest state does not name. Crashes leave such files behind. */
export async function unnamedFiles(
  directory: Directory,
  agent: string,
  named: ReadonlySet<string>,
): Promise<string[]> {
  return (await ownFiles(directory, agent)).filter((file) => !named.has(file));
}

/**
 * The error where a manifest was lost, for example by an incomplete copy of the folder: the newest is alone, although two are kept, and
 * there are files that it does not name. Files of rejected lines are not counted, since hot files name them too.
 */
export async function lostManifest(directory: Directory, newest: Manifest): Promise<DamageError | undefined> {
  const { agent, number } = newest;
  const isAlone = async (): Promise<boolean> => {
    const { numbers } = await listManifests(directory, agent);
    return number > 1 && numbers.length === 1 && numbers[0] === number;
  };
  if (!(await isAlone())) return undefined;
  const unnamed = await unnamedFiles(directory, agent, namedFiles(newest, []));
  const files = unnamed.filter((file) => !file.startsWith('rejected/')).length;
  // A folder that is listed while its writer publishes may seem to have one manifest. It then has others the next time.
  if (files === 0 || !(await isAlone())) return undefined;
  const path = `${directory.location}/${agent}`;
  return new DamageError(
    `${path} has lost its newest manifest: of the two that are kept, only number ${number} is there, and ${files} ${files === 1 ? 'file of records is' : 'files of records are'} in no manifest. ` +
      `Copy the folder again if it is a copy, or run \`logstrata verify ${agent} --repair\` to adopt ${files === 1 ? 'it' : 'them'}`,
    { path },
  );
}

/** Renamed segment files whose removal was interrupted. They hold no live records. */
export async function renamedFiles(directory: Directory, agent: string): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list(agent)) {
    if (!folder.startsWith('dt=')) continue;
    for (const name of await directory.list(`${agent}/${folder}`))
      if (isRemovalName(name)) files.push(`${folder}/${name}`);
  }
  return files;
}

/** The archive's own files in an agent's folder, named by a manifest or not. Excludes renamed segments that wait for their removal. */
export async function ownFiles(directory: Directory, agent: string): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list(agent)) {
    if (!ownFolders.test(folder)) continue;
    for (const name of await directory.list(`${agent}/${folder}`)) {
      const file = `${folder}/${name}`;
      if (ownNames.test(name)) files.push(file);
    }
  }
  return files;
}
