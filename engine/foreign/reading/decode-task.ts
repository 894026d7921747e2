import { arraysOf } from '../../columns/column.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import type { DecodedSpans, ForeignRead } from '../foreign-file.js';
import { decodeForeign } from './decode-foreign.js';

/** Decodes a column of another program's file on a worker thread. Throws as `decodeForeign` does. */
export const decodeForeignTask: Task<ForeignRead, DecodedSpans> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};

/** Runs on the worker thread: decodes and transfers the columns' buffers. */
export async function work(read: ForeignRead): Promise<Finished<DecodedSpans>> {
  const result = await decodeForeign(read);
  return { result, transfer: buffersOf(result.spans.flatMap(({ column }) => arraysOf(column))) };
}
