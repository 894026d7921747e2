/** A repeatable sequence of numbers in [0, 1) (mulberry32), so that one seed repeats a whole layout. */
export type Random = () => number;

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** An integer in [from, to). */
export function between(random: Random, from: number, to: number): number {
  return from + Math.floor(random() * (to - from));
}
