import { builtModule, type Finished, type Task } from '../workers/task.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import type { ForeignFile, ForeignFormat } from './foreign-file.js';
import { readForeignFile } from './read-foreign.js';

/** A file to describe. */
export interface DescribeJob extends ForeignPlace {
  readonly format: ForeignFormat;
}

/** Describes another program's file on a worker thread. Throws as `readForeignFile` does. */
export const describeForeignTask: Task<DescribeJob, ForeignFile> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};

/** Runs on the worker thread: describes the file. */
export async function work({ path, format, copy }: DescribeJob): Promise<Finished<ForeignFile>> {
  return { result: await readForeignFile(path, format, copy), transfer: [] };
}
