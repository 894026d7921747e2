import { isLogstrataError } from '../terms/errors.js';
import { readAttachedList } from '../store/attached/attached-list.js';
import { rowsOfFile, type AttachedFile } from '../store/attached/attached-file.js';
import { readFacts } from '../store/attached/file-index.js';
import { assertSameFile, assertSameObject } from '../store/attached/same-file.js';
import { spansOfFile } from '../store/attached/spans.js';
import type { Directory } from '../store/disk/directory.js';
import type { AttachedList } from '../store/manifest/manifest.js';
import type { ObjectStorage } from '../store/objects/object-storage.js';
import { asDamage } from '../store/reading/recovery.js';
import { lostDay, type LostRecords } from './lost-records.js';

/** What is wrong with attached files and what belongs to them in our folder, and how much was looked at. */
export interface AttachedReport {
  readonly files: number;
  readonly bytes: number;
  readonly records: number;
  readonly damages: readonly AttachedDamage[];
}

/** What is wrong with a file. */
export interface AttachedDamage {
  readonly file: string;
  readonly offset: number | null;
  readonly reason: string;
  /** Records that can't be answered. */
  readonly records: number;
}

/**
 * Reads lists and indexes, and looks whether the files that they name are there and still have their footers. Their columns are not read:
 * they have no checksums of ours before they are indexed, and decoding tells afterwards.
 */
export async function verifyAttached(
  directory: Directory,
  agent: string,
  lists: readonly AttachedList[],
  objects: ObjectStorage | undefined,
): Promise<AttachedReport> {
  const report = { files: 0, bytes: 0, records: 0, damages: [] as AttachedDamage[] };
  for (const list of lists) {
    report.files++;
    report.bytes += list.bytes;
    const files = await damagesOf(report.damages, list.file, list.rows, () =>
      readAttachedList(directory, agent, list),
    );
    for (const file of files ?? []) {
      report.files++;
      report.records += rowsOfFile(file);
      await damagesOf(report.damages, file.path, rowsOfFile(file), () =>
        file.etag === undefined
          ? assertSameFile(file.path, file.format, file)
          : assertSameObject(file, objects),
      );
      if (file.index !== undefined) {
        report.files++;
        report.bytes += file.index.bytes;
        await damagesOf(report.damages, file.index.file, 0, () => readIndex(directory, agent, file));
      }
    }
  }
  return report;
}

async function readIndex(directory: Directory, agent: string, file: AttachedFile): Promise<void> {
  const { index, rowGroupRows } = file;
  if (index === undefined) return;
  await readFacts(directory, agent, index, spansOfFile(rowGroupRows).length, rowGroupRows.length);
}

/** What `read` gives; undefined where it throws, which is noted as damage that costs so many records. */
async function damagesOf<T>(
  damages: AttachedDamage[],
  file: string,
  records: number,
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    const offset = error.offset ?? null;
    damages.push({ file, offset, reason: error.message, records });
    return undefined;
  }
}

/**
 * Finds the lists of attached files that can be read. What others named is not lost: it lies where it lay, and is attached anew, at new
 * positions.
 */
export async function examineLists(
  directory: Directory,
  agent: string,
  lists: readonly AttachedList[],
): Promise<ExaminedLists> {
  const examined: ExaminedLists = { whole: [], illegible: [], lost: [] };
  for (const list of lists) {
    try {
      await readAttachedList(directory, agent, list);
      examined.whole.push(list);
    } catch (error) {
      const reason = asDamage(error).message;
      examined.illegible.push({ file: list.file, reason });
      examined.lost.push({ ...lostDay(list.file, reason), records: list.rows });
    }
  }
  return examined;
}

/** What a repair finds of lists of attached files. */
export interface ExaminedLists {
  readonly whole: AttachedList[];
  readonly illegible: { readonly file: string; readonly reason: string }[];
  readonly lost: LostRecords[];
}
