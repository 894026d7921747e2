import {
  jsonFloat64,
  jsonInt64,
  jsonKeysOf,
  jsonString,
  writeJsonRows as writePlainRows,
  type JsonColumn,
  type JsonTable,
} from '../engine/kernels/json-rows.js';
import { kernelBlock, writeJsonRows } from '../engine/kernels/json-kernel.js';
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

function strings({ bytes, offsets }: Strings): JsonColumn {
  return { ...none, kind: jsonString, bytes, offsets };
}

function jsonTable(columns: WebColumns): JsonTable {
  const integers = (values: BigInt64Array): JsonColumn => ({
    ...none,
    kind: jsonInt64,
    halves: new Int32Array(values.buffer),
  });
  const fields: [name: string, column: JsonColumn][] = [
    ['time', integers(columns.timeMs)],
    ['path', strings(columns.path)],
    ['bytes', integers(columns.bytesSent)],
    ['request_time', { ...none, kind: jsonFloat64, doubles: columns.requestSeconds }],
    ['user_agent', strings(columns.userAgent)],
    ['request_id', strings(columns.requestId)],
    ['message', strings(columns.message)],
  ];
  return { ...jsonKeysOf(fields.map(([name]) => name)), columns: fields.map(([, column]) => column) };
}

/** JSON Lines of a row group, in pieces as answers have; of each, the last piece is what is compared. */
export function jsonKernelCases(webColumns: WebColumns, memory: KernelMemory): KernelCase[] {
  const table = jsonTable(webColumns);
  const { rows: end } = webColumns;
  const blockAt = memory.place(kernelBlock(table, (array) => memory.place(array)));
  const outputAt = memory.room(pieceBytes);
  const { length: columnCount } = table.columns;
  const placed = { kernels: memory.kernels, blockAt, columnCount, rowsAt: 0, rowsFrom: 0, outputAt };
  let answerBytes = 0;
  const answer = (bytes: Uint8Array, isKernel: boolean): Uint8Array => {
    const output = { bytes, at: 0 };
    answerBytes = 0;
    for (let row = 0; row < end;) {
      output.at = 0;
      row = isKernel
        ? writeJsonRows(placed, table, null, row, end, 1, 1, output)
        : writePlainRows(table, null, row, end, 1, 1, output);
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
