/**
 * A small pseudo-random number generator with a seed (sfc32 by Chris Doty-Humphrey, seeded through splitmix32). The same seed gives the
 * same numbers on every machine.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    let state = seed | 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return z ^ (z >>> 15);
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    for (let i = 0; i < 12; i++) this.uint32();
  }

  /** An integer from 0 to 2^32 − 1. */
  uint32(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A number x with 0 ≤ x < 1. */
  fraction(): number {
    return this.uint32() / 2 ** 32;
  }

  /** An integer from 0 to bound − 1. */
  below(bound: number): number {
    return Math.floor(this.fraction() * bound);
  }

  /** A random one of the values. */
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** `digits` random hexadecimal digits, in lower case. */
  hex(digits: number): string {
    let text = '';
    while (text.length < digits) text += this.uint32().toString(16).padStart(8, '0');
    return text.slice(0, digits);
  }

  /** An exponentially distributed number with the given mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.fraction());
  }
}

/** Draws indexes with given weights in constant time (Vose's alias method). */
export class WeightedIndex {
  readonly #threshold: Float64Array;
  readonly #alias: Uint32Array;

  constructor(weights: readonly number[]) {
    const count = weights.length;
    const sum = weights.reduce((total, weight) => total + weight, 0);
    this.#threshold = new Float64Array(count).fill(1);
    this.#alias = new Uint32Array(count);
    const scaled = weights.map((weight) => (weight * count) / sum);
    const small: number[] = [];
    const large: number[] = [];
    scaled.forEach((weight, i) => (weight < 1 ? small : large).push(i));
    while (small.length > 0 && large.length > 0) {
      const less = small.pop()!;
      const more = large[large.length - 1]!;
      this.#threshold[less] = scaled[less]!;
      this.#alias[less] = more;
      scaled[more]! -= 1 - scaled[less]!;
      if (scaled[more]! < 1) small.push(large.pop()!);
    }
  }

  /** A random index. */
  draw(random: Random): number {
    const index = random.below(this.#threshold.length);
    return random.fraction() < this.#threshold[index]! ? index : this.#alias[index]!;
  }
}

/** Weights of Zipf's law: the k-th most frequent of `count` items has weight 1 / k^exponent. */
export function zipfWeights(count: number, exponent: number): number[] {
  return Array.from({ length: count }, (_, i) => 1 / (i + 1) ** exponent);
}
