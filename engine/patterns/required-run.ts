import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from '../kernels/kernels.js';
import { isRuneOp, Op, type PatternProgram } from './pattern-program.js';
import { nextOf, placesPassed } from './required-texts.js';
import type { Texts } from './pattern-search.js';

/** Bytes of a run. The tables have a bit for each. */
const places = 8;

/** How often any bytes may be such a run, as the power of two of the reciprocal: beyond, too many rows have one. */
const rarityMin = 16;

/**
 * Consecutive bytes that every text that matches a pattern has, each in a set of its own: two tables of sixteen bytes, by the low and the
 * high half of a byte. A byte may be at a place if both have the place's bit, which some other bytes may have as well.
 */
export type RequiredRun = Uint8Array;

/** The rarest run that is known; null where none is rare. */
export function requiredRun(program: PatternProgram): RequiredRun | null {
  let best: RequiredRun | null = null;
  let most = rarityMin;
  for (const pc of placesPassed(program)) {
    const run = runFrom(program, pc);
    const rarity = rarityOf(run);
    if (rarity > most) [best, most] = [run, rarity];
  }
  return best;
}

/** The run of what may follow an instruction. A place that takes a character beyond ASCII, or that may be behind the match, takes any byte. */
function runFrom(program: PatternProgram, pc: number): RequiredRun {
  const { classes, matcher, op, out } = program;
  const run = new Uint8Array(32);
  let open = new Set([pc]);
  for (let place = 0; place < places; place++) {
    const after = new Set<number>();
    let isKnown = true;
    const taken = new Uint8Array(classes.count);
    for (const next of open) {
      if (op[next] === Op.match) isKnown = false;
      if (!isRuneOp(op[next]!)) for (const each of nextOf(program, next)) open.add(each);
      else {
        after.add(out[next]!);
        for (let c = 0; c < classes.count; c++)
          taken[c]! |= classes.matches[matcher[next]! * classes.count + c]!;
      }
    }
    const isAscii = classes.intervals.every(
      (from, i) =>
        taken[classes.ofInterval[i]!] === 0 || (from < 128 && (classes.intervals[i + 1] ?? Infinity) <= 128),
    );
    if (!isKnown || !isAscii) return run.map((bits) => bits | (0xff << place));
    for (let code = 0; code < 128; code++)
      if (taken[classes.ofAscii[code]!] === 1) {
        run[code & 15]! |= 1 << place;
        run[16 + (code >> 4)]! |= 1 << place;
      }
    open = after;
  }
  return run;
}

function rarityOf(run: RequiredRun): number {
  let rarity = 0;
  for (let place = 0; place < places; place++) {
    const count = (half: Uint8Array): number => half.reduce((sum, bits) => sum + ((bits >> place) & 1), 0);
    const bytes = count(run.subarray(0, 16)) * count(run.subarray(16));
    rarity += Math.log2(256 / Math.max(bytes, 1));
  }
  return rarity;
}

/** Sets the bits of the rows [from, to) to whether they may have the run. `from` must be a multiple of 8. */
export function selectRun(
  { offsets, bytes }: Texts,
  run: RequiredRun,
  from: number,
  to: number,
  bits: Uint8Array,
): void {
  const first = from >> 3;
  const count = ((to + 7) >> 3) - first;
  const [start, end] = [offsets[from]!, offsets[to]!];
  const scratch = openScratch(
    scratchBytes(bytes, end - start) +
      scratchBytes(offsets, to + 1 - from) +
      scratchBytes(bits, count) +
      run.length,
  );
  const runAt = scratch.copy(run, 0, run.length);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const offsetsAt = scratch.place(offsets, from, to + 1) - 4 * from;
  const bitsAt = scratch.target(bits, first, count);
  kernelsOver(scratch).selectRun(bytesAt, offsetsAt, from, to, runAt, bitsAt);
  scratch.copyOut(bitsAt, bits, first, count);
}
