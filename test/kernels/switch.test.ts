import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const message = Array.from({ length: 3000 }, (_, i) => `GET /products/${i % 700} answered ${200 + (i % 9)}`);

/** A column chunk as either side of the switch writes and reads it. */
async function encodeAndDecode(): Promise<{ chunk: Uint8Array; kernels: boolean; text: string }> {
  const { instantiateKernels } = await import('../../engine/memory/wasm.js');
  const { openCompressor, openDecompressor } = await import('../../engine/parquet/compression.js');
  const { ChunkEncoder } = await import('../../engine/parquet/chunk-encoder.js');
  const { decodeChunk } = await import('../../engine/parquet/chunk-decoder.js');
  const parts = message.map((text) => Buffer.from(text));
  const offsets = new Uint32Array(parts.length + 1);
  parts.forEach((part, row) => (offsets[row + 1] = offsets[row]! + part.length));
  const column = {
    kind: 'bytes',
    length: parts.length,
    offsets,
    bytes: new Uint8Array(Buffer.concat(parts)),
    validity: null,
  } as const;
  const { bytes } = new ChunkEncoder(await openCompressor('lz4')).encode(column, 'any', true);
  const back = decodeChunk(bytes, 'string', parts.length, await openDecompressor('lz4'));
  const text = back.kind === 'bytes' ? Buffer.from(back.bytes).toString() : JSON.stringify(back.kind);
  return { chunk: bytes, kernels: instantiateKernels(1, 1) !== null, text };
}

describe('LOGSTRATA_KERNELS', () => {
  beforeEach(() => vi.resetModules());
  afterEach(() => vi.unstubAllEnvs());

  it('is on where the kernels have been built, and plain switches them off', async () => {
    const withKernels = await encodeAndDecode();
    vi.resetModules();
    vi.stubEnv('LOGSTRATA_KERNELS', 'plain');
    const without = await encodeAndDecode();
    expect([withKernels.kernels, without.kernels]).toEqual([true, false]);
    expect(Buffer.compare(withKernels.chunk, without.chunk)).toBe(0);
    expect(withKernels.text).toBe(without.text);
  });
});
