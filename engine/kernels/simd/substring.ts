import * as plain from '../substring.js';
import type { SearchTables } from '../substring.js';
import { openScratch, scratchBytes, type Scratch } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';
import { affixEnd, affixStart, type KernelNeedle } from './needle.js';

/** Below this many bytes of strings and offsets a call and its copies cost more than the plain twin. */
const kernelBytesMin = 1024;

/** The column and the needle where the kernel finds them. */
interface Placed {
  readonly scratch: Scratch;
  readonly bytesAt: number;
  readonly offsetsAt: number;
  readonly needleAt: number;
  /** Where the bits of the row `from` go. */
  readonly outAt: number;
  readonly outBytes: number;
}

function placed(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): Placed | null {
  const start = offsets[from]!;
  const length = offsets[to]! - start;
  if (length + (to - from) * 4 < kernelBytesMin) return null;
  const outBytes = ((to + 7) >> 3) - (from >> 3);
  const scratch = openScratch(
    scratchBytes(bytes, length) +
      scratchBytes(offsets, to - from + 1) +
      scratchBytes(out, outBytes) +
      needle.planes.length,
  );
  if (scratch === null) return null;
  return {
    scratch,
    outAt: scratch.target(out, from >> 3, outBytes),
    // Offsets stay as they are: the address that they count from is that of the text they belong to.
    bytesAt: scratch.place(bytes, start, start + length) - start,
    offsetsAt: scratch.place(offsets, from, to + 1) - from * 4,
    needleAt: scratch.place(needle.planes, 0, needle.planes.length),
    outBytes,
  };
}

/** As the twin; `needle` is what `tables` is for. */
export function selectContaining(
  offsets: Uint32Array,
  bytes: Uint8Array,
  tables: SearchTables,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const at = placed(offsets, bytes, needle, from, to, out);
  const rows =
    at === null
      ? -1
      : kernelsOver(at.scratch).selectContaining(
          at.bytesAt,
          at.offsetsAt,
          from,
          to,
          at.needleAt,
          needle.length,
          needle.first,
          needle.second,
          at.outAt - (from >> 3),
        );
  if (at === null || rows < 0) plain.selectContaining(offsets, bytes, tables, from, to, out);
  else if (rows === 0) out.fill(0, from >> 3, (to + 7) >> 3);
  else at.scratch.take(at.outAt, out, from >> 3, at.outBytes);
}

function selectAffix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  kind: number,
  from: number,
  to: number,
  out: Uint8Array,
): boolean {
  const at = placed(offsets, bytes, needle, from, to, out);
  if (at === null) return false;
  const outAt = at.outAt - (from >> 3);
  kernelsOver(at.scratch).selectAffix(
    at.bytesAt,
    at.offsetsAt,
    from,
    to,
    at.needleAt,
    needle.length,
    kind,
    outAt,
  );
  at.scratch.take(at.outAt, out, from >> 3, at.outBytes);
  return true;
}

/** As the twin; `needle` holds the same bytes, case and all. */
export function selectEqual(
  offsets: Uint32Array,
  bytes: Uint8Array,
  raw: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const at = placed(offsets, bytes, needle, from, to, out);
  if (at === null) {
    plain.selectEqual(offsets, bytes, raw, from, to, out);
    return;
  }
  const { bytesAt, offsetsAt, needleAt } = at;
  const outAt = at.outAt - (from >> 3);
  const rows = kernelsOver(at.scratch).selectEqual(
    bytesAt,
    offsetsAt,
    from,
    to,
    needleAt,
    needle.length,
    outAt,
  );
  if (rows === 0) out.fill(0, from >> 3, (to + 7) >> 3);
  else at.scratch.take(at.outAt, out, from >> 3, at.outBytes);
}

/** As the twin; `needle` holds the same bytes, without regard to case. */
export function selectPrefix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  folded: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  if (selectAffix(offsets, bytes, needle, affixStart, from, to, out)) return;
  plain.selectPrefix(offsets, bytes, folded, from, to, out);
}

/** As the twin; `needle` holds the same bytes, without regard to case. */
export function selectSuffix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  folded: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  if (selectAffix(offsets, bytes, needle, affixEnd, from, to, out)) return;
  plain.selectSuffix(offsets, bytes, folded, from, to, out);
}
