import { builtModule, type Finished, type Task } from '../../workers/task.js';
import type { ForeignFile, ForeignFormat, ForeignPlace } from '../foreign-file.js';
import { readForeignFile } from './read-foreign-file.js';

export interface DescribeJob extends ForeignPlace {
  readonly format: ForeignFormat;
}

/** Reads what a file of another program says of itself, on a thread. Throws as `readForeignFile` does. */
export const describeForeignTask: Task<DescribeJob, ForeignFile> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};

/** What a thread does for a file. */
export async function work({ path, format, copy }: DescribeJob): Promise<Finished<ForeignFile>> {
  return { result: await readForeignFile(path, format, copy), transfer: [] };
}
