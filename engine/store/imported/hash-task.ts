import type { ForeignPlace } from '../../foreign/foreign-file.js';
import { OpenFiles } from '../disk/open-files.js';
import { readForeignBytes } from '../../foreign/source/foreign-bytes.js';
import { addStripes, stripeBytes } from '../../kernels/xxh64.js';
import { DamageError } from '../../terms/errors.js';
import { verifyPieceBytes } from '../../terms/limits.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';

/** Bytes [from, to) of a file to hash. They are whole stripes, except at the end of the file. */
export interface HashJob extends ForeignPlace {
  readonly from: number;
  readonly to: number;
  /** State of the hash over the preceding bytes. */
  readonly lanes: Uint32Array;
}

/** The state of the hash after a job. */
export interface HashedBytes {
  readonly lanes: Uint32Array;
  /** The bytes after the last whole stripe. */
  readonly rest: Uint8Array;
}

/** Reads and hashes bytes. Throws `damaged` if the file ends before `to`, and as `readForeignBytes` does. */
export function work({ path, copy, from, to, lanes }: HashJob): Finished<HashedBytes> {
  const files = new OpenFiles(1);
  try {
    let rest = new Uint8Array(0);
    for (let at = from; at < to; at += verifyPieceBytes) {
      const piece = new Uint8Array(Math.min(verifyPieceBytes, to - at));
      const read = readForeignBytes({ path, copy }, at, piece, files);
      if (read < piece.length)
        throw new DamageError(
          `${path}, at byte ${at + read}: the file ends here: it is shorter than before`,
          {
            path,
            offset: at + read,
          },
        );
      addStripes(lanes, piece);
      rest = piece.slice(piece.length - (piece.length % stripeBytes));
    }
    return { result: { lanes, rest }, transfer: [] };
  } finally {
    files.close();
  }
}

/** Hashes bytes of a file on a thread. */
export const hashTask: Task<HashJob, HashedBytes> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};
