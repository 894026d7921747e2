// The exports of lines.wasm, which ../line-kernels.ts loads. Kernels work on addresses in the memory that the instance was made with.
export { buildKeyTable, jsonSlotsBytes, splitJsonLines } from './json-lines';
export { splitDelimitedLines } from './delimited-lines';
export { readNumbers } from './span-values';
export { readTimes } from './span-times';
export { gatherField, gatherPieces } from './span-strings';

/** End address of the kernels' own data. */
export function dataEnd(): usize {
  return __heap_base;
}
