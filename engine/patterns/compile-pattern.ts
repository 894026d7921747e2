import { RE2JS, RE2JSException } from 're2js';
import { LogstrataError } from '../core/errors.js';
import { caseVariants } from '../core/fold.js';
import {
  Context,
  Empty,
  findInterval,
  isRuneOp,
  Op,
  type PatternProgram,
  type RuneClasses,
} from './pattern-program.js';

interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: ArrayLike<number>;
  matchRune(rune: number): boolean;
}

const runeMax = 0x10ffff;

/**
 * Limit on comparisons of characters with instructions for dividing them into classes: less than a second. Patterns of real
 * logs take some thousand.
 */
const comparisonsMax = 32 * 1024 * 1024;

/** Bit of `arg` by which re2js marks an instruction that ignores case. */
const foldCase = 1;

/**
 * Default limit on the instructions of a compiled pattern. Patterns of real logs have some hundreds. A line may take as many
 * steps per byte as the pattern has instructions.
 */
const instructionsMaxDefault = 64 * 1024;

/** Compiles a pattern in Go/RE2 syntax. Throws `invalid` for one that is invalid or too large. */
export function compilePattern(text: string, instructionsMax = instructionsMaxDefault): RE2JS {
  let pattern: RE2JS;
  try {
    pattern = RE2JS.compile(text);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const problem = error.message.replace(/^error parsing regexp: /, '');
    throw new LogstrataError('invalid', `not a regular expression in Go's (RE2) syntax: ${problem}`, {
      cause: error,
    });
  }
  const size = pattern.programSize();
  if (size <= instructionsMax) return pattern;
  throw new LogstrataError(
    'invalid',
    `too large: with its repetitions written out it has ${size} instructions, more than ${instructionsMax}`,
  );
}

/**
 * Converts the program that re2js compiled, whose form is that of the one version in package.json. Throws `invalid` for a program that
 * distinguishes too many characters.
 */
export function readPatternProgram(pattern: RE2JS): PatternProgram {
  const { inst, start } = pattern.re2Input.prog as { inst: readonly Instruction[]; start: number };
  const matchers = new Map<string, Instruction>();
  const names: string[] = [];
  // Repetitions of a class share its runes, which may be some thousand numbers.
  const joined = new Map<ArrayLike<number>, string>();
  for (const i of inst) {
    const runes = joined.get(i.runes) ?? Array.from(i.runes).join();
    joined.set(i.runes, runes);
    const name = isRuneOp(i.op) ? `${i.op}:${i.arg & foldCase}:${runes}` : '';
    names.push(name);
    if (name !== '') matchers.set(name, i);
  }
  const numbers = new Map([...matchers.keys()].map((name, number) => [name, number]));
  return {
    start,
    op: Uint8Array.from(inst, (i) => i.op),
    out: Int32Array.from(inst, (i) => i.out),
    arg: Int32Array.from(inst, (i) => i.arg),
    classes: divideRunes([...matchers.values()], emptyConditions(inst)),
    matcher: Int32Array.from(names, (name) => numbers.get(name) ?? -1),
    anchored: beginsWithText(inst, start),
  };
}

function emptyConditions(inst: readonly Instruction[]): number {
  return inst.reduce((all, i) => (i.op === Op.emptyWidth ? all | i.arg : all), 0);
}

/** Whether every match must first pass an instruction that requires the start of the text. */
function beginsWithText(inst: readonly Instruction[], start: number): boolean {
  let pc = start;
  for (;;) {
    const i = inst[pc]!;
    if (i.op === Op.emptyWidth && (i.arg & Empty.beginText) !== 0) return true;
    if (i.op !== Op.emptyWidth && i.op !== Op.capture && i.op !== Op.nop) return false;
    pc = i.out;
  }
}

function matchesRune(i: Instruction, rune: number): boolean {
  switch (i.op) {
    case Op.runeAny:
      return true;
    case Op.runeAnyNotNewline:
      return rune !== 10;
    case Op.rune1:
      return rune === i.runes[0];
    default:
      return i.matchRune(rune);
  }
}

/** Adds the borders of the intervals within which the instruction accepts all code points or none. */
function addBorders(i: Instruction, borders: Set<number>): void {
  const add = (low: number, high: number): void => void borders.add(low).add(high + 1);
  if (i.op === Op.runeAnyNotNewline) add(10, 10);
  if (i.op !== Op.rune && i.op !== Op.rune1) return;
  if (i.runes.length !== 1) {
    for (let k = 0; k < i.runes.length; k += 2) add(i.runes[k]!, i.runes[k + 1]!);
    return;
  }
  const rune = i.runes[0]!;
  add(rune, rune);
  if ((i.arg & foldCase) === 0) return;
  for (const other of caseVariants()) if (i.matchRune(other)) add(other, other);
}

function contextOf(rune: number, conditions: number): number {
  const asksLines = (conditions & (Empty.beginLine | Empty.endLine)) !== 0;
  const asksWords = (conditions & (Empty.wordBoundary | Empty.noWordBoundary)) !== 0;
  if (rune === 10 && asksLines) return Context.newline;
  return asksWords && /^[0-9A-Za-z_]$/.test(String.fromCodePoint(rune)) ? Context.word : Context.other;
}

function divideRunes(matchers: readonly Instruction[], conditions: number): RuneClasses {
  const borders = new Set<number>([0]);
  for (const i of matchers) addBorders(i, borders);
  if (conditions !== 0) for (const border of [10, 11, 48, 58, 65, 91, 95, 96, 97, 123]) borders.add(border);
  borders.delete(runeMax + 1);
  const intervals = Int32Array.from(borders).sort();
  requireFew(matchers.length * intervals.length);
  const numbers = new Map<string, number>();
  const representatives: number[] = [];
  const ofInterval = Uint16Array.from(intervals, (rune) => {
    const answers = matchers.map((i) => (matchesRune(i, rune) ? '1' : '0')).join('');
    const key = `${contextOf(rune, conditions)}${answers}`;
    const known = numbers.get(key) ?? numbers.size;
    if (known === numbers.size) representatives.push(rune);
    numbers.set(key, known);
    return known;
  });
  const count = numbers.size;
  const matches = new Uint8Array(matchers.length * count);
  matchers.forEach((i, m) => {
    representatives.forEach((rune, c) => (matches[m * count + c] = matchesRune(i, rune) ? 1 : 0));
  });
  const ofAscii = new Uint16Array(128);
  for (let code = 0; code < 128; code++) ofAscii[code] = ofInterval[findInterval(intervals, code)]!;
  const contexts = Uint8Array.from(representatives, (rune) => contextOf(rune, conditions));
  return { count, ofAscii, intervals, ofInterval, matches, contexts };
}

function requireFew(comparisons: number): void {
  if (comparisons <= comparisonsMax) return;
  throw new LogstrataError(
    'invalid',
    'too large: it has too many different characters and character classes',
  );
}
