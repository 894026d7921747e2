import { constants, createGzip, gzipSync } from 'node:zlib';
import type { Gzip, ZlibOptions } from 'node:zlib';

/** Level 6 makes answers a tenth smaller and takes three times as long, which is too slow for the answers of a scan. */
const level = 1;

/** More bytes than deflate makes of one piece of an answer in the worst case, so that a write never waits for a read. */
const readableBytesMax = 2 * 1024 * 1024;

const options: ZlibOptions & { readonly readableHighWaterMark: number } = {
  level,
  flush: constants.Z_SYNC_FLUSH,
  readableHighWaterMark: readableBytesMax,
};

/** The gzip form of answers, kept for as long as the answer itself is in use. */
const packedAnswers = new WeakMap<Uint8Array, Uint8Array>();

/**
 * A whole answer as gzip. If several clients get the same answer (as the same object), it is packed once: packing an answer takes ten times
 * as long as reading it.
 */
export function gzippedAtOnce(answer: Uint8Array): Uint8Array {
  let packed = packedAnswers.get(answer);
  if (packed === undefined) {
    packed = gzipSync(answer, { level });
    packedAnswers.set(answer, packed);
  }
  return packed;
}

/**
 * Packs an answer as gzip, piece by piece. Each piece is flushed, so the client can unpack the records that were found while the scan goes
 * on. If packing fails or the reader stops early, the source of pieces is ended too.
 */
export async function* gzipped(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gzip = createGzip(options);
  // Failures reach the callbacks below. Without a listener they would also end the process.
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
