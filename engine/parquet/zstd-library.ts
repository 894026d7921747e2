import { ZSTDDecoder } from 'zstddec/stream';
import { assert } from '../terms/assert.js';

/** What we call of libzstd (`zstd.h`), compiled to WebAssembly. Pointers and sizes are 32 bits. */
export interface ZstdLibrary {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  free(pointer: number): void;
  /** Decompresses any number of frames. Returns the bytes written, or minus the code of an error. */
  ZSTD_decompress(target: number, targetBytes: number, source: number, sourceBytes: number): number;
  ZSTD_createDCtx(): number;
  ZSTD_freeDCtx(context: number): number;
  ZSTD_decompressStream(context: number, output: number, input: number): number;
}

/**
 * The package's own streaming function takes libzstd's error codes for sizes and goes on, so we take the instance that it
 * makes and call libzstd ourselves.
 */
class ZstdModule extends ZSTDDecoder {
  /** The package calls this without a `this`, hence the variable of the module; its own is used when memory grows. */
  override _init(result: { instance: { exports: unknown } }): void {
    super._init(result);
    instantiated = result.instance.exports as ZstdLibrary;
  }
}

let instantiated: ZstdLibrary | undefined;

let loading: Promise<ZstdLibrary> | undefined;

/** libzstd, instantiated once a thread. */
export function loadZstd(): Promise<ZstdLibrary> {
  loading ??= instantiate();
  return loading;
}

async function instantiate(): Promise<ZstdLibrary> {
  await new ZstdModule().init();
  assert(instantiated !== undefined, 'the zstd module was instantiated elsewhere');
  return instantiated;
}
