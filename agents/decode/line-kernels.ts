import { type KernelMemory, KernelModule } from '../../engine/index.js';

/**
 * The exports of lines.wasm, which are documented in `assembly/`. Addresses are offsets into the memory that the instance
 * was made with; counts are unsigned, results signed 32-bit integers.
 */
export interface LineKernels {
  buildKeyTable(keys: number, count: number, table: number, mask: number): void;
  jsonSlotsBytes(): number;
  splitJsonLines(
    text: number,
    from: number,
    to: number,
    isText: number,
    keys: number,
    table: number,
    mask: number,
    slots: number,
    fields: number,
    lines: number,
    states: number,
    spans: number,
    linesMax: number,
  ): number;
  splitDelimitedLines(
    text: number,
    from: number,
    to: number,
    isText: number,
    steps: number,
    fields: number,
    lines: number,
    states: number,
    spans: number,
    linesMax: number,
  ): number;
  readNumbers(
    text: number,
    spans: number,
    stride: number,
    count: number,
    states: number,
    digitsMax: number,
    values: number,
    presence: number,
    unreadable: number,
  ): number;
  readTimes(
    text: number,
    spans: number,
    stride: number,
    count: number,
    states: number,
    format: number,
    values: number,
    presence: number,
  ): number;
  gatherField(
    text: number,
    spans: number,
    stride: number,
    count: number,
    states: number,
    target: number,
    offsets: number,
    presence: number,
  ): number;
  gatherPieces(
    text: number,
    spans: number,
    stride: number,
    count: number,
    states: number,
    pieces: number,
    pieceCount: number,
    valueBytesMax: number,
    target: number,
    offsets: number,
  ): void;
}

const module = new KernelModule<LineKernels>('agents/decode/decode.wasm');

/** The line kernels over a memory. Throws `unsupported` where this Node can't run them. */
export function lineKernelsOver({ memory }: { readonly memory: KernelMemory }): LineKernels {
  return module.over(memory);
}
