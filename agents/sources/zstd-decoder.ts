import { assert, type ZstdLibrary } from '../../engine/index.js';

/** Compressed bytes that are given to the decoder at once, and content that it returns at once (a zstd block is at most 128 KiB). */
const inputBytes = 128 * 1024;
const outputBytes = 256 * 1024;

/** Size of ZSTD_inBuffer and ZSTD_outBuffer: pointer, size, position. */
const bufferStructBytes = 12;

/** Messages for the error codes of `zstd_errors.h` that a damaged or unusual file causes. */
const errorTexts = new Map<number, string>([
  [10, 'no zstd frame begins here'],
  [12, 'the version of the format is not supported'],
  [14, 'the frame uses a parameter that is not supported'],
  [
    16,
    'the frame needs a window of more than 128 MiB (made with --long=28 or more); decompress it with zstd -dc --long=31',
  ],
  [20, 'the compressed data is corrupt'],
  [22, 'the checksum does not match the content'],
  [32, 'the frame needs a dictionary, which is not available'],
  [64, 'not enough memory'],
]);

/** An error code of libzstd. */
export class ZstdError extends Error {
  constructor(readonly zstdCode: number) {
    super(errorTexts.get(zstdCode) ?? `zstd error ${zstdCode}`);
    this.name = 'ZstdError';
  }
}

/** A decompression of any number of consecutive frames. Memory is bounded by one window, at most 128 MiB. */
export class ZstdStream {
  private readonly context: number;
  private readonly input: number;
  private readonly output: number;
  private readonly inputStruct: number;
  private readonly outputStruct: number;
  private lastResult = 0;
  private inputEnd = 0;
  private inputAt = 0;
  private outputWasFull = false;
  private freed = false;

  constructor(private readonly zstd: ZstdLibrary) {
    this.context = zstd.ZSTD_createDCtx();
    this.input = zstd.malloc(inputBytes);
    this.output = zstd.malloc(outputBytes);
    this.inputStruct = zstd.malloc(bufferStructBytes);
    this.outputStruct = zstd.malloc(bufferStructBytes);
    assert(this.context !== 0 && this.outputStruct !== 0, 'no memory for a zstd decoder');
  }

  /** Whether all frames so far are complete. */
  get betweenFrames(): boolean {
    return this.lastResult === 0;
  }

  /** Bytes of the last input that have not been consumed. */
  get inputLeftBytes(): number {
    return this.inputEnd - this.inputAt;
  }

  /** Gives compressed bytes to the decoder; allowed only when the last input is used up. Returns how many bytes were taken. */
  give(bytes: Uint8Array): number {
    assert(!this.freed && this.inputLeftBytes === 0, 'zstd input given too early');
    const taken = Math.min(bytes.length, inputBytes);
    new Uint8Array(this.zstd.memory.buffer, this.input, taken).set(bytes.subarray(0, taken));
    this.inputAt = 0;
    this.inputEnd = taken;
    return taken;
  }

  /** Returns the next content, as a copy; null when more input is needed. Throws `ZstdError`. */
  take(): Uint8Array | null {
    while (this.inputLeftBytes > 0 || this.outputWasFull) {
      const produced = this.step();
      if (produced > 0) return new Uint8Array(this.zstd.memory.buffer, this.output, produced).slice();
    }
    return null;
  }

  private step(): number {
    const before = new DataView(this.zstd.memory.buffer);
    setBuffer(before, this.inputStruct, this.input, this.inputEnd, this.inputAt);
    setBuffer(before, this.outputStruct, this.output, outputBytes, 0);
    const result = this.zstd.ZSTD_decompressStream(this.context, this.outputStruct, this.inputStruct) >>> 0;
    // Error codes are small negative numbers (ZSTD_isError); everything else is a size.
    if (result > 0xffff_ff00) throw new ZstdError(0x1_0000_0000 - result);
    // A new view, because the call may have grown the memory, which detaches the old one.
    const after = new DataView(this.zstd.memory.buffer);
    const produced = after.getUint32(this.outputStruct + 8, true);
    this.inputAt = after.getUint32(this.inputStruct + 8, true);
    this.lastResult = result;
    this.outputWasFull = produced === outputBytes;
    return produced;
  }

  /** Frees the decoder's memory. */
  free(): void {
    if (this.freed) return;
    this.freed = true;
    this.zstd.ZSTD_freeDCtx(this.context);
    for (const pointer of [this.input, this.output, this.inputStruct, this.outputStruct])
      this.zstd.free(pointer);
  }
}

function setBuffer(view: DataView, struct: number, pointer: number, size: number, position: number): void {
  view.setUint32(struct, pointer, true);
  view.setUint32(struct + 4, size, true);
  view.setUint32(struct + 8, position, true);
}
