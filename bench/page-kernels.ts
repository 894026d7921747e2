import { packedRun } from '../test/kernels/packed-run.js';
import * as plainPacking from '../test/kernels/plain/bit-packing.js';
import * as plainDelta from '../test/kernels/plain/delta.js';
import * as plainDictionary from '../test/kernels/plain/dictionary.js';
import * as plainGrams from '../test/kernels/plain/grams.js';
import * as plainLz4 from '../test/kernels/plain/lz4.js';
import * as plainStrings from '../test/kernels/plain/plain-strings.js';
import * as simdPacking from '../engine/kernels/bit-packing.js';
import * as simdDelta from '../engine/kernels/delta.js';
import * as simdDictionary from '../engine/kernels/dictionary.js';
import * as simdGrams from '../engine/kernels/grams.js';
import * as simdLz4 from '../engine/kernels/lz4.js';
import * as simdStrings from '../engine/kernels/plain-strings.js';
import type { KernelCase } from './kernel-case.js';
import type { Strings, WebColumns } from './kernel-columns.js';

const entriesMax = 65536;

/** A case in which both sides run the same function with the functions of one module or the other. */
function sides<T>(
  name: string,
  bytes: number,
  plain: T,
  kernel: T,
  run: (functions: T) => Uint8Array,
): KernelCase {
  return { name, bytes, plain: () => run(plain), kernel: () => run(kernel) };
}

function bytesOf(array: Uint16Array | Uint32Array | Int32Array | BigInt64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function lz4Cases(name: string, source: Uint8Array): KernelCase[] {
  const target = new Uint8Array(simdLz4.lz4BytesMax(source.length));
  const back = new Uint8Array(source.length);
  const packed = target.slice(0, plainLz4.lz4Compress(source, target));
  // Compressors may choose different matches, so the decompressed bytes are compared.
  const compressed = (compress: typeof plainLz4.lz4Compress): Uint8Array =>
    target.subarray(0, compress(source, target));
  let checked = 0;
  return [
    sides(`LZ4 compress, ${name}`, source.length, plainLz4, simdLz4, (lz4) => {
      const written = compressed(lz4.lz4Compress);
      if (checked++ > 4) return source;
      plainLz4.lz4Decompress(written, back, back.length);
      return back;
    }),
    sides(`LZ4 decompress, ${name}`, source.length, plainLz4, simdLz4, (lz4) => {
      lz4.lz4Decompress(packed, back, back.length);
      return back;
    }),
  ];
}

function stringCases(name: string, strings: Strings): KernelCase[] {
  const { rows, bytes, offsets } = strings;
  const encoded = new Uint8Array(bytes.length + 4 * rows);
  plainStrings.encodePlainStrings(bytes, offsets, rows, encoded);
  const target = encoded.slice();
  const back = { bytes: bytes.slice(), offsets: offsets.slice() };
  const codes = new Uint16Array(rows);
  const firstRows = new Uint32Array(entriesMax);
  return [
    sides(`PLAIN encode, ${name}`, bytes.length, plainStrings, simdStrings, (strings) => {
      strings.encodePlainStrings(bytes, offsets, rows, target);
      return target;
    }),
    sides(`PLAIN decode, ${name}`, bytes.length, plainStrings, simdStrings, (strings) => {
      strings.decodePlainStrings(encoded, rows, back.bytes, back.offsets);
      return back.bytes;
    }),
    sides(`dictionary, ${name}`, bytes.length, plainDictionary, simdDictionary, (dictionary) => {
      dictionary.numberBytes(bytes, offsets, rows, entriesMax, codes, firstRows);
      return bytesOf(codes);
    }),
    ...lz4Cases(name, encoded),
  ];
}

function gramCases(name: string, strings: Strings, gramBytes: number): KernelCase[] {
  const { rows, bytes, offsets } = strings;
  const bits = Math.min(22, Math.ceil(Math.log2(bytes.length)));
  const grams = new Int32Array(2 ** (bits - 5));
  const trigrams = new Int32Array(2 ** 11);
  return [
    sides(`gram filter, ${name}`, bytes.length, plainGrams, simdGrams, (functions) => {
      grams.fill(0);
      functions.addGrams(bytes, offsets, 0, rows, gramBytes, bits, grams, trigrams);
      return bytesOf(grams);
    }),
  ];
}

function wordCases(name: string, values: BigInt64Array): KernelCase[] {
  const rows = values.length;
  const encoded = new Uint8Array(simdDelta.deltaBytesMax(rows));
  const length = plainDelta.encodeDelta(values, rows, encoded, 0);
  const target = encoded.slice();
  const back = values.slice();
  const halves = new Int32Array(values.buffer);
  const codes = new Uint16Array(rows);
  const firstRows = new Uint32Array(entriesMax);
  return [
    sides(`delta encode, ${name}`, rows * 8, plainDelta, simdDelta, (delta) => {
      delta.encodeDelta(values, rows, target, 0);
      return target;
    }),
    sides(`delta decode, ${name}`, rows * 8, plainDelta, simdDelta, (delta) => {
      delta.decodeDelta(encoded.subarray(0, length), 0, back, rows);
      return bytesOf(back);
    }),
    sides(`dictionary, ${name}`, rows * 8, plainDictionary, simdDictionary, (dictionary) => {
      dictionary.numberWords(halves, rows, entriesMax, codes, firstRows);
      return bytesOf(codes);
    }),
  ];
}

function packingCases(rows: number, width: number): KernelCase[] {
  const codes = Uint16Array.from({ length: rows }, (_, i) => (i * 40503) & ((1 << width) - 1));
  const narrow = width <= 8 ? Uint8Array.from(codes) : codes;
  const packed = new Uint8Array(Math.ceil(rows / 8) * width);
  plainPacking.packCodes(codes, rows, width, packed, 0);
  const run = packedRun(packed, rows, width);
  const target = packed.slice();
  const back = narrow.slice();
  return [
    sides(`pack codes of ${width} bits`, rows * 2, plainPacking, simdPacking, (packing) => {
      packing.packCodes(codes, rows, width, target, 0);
      return target;
    }),
    sides(`unpack codes of ${width} bits`, narrow.byteLength, plainPacking, simdPacking, (packing) => {
      packing.decodeHybrid(run, 0, rows, width, back);
      return back instanceof Uint8Array ? back : bytesOf(back);
    }),
  ];
}

/** Cases for encoding and decoding pages, called as in the engine. Copies into and out of the kernels' memory are included. */
export function pageKernelCases(columns: WebColumns): KernelCase[] {
  return [
    ...stringCases('message', columns.message),
    ...stringCases('user_agent', columns.userAgent),
    ...gramCases('message (6-grams)', columns.message, 6),
    ...gramCases('path (4-grams)', columns.path, 4),
    ...wordCases('time', columns.timeMs),
    ...wordCases('bytes', columns.bytesSent),
    ...packingCases(columns.rows, 5),
    ...packingCases(columns.rows, 12),
  ];
}
