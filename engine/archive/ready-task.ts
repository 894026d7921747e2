import { kernelsOver } from '../kernels/kernels.js';
import { foreignMemory, sharedMemory, type MemoryRange } from '../memory/shared-memory.js';
import { openDecompressor } from '../parquet/compression.js';
import '../scan/job/row-group-task.js';
import '../store/reading/keep-task.js';
import '../store/reading/pooled-chunk-task.js';
import '../store/reading/stream-task.js';
import '../store/sealed/probe-task.js';
import '../store/sealed/survey-task.js';
import { builtModule, type Finished, type Task } from '../workers/task.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** Makes a thread ready for what queries have threads do: their modules are imported with this one, and kernels work on the memory given. */
export async function work(memory: MemoryRange): Promise<Finished<null>> {
  kernelsOver(foreignMemory(memory));
  kernelsOver(sharedMemory());
  await openDecompressor('lz4');
  return { result: null, transfer: [] };
}

/** A thread's first job where queries are expected. */
export const readyTask: Task<MemoryRange, null> = { module: builtModule(import.meta.url), work };

/**
 * Makes a process ready for queries before the first one comes: its threads have begun, and its kernels are compiled. A thread that can't be begun
 * now is begun for the first job that needs it.
 */
export function makeReady(workers: WorkerPool): Promise<void> {
  const memory = sharedMemory();
  kernelsOver(memory);
  return workers.begin(readyTask, memory.rangeAt(0, 0)).catch(() => undefined);
}
