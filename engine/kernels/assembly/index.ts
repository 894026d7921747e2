// The exports of kernels.wasm. All kernels take addresses in the memory that the instance was made with; memory/wasm.ts loads the module.
export { copyBytes, copyShifted } from './copy';
export { lz4Compress, lz4Decompress } from './lz4';
export { snappyDecompress } from './snappy';
export {
  divideDown,
  divideToFloats,
  dropInfinite,
  joinStreams,
  multiply,
  noneNegative,
  widenFloat32,
  widenInt32,
  wrapInt32,
} from './stored-numbers';
export { beginSearch, searchPiece, searchText } from './lz4-search';
export { reduceCrc32 } from './crc32';
export { addGrams, addMap, foldAscii, foldBeyondAscii, halveBitmap, isAscii, squeezeBitmap } from './grams';
export { boundRows } from './string-bounds';
export { numberBytes, numberWords, sortBytes, sortWords } from './dictionary';
export { decodeHybrid, largestCode, largestCode32, packCodes } from './bit-packing';
export { addLengths, encodeDelta, decodeDelta, joinPrefixed, prefixedBytes } from './delta';
export { encodePlain, decodePlain, searchPlain } from './plain-strings';
export { selectInt64, selectFloat64 } from './compare';
export { andRange, orRange, countRange, listRange16, listRange32, spreadBits } from './bitmap';
export { selectCodes8, selectCodes16 } from './dictionary-select';
export { countCodes16, countCodes8, countPairs, countRanges } from './count';
export { addCodes, countDifferent, gatherWords, groupRanges, listPairs, sumRows } from './numbers';
export { selectContaining, selectAffix, selectEqual } from './substring';
export { followPositions, searchPositions, searchStates } from './pattern';
export { jsonDouble, jsonDoubleAt, jsonDoubleColumn, jsonEnd, lineBytesMax } from './json-rows';
export { writeLines } from './merged-rows';
export { selectRun } from './pattern-run';
export { xxh64Stripes } from './xxh64';
export { addToBlocks, addToSketch, hashIntegers, hashStrings, markHashes } from './value-filter';

/** The end of the module's static data. */
export function dataEnd(): usize {
  return __heap_base;
}
