import { missingBytesMax } from './chunk-bytes.js';
import type { ForeignFormat, ForeignRead } from './foreign-file.js';
import { pageRange } from './offset-index.js';

/** Bytes [from, to) of a file. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Bytes that are fetched from the end of a file, and for Arrow from its beginning too: most footers fit. */
const footerBytes = 64 * 1024;

/** Byte ranges that describing a file of `bytes` bytes most likely needs. */
export function describedRanges(format: ForeignFormat, bytes: number): Range[] {
  const end = { from: Math.max(0, bytes - footerBytes), to: bytes };
  return format === 'arrow' ? [{ from: 0, to: Math.min(bytes, footerBytes) }, end] : [end];
}

/** Byte ranges that a reading needs. Rarely it needs others too. */
export function readRanges({ format, column, chunk, pages, spans, wanted }: ForeignRead): Range[] {
  // The positions of a batch's buffers are known only after its header has been read.
  if (format === 'arrow') return [];
  const whole = { from: chunk.offset, to: chunk.offset + chunk.bytes + missingBytesMax };
  if (pages === null || column.way !== 'fast') return [whole];
  const { offsets } = pages;
  const range = pageRange(pages, spans[wanted]!);
  if (range === null) return [whole];
  return [
    { from: offsets[range.first]!, to: offsets[range.last]! },
    ...(chunk.offset < offsets[0]! ? [{ from: chunk.offset, to: offsets[0]! }] : []),
  ];
}
