import {
  jsonFloat64,
  jsonInt64,
  lineKeysOf,
  jsonString,
  kernelBlock,
  nullJsonColumn,
  callWords,
  writePlacedRows,
  type JsonColumn,
} from '../engine/kernels/json-rows.js';
import { writeJsonRows, type PlainTable } from '../test/kernels/plain/json-rows.js';
import type { KernelCase } from './kernel-case.js';
import type { Strings, WebColumns } from './kernel-columns.js';
import type { KernelMemory } from './kernel-memory.js';

/** Size of the pieces of an answer, as in a scan. */
const pieceBytes = 256 * 1024;

function strings({ bytes, offsets }: Strings): JsonColumn {
  return { ...nullJsonColumn, kind: jsonString, bytes, offsets };
}

function plainTable(columns: WebColumns): PlainTable {
  const integers = (values: BigInt64Array): JsonColumn => ({
    ...nullJsonColumn,
    kind: jsonInt64,
    halves: new Int32Array(values.buffer),
  });
  const fields: [name: string, column: JsonColumn][] = [
    ['time', integers(columns.timeMs)],
    ['path', strings(columns.path)],
    ['bytes', integers(columns.bytesSent)],
    ['request_time', { ...nullJsonColumn, kind: jsonFloat64, doubles: columns.requestSeconds }],
    ['user_agent', strings(columns.userAgent)],
    ['request_id', strings(columns.requestId)],
    ['message', strings(columns.message)],
  ];
  return { ...lineKeysOf(fields.map(([name]) => name)), columns: fields.map(([, column]) => column) };
}

/** Cases for writing a row group as JSON Lines, in pieces as in an answer. Only the last piece of each side is compared. */
export function jsonKernelCases(webColumns: WebColumns, memory: KernelMemory): KernelCase[] {
  const table = plainTable(webColumns);
  const { rows: end } = webColumns;
  const blockAt = memory.place(kernelBlock(table.keys, table.columns, (array) => memory.place(array)));
  const outputAt = memory.room(pieceBytes);
  const { kernels } = memory;
  const { columns, fixedBytes } = table;
  const columnCount = columns.length;
  const cursorOf0 = (1n << 40n) + 1n;
  const call = {
    format: table.format,
    blockAt,
    columnCount,
    fixedBytes,
    rowsAt: 0,
    ordinalsAt: 0,
    to: end,
    agents: 0,
    cursorOf0,
  };
  const callAt = memory.place(callWords(call));
  let answerBytes = 0;
  const answer = (bytes: Uint8Array, isKernel: boolean): Uint8Array => {
    const output = { bytes, at: 0 };
    answerBytes = 0;
    for (let row = 0; row < end;) {
      output.at = 0;
      row = isKernel
        ? row + writePlacedRows({ kernels, callAt, from: row }, output, outputAt)
        : writeJsonRows(table, null, row, end, 1, 1, output);
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
