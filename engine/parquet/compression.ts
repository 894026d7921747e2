import * as zlib from 'node:zlib';
import type * as zstdWasm from '@bokuweb/zstd-wasm';
import { lz4Compress, lz4Decompress } from '../kernels/lz4.js';
import { LogstrataError } from '../core/errors.js';
import type { ZstdLibrary } from './zstd-library.js';
import { once } from '../core/waiting.js';

/** Compresses a page. The result may be in `room`, which must have `lz4BytesMax` bytes. */
export type Compress = (bytes: Uint8Array, room: Uint8Array) => Uint8Array;

/** Decompresses a page into `target`, which it must fill exactly. False where the input is malformed or has another length. */
export type Decompress = (bytes: Uint8Array, target: Uint8Array) => boolean;

/** Higher levels make random ids larger, and take ten times as long to save 8 % of the other bytes. */
const zstdLevel = 1;

/** The part of node:zlib that exists from Node 22.15 on. */
interface NodeZstd {
  zstdCompressSync(
    bytes: Uint8Array,
    options: { params: Record<number, number>; pledgedSrcSize: number },
  ): Uint8Array;
  zstdDecompressSync(bytes: Uint8Array, options: { maxOutputLength: number }): Uint8Array;
}

/** `ZSTD_c_compressionLevel` of zstd.h. zlib.constants has it with the same value. */
const compressionLevelParameter = 100;

const nodeZstd: NodeZstd | null = 'zstdCompressSync' in zlib ? (zlib as unknown as NodeZstd) : null;

const wasmReady = once(loadWasm);

/** The compressor of `codec`, ready to be called. */
export async function openCompressor(codec: Codec): Promise<Compress> {
  if (codec === 'lz4') return compressLz4;
  if (nodeZstd !== null) return (bytes) => compressByNode(nodeZstd, bytes);
  const wasm = await wasmReady();
  return (bytes) => wasm.compress(bytes, zstdLevel);
}

async function loadWasm(): Promise<typeof zstdWasm> {
  const wasm = await import('@bokuweb/zstd-wasm');
  await wasm.init();
  return wasm;
}

function compressLz4(bytes: Uint8Array, room: Uint8Array): Uint8Array {
  return room.subarray(0, lz4Compress(bytes, room));
}

function compressByNode(node: NodeZstd, bytes: Uint8Array): Uint8Array {
  const params = { [compressionLevelParameter]: zstdLevel };
  return node.zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/** The decompressor of `codec`, ready to be called. */
export async function openDecompressor(codec: Codec): Promise<Decompress> {
  if (codec === 'lz4') return decompressLz4;
  if (nodeZstd === null) return await openFramesDecompressor();
  const node = nodeZstd;
  return (bytes, target) => decompressByNode(node, bytes, target);
}

function decompressLz4(bytes: Uint8Array, target: Uint8Array): boolean {
  return lz4Decompress(bytes, target, target.length) === target.length;
}

function decompressByNode(node: NodeZstd, bytes: Uint8Array, target: Uint8Array): boolean {
  const { length } = target;
  if (zstdContentBytes(bytes) !== length) return false;
  try {
    const content = node.zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, length) });
    if (content.length !== length) return false;
    target.set(content);
    return true;
  } catch {
    return false;
  }
}

/** A decompressor of any number of consecutive ZSTD frames, whose headers need not give the length of the content. */
export async function openFramesDecompressor(): Promise<Decompress> {
  const { loadZstd } = await import('./zstd-library.js');
  const zstd = await loadZstd();
  return (bytes, target) => decompressFrames(zstd, bytes, target);
}

function decompressFrames(zstd: ZstdLibrary, bytes: Uint8Array, target: Uint8Array): boolean {
  const { length } = target;
  const source = zstd.malloc(Math.max(1, bytes.length));
  const content = zstd.malloc(Math.max(1, length));
  try {
    if (source === 0 || content === 0)
      throw new LogstrataError('limit', `not enough memory to decompress a page of ${length} bytes`);
    new Uint8Array(zstd.memory.buffer, source, bytes.length).set(bytes);
    // Error codes are negative or very large numbers.
    if (zstd.ZSTD_decompress(content, length, source, bytes.length) !== length) return false;
    target.set(new Uint8Array(zstd.memory.buffer, content, length));
    return true;
  } finally {
    zstd.free(source);
    zstd.free(content);
  }
}

const zstdMagic = 0xfd2fb528;

/** The content size in the header of a ZSTD frame (RFC 8878, 3.1.1.1), or -1 when it gives none or is no frame. */
export function zstdContentBytes(frame: Uint8Array): number {
  if (frame.length < 6) return -1;
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (view.getUint32(0, true) !== zstdMagic) return -1;
  const descriptor = frame[4]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3]!;
  const at = 5 + (singleSegment ? 0 : 1) + dictionaryIdBytes;
  const sizeFlag = descriptor >>> 6;
  const sizeBytes = sizeFlag === 0 ? (singleSegment ? 1 : 0) : 1 << sizeFlag;
  if (sizeBytes === 0 || at + sizeBytes > frame.length) return -1;
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

/** The codecs of the files that this program writes. `lz4` is Parquet's LZ4_RAW. */
export type Codec = 'lz4' | 'zstd';
