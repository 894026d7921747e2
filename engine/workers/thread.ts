import { parentPort, workerData } from 'node:worker_threads';
import { takeLentMemory, type LentMemory } from '../memory/shared-memory.js';
import { assert } from '../terms/assert.js';
import type { Task } from './task.js';
import { failureOf, type JobReply, type JobRequest } from './thread-message.js';

/**
 * What a thread of a worker pool runs: it imports the module that a job names and answers with what its `work` gives,
 * one job after another. The thread imports no task by itself, so that this folder depends on none that has tasks.
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
