import { KernelModule, type KernelMemory } from '../core/wasm.js';

/**
 * The exports of kernels.wasm; the sources in `kernels/assembly/` describe them. Addresses are offsets in the memory that the instance was
 * made with. Counts are unsigned; results are signed 32-bit integers.
 */
export interface Kernels {
  copyBytes(target: number, source: number, length: number): void;
  copyShifted(target: number, source: number, count: number, shift: number): void;
  lz4Compress(source: number, length: number, target: number, table: number): number;
  lz4Decompress(source: number, sourceBytes: number, target: number, length: number): number;
  snappyDecompress(source: number, sourceBytes: number, target: number, length: number): number;
  beginSearch(
    source: number,
    length: number,
    window: number,
    windowBytes: number,
    needles: number,
    needleCount: number,
  ): void;
  searchPiece(end: number, isLast: number): number;
  searchText(text: number, length: number, needles: number, needleCount: number): number;
  reduceCrc32(text: number, blocks: number, state: number, room: number): void;
  foldAscii(source: number, length: number, target: number): void;
  foldBeyondAscii(
    source: number,
    length: number,
    target: number,
    pageOf: number,
    folded: number,
    pointEnd: number,
  ): number;
  isAscii(at: number, length: number): number;
  addGrams(
    bytes: number,
    offsets: number,
    rows: number,
    gramBytes: number,
    gramShift: number,
    grams: number,
    trigramMap: number,
  ): void;
  addMap(map: number, bits: number, bitmap: number): void;
  halveBitmap(bitmap: number, sizeBytes: number, half: number): number;
  squeezeBitmap(bitmap: number, sizeBytes: number, eighths: number, table: number, squeezed: number): void;
  boundRows(bytes: number, offsets: number, rows: number, found: number): void;
  numberBytes(
    bytes: number,
    offsets: number,
    count: number,
    entriesMax: number,
    codes: number,
    firstRows: number,
    table: number,
    tableBits: number,
  ): number;
  numberWords(
    values: number,
    count: number,
    entriesMax: number,
    codes: number,
    firstRows: number,
    table: number,
    tableBits: number,
  ): number;
  sortBytes(
    bytes: number,
    offsets: number,
    count: number,
    entries: number,
    sortedBytes: number,
    codes: number,
    firstRows: number,
    pairs: number,
    starts: number,
  ): void;
  sortWords(
    values: number,
    count: number,
    entries: number,
    codes: number,
    firstRows: number,
    pairs: number,
  ): void;
  packCodes(codes: number, codeBytes: number, count: number, width: number, target: number): number;
  decodeHybrid(
    source: number,
    sourceBytes: number,
    count: number,
    width: number,
    target: number,
    codeBytes: number,
    windows: number,
  ): number;
  largestCode(codes: number, codeBytes: number, count: number): number;
  largestCode32(codes: number, count: number): number;
  encodeDelta(values: number, count: number, target: number, deltas: number): number;
  decodeDelta(source: number, sourceBytes: number, values: number, count: number): number;
  addLengths(lengths: number, count: number, sizeBytes: number, offsets: number): number;
  prefixedBytes(prefixes: number, suffixes: number, count: number, suffixBytes: number, most: number): bigint;
  joinPrefixed(
    prefixes: number,
    suffixes: number,
    count: number,
    bytes: number,
    target: number,
    offsets: number,
  ): void;
  widenInt32(source: number, count: number, target: number, isUnsigned: number): void;
  widenFloat32(source: number, count: number, target: number): void;
  wrapInt32(values: number, count: number, isUnsigned: number): void;
  joinStreams(source: number, count: number, width: number, target: number): void;
  divideDown(values: number, count: number, divisor: bigint): void;
  multiply(values: number, count: number, factor: bigint, most: bigint, bits: number): number;
  divideToFloats(values: number, count: number, divisor: number): void;
  dropInfinite(values: number, count: number, bits: number): number;
  noneNegative(values: number, count: number): number;
  encodePlain(bytes: number, offsets: number, rows: number, target: number): number;
  decodePlain(source: number, sourceBytes: number, count: number, bytes: number, offsets: number): number;
  searchPlain(
    source: number,
    sourceBytes: number,
    count: number,
    needles: number,
    needleCount: number,
  ): number;
  selectInt64(
    values: number,
    from: number,
    to: number,
    low: bigint,
    high: bigint,
    flip: number,
    out: number,
  ): void;
  selectFloat64(
    values: number,
    from: number,
    to: number,
    low: number,
    high: number,
    flip: number,
    out: number,
  ): void;
  andRange(bits: number, other: number, from: number, to: number): void;
  orRange(bits: number, other: number, from: number, to: number): void;
  countRange(bits: number, from: number, to: number): number;
  listRange32(bits: number, from: number, to: number, most: number, rows: number): number;
  listRange16(bits: number, from: number, to: number, most: number, rows: number): number;
  spreadBits(bits: number, count: number, bytes: number): void;
  selectCodes8(codes: number, wanted: number, from: number, to: number, out: number): void;
  selectCodes16(codes: number, wanted: number, from: number, to: number, out: number): void;
  countRanges(
    values: number,
    bits: number,
    from: number,
    to: number,
    starts: number,
    ranges: number,
    counts: number,
  ): void;
  countCodes8(
    codes: number,
    bits: number,
    from: number,
    to: number,
    codesMax: number,
    tables: number,
    counts: number,
  ): void;
  countCodes16(codes: number, bits: number, from: number, to: number, counts: number): void;
  countPairs(
    values: number,
    codes: number,
    codeBytes: number,
    bits: number,
    from: number,
    to: number,
    starts: number,
    ranges: number,
    codesOfRange: number,
    tables: number,
    counts: number,
  ): void;
  groupRanges(
    values: number,
    bits: number,
    from: number,
    to: number,
    starts: number,
    ranges: number,
    codesOfRange: number,
    groups: number,
  ): void;
  gatherWords(
    values: number,
    codes: number,
    codeBytes: number,
    from: number,
    to: number,
    target: number,
  ): void;
  countDifferent(
    pairs: number,
    count: number,
    codes: number,
    firsts: number,
    different: number,
    counts: number,
  ): void;
  addCodes(codes: number, codeBytes: number, from: number, to: number, groups: number): void;
  addIntegers(
    values: number,
    groups: number,
    bits: number,
    from: number,
    to: number,
    sums: number,
    count: number,
    summed: number,
  ): number;
  addFloats(
    values: number,
    groups: number,
    bits: number,
    from: number,
    to: number,
    sums: number,
    count: number,
    summed: number,
  ): number;
  listMagnitudes(
    values: number,
    areFloats: number,
    groups: number,
    bits: number,
    from: number,
    to: number,
    pairs: number,
  ): number;
  listPairs(
    codes: number,
    codeBytes: number,
    groups: number,
    bits: number,
    from: number,
    to: number,
    pairs: number,
  ): number;
  selectContaining(
    bytes: number,
    offsets: number,
    from: number,
    to: number,
    needle: number,
    length: number,
    first: number,
    second: number,
    out: number,
  ): number;
  selectAffix(
    bytes: number,
    offsets: number,
    from: number,
    to: number,
    needle: number,
    length: number,
    kind: number,
    out: number,
  ): void;
  selectEqual(
    bytes: number,
    offsets: number,
    from: number,
    to: number,
    needle: number,
    length: number,
    out: number,
  ): number;
  jsonEnd(): number;
  jsonDouble(): number;
  jsonDoubleAt(): number;
  jsonDoubleColumn(): number;
  jsonLineBytesMax(
    columns: number,
    columnCount: number,
    fixedBytes: number,
    rows: number,
    index: number,
  ): number;
  writeJsonRows(
    columns: number,
    columnCount: number,
    fixedBytes: number,
    rows: number,
    ordinals: number,
    from: number,
    to: number,
    firstColumn: number,
    cursorOf0: bigint,
    at: number,
    atMax: number,
    lead: number,
  ): number;
  writeCsvRows(
    columns: number,
    columnCount: number,
    fixedBytes: number,
    rows: number,
    ordinals: number,
    from: number,
    to: number,
    firstColumn: number,
    cursorOf0: bigint,
    at: number,
    atMax: number,
  ): number;
  writeMergedJson(
    tables: number,
    tableCount: number,
    agents: number,
    fixedBytes: number,
    list: number,
    room: number,
    from: number,
    to: number,
    firstColumn: number,
    at: number,
    atMax: number,
    lead: number,
  ): number;
  writeMergedCsv(
    tables: number,
    tableCount: number,
    agents: number,
    fixedBytes: number,
    list: number,
    room: number,
    from: number,
    to: number,
    firstColumn: number,
    at: number,
    atMax: number,
  ): number;
  searchRows(plan: number, to: number, bytesEnd: number, keepsStates: number): number;
  followPositions(active: number, wiring: number, accepts: number, next: number, setBytes: number): number;
  xxh64Stripes(lanes: number, at: number, stripes: number): void;
  hashStrings(bytes: number, offsets: number, count: number, hashes: number): void;
  hashIntegers(values: number, count: number, hashes: number): void;
  markHashes(hashes: number, count: number, bits: number, bitmap: number): void;
  addToBlocks(hashes: number, count: number, blocks: number, blockCount: number): void;
  addToSketch(hashes: number, count: number, blocks: number, blockCount: number): void;
}

const module = new KernelModule<Kernels>('engine/kernels/kernels.wasm');

/** The kernels over a memory. Throws `unsupported` where this version of Node can't run them. */
export function kernelsOver({ memory }: { readonly memory: KernelMemory }): Kernels {
  return module.over(memory);
}
