import { isLogstrataError } from '../core/errors.js';
import { readAttachedList, rowsOfFile, type AttachedFile } from '../store/attached/attached-list.js';
import { readFacts } from '../store/attached/file-index.js';
import { assertSameFile, assertSameObject } from '../store/attached/plan-file.js';
import { spansOfFile } from '../store/attached/span-placements.js';
import type { Directory } from '../store/disk/directory.js';
import type { AttachedList } from '../store/manifest/manifest.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import { asDamage } from '../store/reading/recovery.js';
import { lostDay, type LostRecords } from './lost-records.js';

/** The result of verifying attached files and the agent's own files that belong to them. */
export interface AttachedReport {
  readonly files: number;
  readonly bytes: number;
  readonly records: number;
  readonly damages: readonly AttachedDamage[];
}

/** A problem with a file. */
export interface AttachedDamage {
  readonly file: string;
  readonly offset: number | null;
  readonly reason: string;
  /** Number of records that cannot be answered. */
  readonly records: number;
}

/**
 * Reads lists and indexes, and checks that the files they name exist and have unchanged footers. Columns are not read: they have no
 * checksums of ours unless they are indexed, and decoding detects damage anyway.
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

/** Calls `read`. If it throws, notes damage that costs `records` records and returns undefined. */
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
 * Sorts lists of attached files into readable and damaged ones. Files named by damaged lists are not lost: they are still in place and are
 * attached again, at new positions.
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

/** The result of examining lists of attached files. */
export interface ExaminedLists {
  readonly whole: AttachedList[];
  readonly illegible: { readonly file: string; readonly reason: string }[];
  readonly lost: LostRecords[];
}
