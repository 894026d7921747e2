import { parentPort, workerData } from 'node:worker_threads';
import { takeLentMemory, type LentMemory } from '../memory/shared-memory.js';
import { assert } from '../terms/assert.js';
import type { Task } from './task.js';
import { failureOf, type JobReply, type JobRequest } from './thread-message.js';

/**
 * The main module of a worker thread. It imports the module that a job names and answers with the result of its `work`, one job after
 * another. It imports no tasks statically, so that this folder does not depend on the folders that define tasks.
 */

assert(parentPort !== null, 'this module is the beginning of a thread');
const port = parentPort;
takeLentMemory(workerData as LentMemory);
let last: Promise<void> = Promise.resolve();

port.on('message', (request: JobRequest) => {
  last = last.then(() => answer(request));
});

async function answer({ id, module, job }: JobRequest): Promise<void> {
  try {
    const { work } = (await import(module)) as Pick<Task<unknown, unknown>, 'work'>;
    const { result, transfer } = await work(job);
    port.postMessage({ id, result } satisfies JobReply, transfer);
  } catch (error) {
    port.postMessage({ id, failure: failureOf(error) } satisfies JobReply);
  }
}
