import { ZSTDDecoder } from 'zstddec/stream';
import { assert } from '../core/errors.js';
import { once } from '../core/waiting.js';

/** The functions of libzstd (`zstd.h`) that are used, compiled to WebAssembly. Pointers and sizes have 32 bits. */
export interface ZstdLibrary {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  free(pointer: number): void;
  /** Decompresses any number of frames. Returns the number of bytes written, or an error code as a negative number. */
  ZSTD_decompress(target: number, targetBytes: number, source: number, sourceBytes: number): number;
  ZSTD_createDCtx(): number;
  ZSTD_freeDCtx(context: number): number;
  ZSTD_decompressStream(context: number, output: number, input: number): number;
}

/**
 * The streaming function of the `zstddec` package mistakes libzstd's error codes for sizes and continues. So this class takes the
 * WebAssembly instance that the package makes, and libzstd is called directly.
 */
class ZstdModule extends ZSTDDecoder {
  /**
   * The package calls this method without `this`, so the instance is stored in a variable of this module. The package needs its own
   * reference, set by `super._init`, when memory grows.
   */
  override _init(...[result]: Parameters<ZSTDDecoder['_init']>): void {
    super._init(result);
    instantiated = (result as { instance: { exports: unknown } }).instance.exports as ZstdLibrary;
  }
}

let instantiated: ZstdLibrary | undefined;

/** libzstd, instantiated once per thread. */
export const loadZstd: () => Promise<ZstdLibrary> = once(instantiate);

async function instantiate(): Promise<ZstdLibrary> {
  await new ZstdModule().init();
  assert(instantiated !== undefined, 'the zstd module was instantiated elsewhere');
  return instantiated;
}
