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

/** A list, and the files in it. */
export interface OpenList {
  readonly list: AttachedList;
  readonly files: readonly AttachedFile[];
}

/** An attached file that lies elsewhere now, or was touched: its footer is the same. */
export interface MovedFile extends Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> {
  readonly id: string;
  readonly path: string;
}

/** What one commit changes of the attached files. */
export interface AttachedChanges {
  readonly adds: readonly FilePlan[];
  readonly moves: readonly MovedFile[];
  /** Ids. The positions of their rows are never given again. */
  readonly removes: readonly string[];
  /** New indexes of attached files, in their final place. Those of files that are not attached any more are left out. */
  readonly indexes?: readonly { readonly id: string; readonly index: FileIndex }[];
}

/** What became of files that were to be attached. */
export interface AttachedResult {
  readonly added: readonly AttachedFile[];
  /** Paths of those for whose placements there was no room. */
  readonly refused: readonly string[];
}

/** A committer that attaches files. */
export interface AttachingCommitter extends Committer {
  /**
   * Makes changes of attached files in one manifest. A file that is attached already, at the same path with the same footer, stays as it is.
   *
   */
  attach(changes: AttachedChanges): Promise<AttachedResult>;
}

/** What a manifest names once changes are made. */
export interface ChangedLists extends AttachedResult {
  readonly lists: readonly AttachedList[];
  /** Files of lists that are new, and those that are not named any more. */
  readonly written: readonly string[];
  readonly left: readonly string[];
}

/** Writes the lists that changes concern. The positions of new files are taken from `values`, which count them. */
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
  const left: string[] = [];
  // What is to be written: the files of changed lists and of one that has room, then the new ones.
  const files: AttachedFile[] = [];
  for (const open of lists) {
    const hasRoom = added.length > 0 && open.files.length < attachedFilesOfListMax && open === lists.at(-1);
    if (!hasRoom && !open.files.some(isChanged)) {
      kept.push(open.list);
      continue;
    }
    left.push(open.list.file);
    for (const { id, index } of open.files)
      if (index !== undefined && (removed.has(id) || indexed.has(id))) left.push(index.file);
    const stay = open.files.filter(({ id }) => !removed.has(id));
    files.push(...stay.map((file) => ({ ...file, ...moved.get(file.id), ...indexed.get(file.id) })));
  }
  files.push(...added);
  const written: AttachedList[] = [];
  for (let from = 0; from < files.length; from += attachedFilesOfListMax)
    written.push(await writeAttachedList(directory, agent, files.slice(from, from + attachedFilesOfListMax)));
  return { lists: [...kept, ...written], added, refused, written: written.map(({ file }) => file), left };
}

/** The files for whose runs there is room. Rows in no order of time take one for each hour and span, in memory while the agent is open. */
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
