import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { pieceStoredBytesMax, type GramFilterShape } from '../sealed/gram-filter.js';
import { GramProbing } from '../sealed/gram-probing.js';
import { openFiles } from '../disk/open-files.js';

/** A gram filter in a file of the real file system. */
export interface GramFilterFile extends GramFilterShape {
  /** Absolute. */
  readonly path: string;
  /** Offset in the file. */
  readonly offset: number;
}

/** One needle, and the filters that are asked for it. */
export interface ProbeJob {
  /** Folded. */
  readonly needle: Uint8Array;
  /** The probe to begin with. */
  readonly first: number;
  readonly filters: readonly GramFilterFile[];
}

export interface ProbeAnswers {
  /** In the order of the filters. */
  readonly mayContain: readonly boolean[];
  /** The probe that was missed last: where to begin the next time. */
  readonly first: number;
  readonly gramPiecesRead: number;
  readonly bytesRead: number;
}

const room = new Uint8Array(pieceStoredBytesMax);

/** Asks gram filters, one after another: the work of `probeTask`. Throws what reading a file throws. */
export function work({ needle, first, filters }: ProbeJob): Finished<ProbeAnswers> {
  let next = first;
  let gramPiecesRead = 0;
  let bytesRead = 0;
  const mayContain = filters.map((filter) => {
    const probing = new GramProbing(filter, needle, next);
    for (let piece = probing.wanted(); piece !== null; piece = probing.wanted()) {
      const bytes = openFiles.read(
        filter.path,
        filter.offset + piece.offset,
        room.subarray(0, piece.storedBytes),
      );
      gramPiecesRead++;
      bytesRead += bytes;
      // Copied, because a later probe may come back to it.
      probing.take(piece, room.slice(0, bytes));
    }
    if (!probing.mayContain) next = probing.missed;
    return probing.mayContain;
  });
  return { result: { mayContain, first: next, gramPiecesRead, bytesRead }, transfer: [] };
}

/** Looks a needle up in the gram filters of several row groups. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };
