/**
 * Instructions of a compiled pattern, numbered as in RE2 (`syntax/prog.go` of Go's regexp, which re2js keeps). Look-behinds,
 * an addition of re2js, do not occur: they need a flag that is not set here.
 */
export const Op = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  rune1: 9,
  runeAny: 10,
  runeAnyNotNewline: 11,
} as const;

/** Conditions of an empty-width instruction, as bits. */
export const Empty = {
  beginLine: 1,
  endLine: 2,
  beginText: 4,
  endText: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const;

/** Kinds of characters next to a position that empty-width instructions distinguish. */
export const Context = { text: 0, newline: 1, word: 2, other: 3 } as const;

/** A compiled pattern as plain arrays, indexed by instruction. */
export interface PatternProgram {
  readonly start: number;
  readonly op: Uint8Array;
  readonly out: Int32Array;
  /** By instruction: second branch of `alt`, conditions of `emptyWidth`, group half of `capture` (2 g is the start of group g). */
  readonly arg: Int32Array;
  readonly classes: RuneClasses;
  /** For rune instructions, the row of `classes.matches`; -1 for others. */
  readonly matcher: Int32Array;
  /** Whether every match begins at the start of the text. */
  readonly anchored: boolean;
}

/** Code points divided into classes: no instruction of the program distinguishes two code points of one class. */
export interface RuneClasses {
  readonly count: number;
  /** Class of each ASCII code. */
  readonly ofAscii: Uint16Array;
  /** First code point of each interval, ascending from 0; `ofInterval` has the interval's class. */
  readonly intervals: Int32Array;
  readonly ofInterval: Uint16Array;
  /** Whether matcher m accepts class c: `matches[m * count + c]`. */
  readonly matches: Uint8Array;
  /** A `Context` per class; `other` where the pattern has no condition that depends on it. */
  readonly contexts: Uint8Array;
}

/** Whether an instruction takes a character. */
export function isRuneOp(op: number): boolean {
  return op >= Op.rune && op <= Op.runeAnyNotNewline;
}

/** Index of the interval that contains a code point. */
export function findInterval(intervals: Int32Array, rune: number): number {
  let low = 0;
  let high = intervals.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (intervals[middle]! <= rune) low = middle;
    else high = middle;
  }
  return low;
}

/** The conditions that hold between two characters. */
export function conditionsBetween(before: number, after: number): number {
  let conditions = 0;
  if (before === Context.text) conditions |= Empty.beginText | Empty.beginLine;
  if (before === Context.newline) conditions |= Empty.beginLine;
  if (after === Context.text) conditions |= Empty.endText | Empty.endLine;
  if (after === Context.newline) conditions |= Empty.endLine;
  const isBoundary = (before === Context.word) !== (after === Context.word);
  return conditions | (isBoundary ? Empty.wordBoundary : Empty.noWordBoundary);
}
