import type { ForeignFormat, ForeignPlace } from '../../foreign/foreign-file.js';
import { askOwnFilter, type OwnFilter } from '../../foreign/parquet/own-filter.js';
import type { ValueHash } from '../../parquet/bloom-filter.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import type { FileIdentity } from './attached-file.js';
import { assertSameFile } from './same-file.js';

/** Values that are looked for in a row group of an attached file, by the filters that the file itself has. */
export interface OwnFilterJob extends ForeignPlace {
  readonly format: ForeignFormat;
  readonly attached: FileIdentity;
  readonly questions: readonly OwnQuestion[];
}

/** A column of the row group, of which a row that matches has one of the values. */
export interface OwnQuestion {
  readonly filter: OwnFilter;
  readonly hashes: readonly ValueHash[];
}

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

/** Has the filters asked that a file itself has. */
export const ownFilterTask: Task<OwnFilterJob, OwnFilterAnswers> = {
  module: builtModule(import.meta.url),
  work,
};
