// The exports of lines.wasm. Each kernel works on addresses of the memory that it was given; ../line-kernels.ts loads them.
export { buildKeyTable, jsonSlotsBytes, splitJsonLines } from './json-lines';
export { splitDelimitedLines } from './delimited-lines';
export { readNumbers } from './span-values';
export { readTimes } from './span-times';
export { gatherField, gatherPieces } from './span-strings';

/** Where the kernels' own data ends. */
export function dataEnd(): usize {
  return __heap_base;
}
