import { LogstrataError } from '../../terms/errors.js';
import { kernelNeedle, type KernelNeedle } from '../../kernels/needle.js';
import { buildSearchTables, type SearchTables } from '../../kernels/substring.js';
import { foldCodePoint, foldNeedle, hasCaseVariants } from '../../terms/fold.js';
import type { NeedleOp } from '../plan/query.js';

/** What a string predicate looks for, prepared once a query. */
export interface Needle {
  readonly op: NeedleOp;
  /** UTF-8 as given: what `exact` compares with. */
  readonly raw: Uint8Array;
  /** Folded UTF-8: what the other operators look for, and what gram filters are asked. */
  readonly folded: Uint8Array;
  /** The folded code points. */
  readonly points: Uint32Array;
  /**
   * Folding ASCII letters alone finds all matches, except in rows with U+017F or U+212A: no other character of the needle has case variants
   * beyond ASCII.
   */
  readonly asciiFolding: boolean;
  /** Has a letter (k or s) that U+212A or U+017F folds to. */
  readonly meetsFoldingToAscii: boolean;
  /** For `like` with a needle that is not empty. */
  readonly tables: SearchTables | null;
  /** The bytes that are compared, as kernels take them: the raw ones for `exact`, else the folded ones. */
  readonly kernel: KernelNeedle;
}

/** Throws `invalid` for text that is no Unicode (a lone surrogate), which no stored value can equal. */
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
