import { parentPort, workerData } from 'node:worker_threads';
import { takeLentMemory, takeLentScratch, type LentMemory } from '../core/shared-memory.js';
import { assert } from '../core/errors.js';
import { type Task, failureOf, type JobMessage, type JobReply, type JobRequest } from './task.js';

/**
 * The main module of a worker thread. It imports the module that a job names and answers with the result of its function, one job after
 * another. It imports no tasks statically, so that this folder does not depend on the folders that define tasks.
 */

assert(parentPort !== null, 'this module is the beginning of a thread');
const port = parentPort;
takeLentMemory(workerData as LentMemory);
let last: Promise<void> = Promise.resolve();

port.on('message', (message: JobMessage) => {
  last = last.then(() => answerAll(message));
});

/** Replies are sent together, but none waits longer than this (ms) for others. */
const replyMs = 1;

async function answerAll({ jobs, scratch }: JobMessage): Promise<void> {
  takeLentScratch(scratch);
  let replies: JobReply[] = [];
  let transfer: ArrayBuffer[] = [];
  let sentMs = performance.now();
  const send = (): void => {
    if (replies.length > 0) port.postMessage(replies, transfer);
    replies = [];
    transfer = [];
    sentMs = performance.now();
  };
  for (const request of jobs) {
    const { reply, buffers } = await answer(request);
    replies.push(reply);
    transfer.push(...buffers);
    if (performance.now() - sentMs > replyMs) send();
  }
  send();
}

async function answer({
  id,
  module,
  name,
  job,
}: JobRequest): Promise<{ reply: JobReply; buffers: readonly ArrayBuffer[] }> {
  const startMs = performance.now();
  const took = (): number => performance.now() - startMs;
  try {
    const exported = (await import(module)) as Readonly<Record<string, Task<unknown, unknown>['work']>>;
    const { result, transfer } = await exported[name]!(job);
    return { reply: { id, ms: took(), result }, buffers: transfer };
  } catch (error) {
    return { reply: { id, ms: took(), failure: failureOf(error) }, buffers: [] };
  }
}
