import { randomBytes } from 'node:crypto';
import { assertOrdinalsLeft } from '../../terms/cursor.js';
import { attachedFilesOfListMax, attachedPlacementsBytesMax } from '../../terms/limits.js';
import type { Directory } from '../disk/directory.js';
import type { CommittedValues } from '../manifest/committed-values.js';
import type { Committer } from '../manifest/committer.js';
import type { AttachedList } from '../manifest/manifest.js';
import type { AttachedFile, FileIdentity, FilePlan } from './attached-file.js';
import type { FileIndex } from './file-index.js';
import { writeAttachedList } from './attached-list.js';

/** A list and the files in it. */
export interface OpenList {
  readonly list: AttachedList;
  readonly files: readonly AttachedFile[];
}

/** An attached file that was moved or touched, with its new path, size and time. Its footer is unchanged. */
export interface MovedFile extends Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> {
  readonly id: string;
  readonly path: string;
}

/** The changes that one commit makes to attached files. */
export interface AttachedChanges {
  readonly adds: readonly FilePlan[];
  readonly moves: readonly MovedFile[];
  /** Ids of files. The positions of their rows are never assigned again. */
  readonly removes: readonly string[];
  /** New indexes of attached files, in their final place. Indexes of files that are no longer attached are ignored. */
  readonly indexes?: readonly { readonly id: string; readonly index: FileIndex }[];
}

/** The result for the files that were to be attached. */
export interface AttachedResult {
  readonly added: readonly AttachedFile[];
  /** Paths of the files whose placements exceeded the limit on memory. */
  readonly refused: readonly string[];
}

/** A committer that can change attached files. */
export interface AttachingCommitter extends Committer {
  /** Makes the changes in one manifest. A file that is attached already, with the same path and footer, is left unchanged. */
  attach(changes: AttachedChanges): Promise<AttachedResult>;
}

/** The lists that the manifest names after the changes. */
export interface ChangedLists extends AttachedResult {
  readonly lists: readonly AttachedList[];
  /** New list files, and files that the manifest no longer names. */
  readonly written: readonly string[];
  readonly leaving: readonly string[];
}

/** Writes the lists that the changes affect. The positions of new files are taken from `values`, which is updated. */
export async function changeLists(
  directory: Directory,
  agent: string,
  lists: readonly OpenList[],
  { adds, moves, removes, indexes = [] }: AttachedChanges,
  values: CommittedValues,
): Promise<ChangedLists> {
  const removed = new Set(removes);
  const moved = new Map(moves.map(({ id, ...place }) => [id, place]));
  const indexed = new Map(indexes.map(({ id, index }) => [id, { index }]));
  const isChanged = ({ id }: AttachedFile) => removed.has(id) || moved.has(id) || indexed.has(id);
  const known = new Set(lists.flatMap(({ files }) => files.map(nameOf)));
  const { fitting, refused } = fittingFiles(
    lists,
    adds.filter((plan) => !known.has(nameOf(plan))),
  );
  const added = fitting.map((plan) => withPositions(plan, values));
  const kept: AttachedList[] = [];
  const leaving: string[] = [];
  // The files of changed lists and of the last list if it has room, then the new files.
  const files: AttachedFile[] = [];
  for (const open of lists) {
    const hasRoom = added.length > 0 && open.files.length < attachedFilesOfListMax && open === lists.at(-1);
    if (!hasRoom && !open.files.some(isChanged)) {
      kept.push(open.list);
      continue;
    }
    leaving.push(open.list.file);
    for (const { id, index } of open.files)
      if (index !== undefined && (removed.has(id) || indexed.has(id))) leaving.push(index.file);
    const stay = open.files.filter(({ id }) => !removed.has(id));
    files.push(...stay.map((file) => ({ ...file, ...moved.get(file.id), ...indexed.get(file.id) })));
  }
  files.push(...added);
  const written: AttachedList[] = [];
  for (let from = 0; from < files.length; from += attachedFilesOfListMax)
    written.push(await writeAttachedList(directory, agent, files.slice(from, from + attachedFilesOfListMax)));
  return { lists: [...kept, ...written], added, refused, written: written.map(({ file }) => file), leaving };
}

/**
 * The files that fit into the limit on placements. Rows that are in no order of time need a placement for each hour and span, which stays
 * in memory while the agent is open.
 */
function fittingFiles(
  lists: readonly OpenList[],
  plans: readonly FilePlan[],
): { fitting: FilePlan[]; refused: string[] } {
  const files = lists.flatMap((list) => list.files);
  let bytes = files.reduce((sum, { placements }) => sum + placements.length, 0);
  const fitting: FilePlan[] = [];
  const refused: string[] = [];
  for (const plan of plans) {
    const fits = bytes + plan.placements.length <= attachedPlacementsBytesMax;
    if (fits) bytes += plan.placements.length;
    if (fits) fitting.push(plan);
    else refused.push(plan.path);
  }
  return { fitting, refused };
}

function nameOf({ path, footerHash }: Pick<FilePlan, 'path' | 'footerHash'>): string {
  return `${footerHash} ${path}`;
}

function withPositions({ hours, ...plan }: FilePlan, values: CommittedValues): AttachedFile {
  const runs = hours.map(([partition, rows]) => {
    const firstOrdinal = values.nextOrdinal(partition);
    assertOrdinalsLeft(partition, firstOrdinal, rows);
    return { partition, firstOrdinal, rows };
  });
  values.applyRuns(runs);
  return { id: randomBytes(6).toString('hex'), ...plan, runs };
}
