import { foldCodePoint, foldNeedle } from '../core/fold.js';
import { isRuneOp, Op, type PatternProgram } from './pattern-program.js';

/** Limits on the texts, beyond which further ones rule out little: how many, how long, and of how many characters a class may stand for itself. */
const textsMax = 8;
const textBytesMax = 48;
const classCharactersMax = 4;

/** Limit on the instructions that the search for texts looks at. Patterns of logs need some hundred. */
const lookedMax = 100_000;

/**
 * Texts of which every text that matches the pattern contains at least one, after case folding. Empty where none is known that is worth
 * searching. The program may be any graph: a place that every match passes is followed as long as all that may come next are known
 * characters.
 */
export function requiredTexts(program: PatternProgram): readonly string[] {
  const characters = characterFinder(program);
  const budget = { looked: 0 };
  let best: readonly string[] = [];
  for (const pc of placesPassed(program))
    for (const texts of textsFrom(program, pc, characters, budget))
      if (worth(texts) > worth(best)) best = texts;
  return best;
}

/** How much is gained by searching for texts: filters of row groups know texts of three bytes and more, and each further text costs. */
function worth(texts: readonly string[]): number {
  if (texts.length === 0) return 0;
  const bytes = Math.min(...texts.map((text) => foldNeedle(text).length));
  return bytes === 0 ? 0 : Math.min(bytes, 16) - (texts.length - 1) / 2 + (bytes < 3 ? 0 : 16);
}

/** The instructions that every match passes, in their order. */
export function placesPassed(program: PatternProgram): number[] {
  const { start } = program;
  const cameFrom = new Map<number, number>([[start, -1]]);
  for (const pc of cameFrom.keys())
    for (const next of nextOf(program, pc)) if (!cameFrom.has(next)) cameFrom.set(next, pc);
  // Any way to the end has all of them.
  const way: number[] = [];
  for (let pc = program.op.indexOf(Op.match); cameFrom.has(pc); pc = cameFrom.get(pc)!) way.unshift(pc);
  const indexOf = new Map(way.map((pc, i) => [pc, i]));
  const passed: number[] = [];
  const seen = new Set<number>();
  // How far along the way one can come from before the instruction without passing it.
  let farthest = 0;
  way.forEach((pc, i) => {
    if (farthest <= i) passed.push(pc);
    const open = [pc];
    for (let from = open.pop(); from !== undefined; from = open.pop())
      for (const next of nextOf(program, from)) {
        const place = indexOf.get(next);
        if (place !== undefined) farthest = Math.max(farthest, place);
        else if (!seen.has(next)) open.push((seen.add(next), next));
      }
  });
  return passed;
}

/** The instructions that may follow one. */
export function nextOf({ op, out, arg }: PatternProgram, pc: number): readonly number[] {
  if (op[pc] === Op.match || op[pc] === Op.fail) return [];
  return op[pc] === Op.alt || op[pc] === Op.altMatch ? [out[pc]!, arg[pc]!] : [out[pc]!];
}

type Characters = (pc: number) => readonly string[] | null;

/** Finds the characters that an instruction takes, folded; null where they are too many. */
function characterFinder({ classes, matcher }: PatternProgram): Characters {
  const { intervals, ofInterval, matches, count } = classes;
  const known = new Map<number, readonly string[] | null>();
  const find = (row: number): readonly string[] | null => {
    const folded = new Set<number>();
    for (let i = 0; i < intervals.length; i++) {
      if (matches[row * count + ofInterval[i]!] === 0) continue;
      const end = intervals[i + 1] ?? Infinity;
      if (end - intervals[i]! > 2 * classCharactersMax) return null;
      for (let point = intervals[i]!; point < end; point++) folded.add(foldCodePoint(point));
      if (folded.size > classCharactersMax) return null;
    }
    return Array.from(folded, (point) => String.fromCodePoint(point));
  };
  return (pc) => {
    const row = matcher[pc]!;
    if (!known.has(row)) known.set(row, find(row));
    return known.get(row)!;
  };
}

/**
 * The texts that matches may have from an instruction on, in all lengths: first texts of one character, then longer ones. Those that may
 * be followed by anything stay as they are.
 */
function* textsFrom(
  program: PatternProgram,
  pc: number,
  characters: Characters,
  budget: { looked: number },
): Generator<string[], void> {
  const ended = new Set<string>();
  let open = new Map<string, Set<number>>([['', new Set([pc])]]);
  for (let length = 0; length < textBytesMax && open.size > 0; length++) {
    const longer = new Map<string, Set<number>>();
    for (const [text, pcs] of open) {
      for (const next of pcs) {
        if (budget.looked++ > lookedMax) return;
        const taken = isRuneOp(program.op[next]!) ? characters(next) : [];
        if (taken === null || program.op[next] === Op.match) {
          ended.add(text);
          break;
        }
        if (taken.length === 0) for (const after of nextOf(program, next)) pcs.add(after);
        for (const character of taken) {
          const known = longer.get(text + character);
          const after = program.out[next]!;
          if (known === undefined) longer.set(text + character, new Set([after]));
          else known.add(after);
        }
      }
    }
    for (const text of longer.keys())
      if ([...ended].some((prefix) => text.startsWith(prefix))) longer.delete(text);
    if (ended.has('') || ended.size + longer.size > textsMax) return;
    yield [...ended, ...longer.keys()];
    open = longer;
  }
}
