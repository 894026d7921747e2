import { rejectedLongLine } from '../decode/rejected-lines.js';
import type { FollowedFile } from './logs/followed-file.js';
import type { PackedContent } from './logs/log-state.js';
import type { LineFrame } from './line-frame.js';

/** Adds the next lines of a compressed file to a frame. Once its end is stored, the file is done. Throws `SourceError`. */
export async function gatherPacked(
  file: FollowedFile,
  { source, position }: PackedContent,
  frame: LineFrame,
): Promise<'end' | 'full' | 'more'> {
  let { offset, endsInLine } = position;
  for (;;) {
    const next = await source.peek();
    if (next === 'more') return next;
    if (next === null) {
      // The checkpoint gets the size of the compressed file, by which the file is recognised without being decompressed again.
      if (offset === 0) file.observe({ kind: 'empty' });
      else addEnd(file, source.packedBytes, frame, offset, endsInLine);
      return 'end';
    }
    if (next.end > frame.room) return 'full';
    const isLong = next.kind === 'long';
    const contentBytes = isLong ? next.lengthBytes + (next.endsInLine ? 0 : 1) : next.end;
    const reason = isLong ? rejectedLongLine(next, endsInLine).reasons[0]! : null;
    const continuesLine = endsInLine;
    ({ endsInLine } = next);
    frame.add(next.bytes.subarray(0, next.end), {
      file,
      offset,
      contentBytes,
      reason,
      endsInLine,
      continuesLine,
      tail: source.take(),
    });
    offset += contentBytes;
  }
}

/** Adds an empty range of lines that marks the end of the content. */
function addEnd(
  file: FollowedFile,
  packedBytes: number,
  frame: LineFrame,
  offset: number,
  endsInLine: boolean,
): void {
  const nothing = new Uint8Array(0);
  frame.add(nothing, {
    file,
    offset,
    contentBytes: 0,
    reason: null,
    endsInLine,
    continuesLine: false,
    tail: null,
    packedBytes,
  });
}
