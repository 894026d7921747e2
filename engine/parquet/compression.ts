import * as zlib from 'node:zlib';
import * as zstdWasm from '@bokuweb/zstd-wasm';
import { lz4Compress, lz4Decompress } from '../kernels/lz4.js';

/** Compresses a page. The result may lie in `room`, which has `lz4BytesMax` bytes for it. */
export type Compress = (bytes: Uint8Array, room: Uint8Array) => Uint8Array;

/** Decompresses a page that fills `target` exactly; false when the input is malformed or of another length. */
export type Decompress = (bytes: Uint8Array, target: Uint8Array) => boolean;

/** Higher levels make random ids larger, and cost ten times the time for 8 % of the rest. */
const zstdLevel = 1;

/** The part of node:zlib that Node has from 22.15 on. */
interface NodeZstd {
  zstdCompressSync(
    bytes: Uint8Array,
    options: { params: Record<number, number>; pledgedSrcSize: number },
  ): Uint8Array;
  zstdDecompressSync(bytes: Uint8Array, options: { maxOutputLength: number }): Uint8Array;
}

/** `ZSTD_c_compressionLevel` of zstd.h, which zlib.constants has under the same number. */
const compressionLevelParameter = 100;

const nodeZstd: NodeZstd | null = 'zstdCompressSync' in zlib ? (zlib as unknown as NodeZstd) : null;

let wasmReady: Promise<void> | null = null;

/** Must be awaited before ZSTD pages are read or written; immediate where Node has ZSTD itself. */
async function prepareCodec(codec: Codec): Promise<void> {
  if (codec !== 'zstd' || nodeZstd !== null) return;
  wasmReady ??= zstdWasm.init();
  await wasmReady;
}

/** The compressor of `codec`, ready to be called. */
export async function openCompressor(codec: Codec): Promise<Compress> {
  await prepareCodec(codec);
  return codec === 'lz4' ? compressLz4 : compressZstd;
}

function compressLz4(bytes: Uint8Array, room: Uint8Array): Uint8Array {
  return room.subarray(0, lz4Compress(bytes, room));
}

function compressZstd(bytes: Uint8Array): Uint8Array {
  if (nodeZstd === null) return zstdWasm.compress(bytes, zstdLevel);
  const params = { [compressionLevelParameter]: zstdLevel };
  return nodeZstd.zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/** The decompressor of `codec`, ready to be called. */
export async function openDecompressor(codec: Codec): Promise<Decompress> {
  await prepareCodec(codec);
  return codec === 'lz4' ? decompressLz4 : decompressZstd;
}

function decompressLz4(bytes: Uint8Array, target: Uint8Array): boolean {
  return lz4Decompress(bytes, target, target.length) === target.length;
}

function decompressZstd(bytes: Uint8Array, target: Uint8Array): boolean {
  const { length } = target;
  // The WASM build allocates what the frame claims, so the claim is checked first. Frames of streams have none.
  const claimed = zstdContentBytes(bytes);
  if (claimed !== length && claimed !== zstdWithoutSize) return false;
  try {
    const content =
      nodeZstd === null
        ? zstdWasm.decompress(bytes, { defaultHeapSize: length })
        : nodeZstd.zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, length) });
    if (content.length !== length) return false;
    target.set(content);
    return true;
  } catch {
    return false;
  }
}

const zstdMagic = 0xfd2fb528;

/** What `zstdContentBytes` gives for a frame that does not say its size. */
export const zstdWithoutSize = -1;

/** Content size that a ZSTD frame's header gives (RFC 8878, 3.1.1.1), or -2 for what is no frame. */
export function zstdContentBytes(frame: Uint8Array): number {
  if (frame.length < 6) return -2;
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (view.getUint32(0, true) !== zstdMagic) return -2;
  const descriptor = frame[4]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3]!;
  const at = 5 + (singleSegment ? 0 : 1) + dictionaryIdBytes;
  const sizeFlag = descriptor >>> 6;
  const sizeBytes = sizeFlag === 0 ? (singleSegment ? 1 : 0) : 1 << sizeFlag;
  if (sizeBytes === 0) return zstdWithoutSize;
  if (at + sizeBytes > frame.length) return -2;
  switch (sizeBytes) {
    case 1:
      return frame[at]!;
    case 2:
      return view.getUint16(at, true) + 256;
    case 4:
      return view.getUint32(at, true);
    default:
      return Number(view.getBigUint64(at, true));
  }
}

export type Codec = 'lz4' | 'zstd';
