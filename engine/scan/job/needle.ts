import { LogstrataError } from '../../terms/errors.js';
import { kernelNeedle, type KernelNeedle } from '../../kernels/needle.js';
import { buildSearchTables, type SearchTables } from '../../kernels/substring.js';
import { foldCodePoint, foldNeedle, hasCaseVariants } from '../../terms/fold.js';
import type { NeedleOp } from '../plan/query.js';

/** The text of a string predicate, prepared once per query. */
export interface Needle {
  readonly op: NeedleOp;
  /** The text as UTF-8. `exact` compares with it. */
  readonly raw: Uint8Array;
  /** The case-folded text as UTF-8. The other operators search for it, and n-gram filters are asked for it. */
  readonly folded: Uint8Array;
  /** The folded code points. */
  readonly points: Uint32Array;
  /**
   * Whether folding ASCII letters alone finds all matches, except in rows with U+017F or U+212A. It does where no character of the needle
   * beyond ASCII has case variants.
   */
  readonly asciiFolding: boolean;
  /** Whether the needle has a letter (k or s) that U+212A or U+017F folds to. */
  readonly meetsFoldingToAscii: boolean;
  /** Only for `like` with a non-empty needle. */
  readonly tables: SearchTables | null;
  /** The bytes to compare, in the form that kernels take: the raw bytes for `exact`, else the folded ones. */
  readonly kernel: KernelNeedle;
}

/** Prepares a needle. Throws `invalid` for text with a lone surrogate, which is not valid Unicode and equals no stored value. */
export function prepareNeedle(op: NeedleOp, value: string): Needle {
  if (/\p{Surrogate}/u.test(value)) {
    throw new LogstrataError('invalid', `${JSON.stringify(value)} is not valid Unicode text`);
  }
  const characters = Array.from(value, (character) => character.codePointAt(0)!);
  const points = Uint32Array.from(characters, foldCodePoint);
  const folded = foldNeedle(value);
  const raw = new TextEncoder().encode(value);
  return {
    op,
    raw,
    folded,
    points,
    asciiFolding: points.every((point) => point < 0x80 || !hasCaseVariants(point)),
    meetsFoldingToAscii: points.includes(0x6b) || points.includes(0x73),
    tables: op === 'like' && folded.length > 0 ? buildSearchTables(folded) : null,
    kernel: op === 'exact' ? kernelNeedle(raw, false) : kernelNeedle(folded, true),
  };
}
