import type { ForeignFormat, ForeignPlace } from '../../foreign/foreign-file.js';
import { askOwnFilter, type OwnFilter } from '../../foreign/parquet/own-filter.js';
import type { ValueHash } from '../../parquet/bloom-filter.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import type { FileIdentity } from './attached-file.js';
import { assertSameFile } from './same-file.js';

/** Values that are looked up in the Bloom filters that an attached file itself has, for one row group. */
export interface OwnFilterJob extends ForeignPlace {
  readonly format: ForeignFormat;
  readonly attached: FileIdentity;
  readonly questions: readonly OwnQuestion[];
}

/** A column's filter, and hashes of values. A row can only match if its column has one of these values. */
export interface OwnQuestion {
  readonly filter: OwnFilter;
  readonly hashes: readonly ValueHash[];
}

/** Whether no row can match, and what was read to find out. */
export interface OwnFilterAnswers {
  readonly isRuledOut: boolean;
  readonly bytesRead: number;
  readonly piecesRead: number;
}

/** Asks the filters, until one has none of its values. Throws `DamageError` for a file that has changed or is gone. */
export async function work({
  path,
  copy,
  format,
  attached,
  questions,
}: OwnFilterJob): Promise<Finished<OwnFilterAnswers>> {
  await assertSameFile(path, format, attached);
  let bytesRead = 0;
  let piecesRead = 0;
  let isRuledOut = false;
  for (const { filter, hashes } of questions) {
    const answer = askOwnFilter({ path, copy }, filter, hashes);
    bytesRead += answer.bytesRead;
    piecesRead += answer.piecesRead;
    isRuledOut = !answer.mayHave;
    if (isRuledOut) break;
  }
  return { result: { isRuledOut, bytesRead, piecesRead }, transfer: [] };
}

/** Asks a file's own filters on a thread. */
export const ownFilterTask: Task<OwnFilterJob, OwnFilterAnswers> = {
  module: builtModule(import.meta.url),
  work,
};
