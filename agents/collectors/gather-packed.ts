import type { Frame } from '../line-framing.js';
import { continuationReason, frameEndsInLine, longLineReason } from '../frame-decoder.js';
import type { FollowedFile } from './followed-file.js';
import type { LineFrame } from './line-gathering.js';

/** Takes the next lines of a compressed file into a frame. At its end the file is done. Throws `SourceError`. */
export async function gatherPacked(file: FollowedFile, frame: LineFrame): Promise<'end' | 'full'> {
  const source = file.packed!;
  let offset = file.position!.offset;
  let { endsInLine } = file.position!;
  for (;;) {
    const next = await source.peek();
    if (next === null) {
      const hasStored = file.position !== source.position || frame.lines.some((lines) => lines.file === file);
      const isOwn = hasStored || source.known?.inode === file.inode;
      // What was recognised by its content is from now on known by its file, and need not be unpacked again.
      if (!isOwn && offset > 0) addNothing(file, frame, offset, endsInLine);
      file.role = 'done';
      return 'end';
    }
    const content = contentOf(next, offset);
    if (content.length > frame.room) return 'full';
    const isLong = next.kind === 'long';
    const contentBytes = isLong ? next.lengthBytes + (next.ended ? 1 : 0) : content.length;
    const longReason = isLong ? longLineReason(next.lengthBytes) : null;
    const reason = isLong && endsInLine ? continuationReason : longReason;
    const continuesLine = endsInLine;
    endsInLine = frameEndsInLine(next);
    frame.add(content, {
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

/** The bytes of a frame from `offset` on: a byte order mark stands before the lines. */
function contentOf(frame: Frame, offset: number): Uint8Array {
  if (frame.kind === 'long') return frame.bytes;
  return frame.bytes.subarray(frame.start - (frame.offset - offset), frame.end);
}

function addNothing(file: FollowedFile, frame: LineFrame, offset: number, endsInLine: boolean): void {
  const nothing = new Uint8Array(0);
  frame.add(nothing, {
    file,
    offset,
    contentBytes: 0,
    reason: null,
    endsInLine,
    continuesLine: false,
    tail: null,
  });
}
