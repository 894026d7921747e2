import {
  fixedLineBytesMax,
  jsonFloat64,
  jsonInt64,
  jsonString,
  writeJsonRows as writePlainRows,
  type JsonColumn,
} from '../engine/kernels/json-rows.js';
import { kernelJsonColumns, writeJsonRows } from '../engine/kernels/simd/json-rows.js';
import type { KernelCase } from './kernel-case.js';
import type { Strings, WebColumns } from './kernel-columns.js';
import type { KernelMemory } from './kernel-memory.js';

/** A piece of an answer, as the scan makes them. */
const pieceBytes = 256 * 1024;

const none = {
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};

function key(name: string): Uint8Array {
  return Buffer.from(`,"${name}":`);
}

function strings(name: string, { bytes, offsets }: Strings): JsonColumn {
  return { ...none, kind: jsonString, key: key(name), bytes, offsets };
}

function jsonColumns(columns: WebColumns): JsonColumn[] {
  const halvesOf = (values: BigInt64Array): Int32Array => new Int32Array(values.buffer);
  return [
    { ...none, kind: jsonInt64, key: key('time'), halves: halvesOf(columns.timeMs) },
    strings('path', columns.path),
    { ...none, kind: jsonInt64, key: key('bytes'), halves: halvesOf(columns.bytesSent) },
    { ...none, kind: jsonFloat64, key: key('request_time'), doubles: columns.requestSeconds },
    strings('user_agent', columns.userAgent),
    strings('request_id', columns.requestId),
    strings('message', columns.message),
  ];
}

/** JSON Lines of a row group, in pieces as answers have; of each, the last piece is what is compared. */
export function jsonKernelCases(webColumns: WebColumns, memory: KernelMemory): KernelCase[] {
  const columns = jsonColumns(webColumns);
  const fixedBytes = fixedLineBytesMax(columns);
  const rows = Uint32Array.from({ length: webColumns.rows }, (_, row) => row);
  const columnsAt = memory.place(kernelJsonColumns(columns, (array) => memory.place(array)));
  const rowsAt = memory.place(rows);
  const outputAt = memory.room(pieceBytes);
  const placed = { kernels: memory.kernels, columnsAt, rowsAt, outputAt };
  let answerBytes = 0;
  const answer = (bytes: Uint8Array, isKernel: boolean): Uint8Array => {
    const output = { bytes, at: 0 };
    answerBytes = 0;
    for (let row = 0; row < rows.length;) {
      output.at = 0;
      row = isKernel
        ? writeJsonRows(placed, columns, fixedBytes, rows, row, rows.length, 1, 1, output)
        : writePlainRows(columns, fixedBytes, rows, row, rows.length, 1, 1, output);
      answerBytes += output.at;
    }
    return bytes.subarray(0, output.at);
  };
  const plainBytes = new Uint8Array(pieceBytes);
  answer(plainBytes, false);
  return [
    {
      name: 'JSON Lines out, 7 columns',
      bytes: answerBytes,
      plain: () => answer(plainBytes, false),
      kernel: () => answer(memory.view(outputAt, pieceBytes), true),
    },
  ];
}
