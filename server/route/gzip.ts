import { constants, createGzip, gzipSync } from 'node:zlib';
import type { Gzip, ZlibOptions } from 'node:zlib';

/** Level 6 packs a tenth better and costs three times the time, which the answers of a scan don't have. */
const level = 1;

/** More than deflate makes of one piece of an answer in the worst case, so that a write never waits to be read. */
const readableBytesMax = 2 * 1024 * 1024;

const options: ZlibOptions & { readonly readableHighWaterMark: number } = {
  level,
  flush: constants.Z_SYNC_FLUSH,
  readableHighWaterMark: readableBytesMax,
};

/** Answers as gzip, for as long as somebody has them. */
const packedAnswers = new WeakMap<Uint8Array, Uint8Array>();

/** A whole answer as gzip. One that several are given, as the same object, is packed once: that takes ten times as long as to read it. */
export function gzippedAtOnce(answer: Uint8Array): Uint8Array {
  let packed = packedAnswers.get(answer);
  if (packed === undefined) {
    packed = gzipSync(answer, { level });
    packedAnswers.set(answer, packed);
  }
  return packed;
}

/**
 * Packs an answer as gzip, piece by piece. Each piece is flushed: what has been found reaches the client, who can unpack it,
 * while the scan goes on. An end that fails, or a reader that leaves, ends the source.
 */
export async function* gzipped(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gzip = createGzip(options);
  // A failure reaches the callbacks below; without a listener it would end the process besides.
  gzip.on('error', () => undefined);
  try {
    for await (const piece of pieces) {
      await write(gzip, piece);
      const packed: unknown = gzip.read();
      if (packed instanceof Uint8Array) yield packed;
    }
    gzip.end();
    for await (const packed of gzip as AsyncIterable<Uint8Array>) yield packed;
  } finally {
    gzip.destroy();
  }
}

function write(gzip: Gzip, piece: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    gzip.write(piece, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}
