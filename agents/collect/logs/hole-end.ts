import type { Allocation, LogHandle } from './log-files.js';

/** Data that is counted to find a hole's end, at most. Where there is more, the hole is read. */
const countedBytesMax = 64 * 1024 * 1024;

/** Attempts, because a file that is written to has more data after its blocks were counted than before. */
const triesMax = 5;

/**
 * Finds an offset up to which a file has nothing but a hole from `from` on, which may be terabytes long, without reading it:
 * all blocks that the file system has allocated to the file are found elsewhere, in its data before the hole and, from its end
 * back, behind it. Returns `from` where that does not show, as where the file has more data than is worth counting. `scratch`
 * is overwritten. Throws Node's errors of reading.
 */
export async function findHoleEnd(handle: LogHandle, from: number, scratch: Uint8Array): Promise<number> {
  if (from > countedBytesMax) return from;
  for (let tries = 0; tries < triesMax; tries++) {
    const before = (await handle.allocation?.()) ?? null;
    if (before === null || before.allocatedBytes > countedBytesMax) return from;
    if (before.sizeBytes - from < 4 * countedBytesMax) return from;
    const dataFrom = await countData(handle, from, before, scratch);
    if (dataFrom === null) return from;
    const after = await handle.allocation?.();
    // Blocks that were allocated meanwhile may be anywhere.
    if (after?.allocatedBytes === before.allocatedBytes && after.sizeBytes >= before.sizeBytes)
      return dataFrom;
  }
  return from;
}

/**
 * Offset of the first data behind `from`, or the end of the file where there is none; null where not all allocated blocks were
 * found.
 */
async function countData(
  handle: LogHandle,
  from: number,
  { sizeBytes, allocatedBytes, blockBytes }: Allocation,
  scratch: Uint8Array,
): Promise<number | null> {
  const pieceBytes = scratch.length - (scratch.length % blockBytes);
  const zeros = new Uint8Array(blockBytes);
  let countedBytes = 0;
  let dataFrom = sizeBytes;
  const count = async (start: number, end: number): Promise<void> => {
    const read = await handle.read(scratch, 0, end - start, start);
    for (let at = Math.floor((read - 1) / blockBytes) * blockBytes; at >= 0; at -= blockBytes) {
      const block = scratch.subarray(at, Math.min(at + blockBytes, read));
      if (Buffer.compare(block, zeros.subarray(0, block.length)) === 0) continue;
      countedBytes += blockBytes;
      if (start >= from) dataFrom = start + at;
    }
  };
  for (let at = 0; at < from; at += pieceBytes) await count(at, Math.min(at + pieceBytes, from));
  // Data that lies as far before the end as there is data at all is not searched.
  const least = sizeBytes - 2 * allocatedBytes - pieceBytes;
  let start = Math.floor((sizeBytes - 1) / pieceBytes) * pieceBytes;
  for (; countedBytes < allocatedBytes && start >= least; start -= pieceBytes)
    await count(start, Math.min(start + pieceBytes, sizeBytes));
  return countedBytes === allocatedBytes ? dataFrom : null;
}
