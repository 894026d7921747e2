/** As many different values are counted exactly. */
export const distinctExactMax = 10_000;

/** Bits of a hash that choose a register. With 2^16 registers, the standard error of an estimate is 0.41 %. */
const registerBits = 16;
const registers = 2 ** registerBits;
/** The bits behind them: a register has the most zeros that these began with, plus 1. */
const restBits = 64 - registerBits;

const slotsAtFirst = 8;

/**
 * The number of different hashes: those of a set up to `distinctExactMax`, beyond which HyperLogLog estimates it. Both depend only on which hashes
 * were added. Hashes are XXH64, which are different for different numbers.
 */
export class DistinctValues {
  /** Hashes as pairs of words by open addressing, at most three quarters full. Two zeros are an empty slot. */
  #slots: Uint32Array | null = new Uint32Array(2 * slotsAtFirst);
  #size = 0;
  #hasZero = false;
  #registers: Uint8Array | null = null;
  readonly #take: (bytes: number) => void;

  /** @param take is called before memory is taken, with a number of bytes, or given back, with a negative one; may throw */
  constructor(take: (bytes: number) => void) {
    take(this.#slots!.byteLength);
    this.#take = take;
  }

  get isExact(): boolean {
    return this.#registers === null;
  }

  /** Adds a hash, given as its halves. */
  add(low: number, high: number): void {
    if (this.#registers !== null) mark(this.#registers, low, high);
    else if (low === 0 && high === 0) this.#hasZero = true;
    else if (this.#addTo(this.#slots!, low, high)) this.#grow();
    if (this.#registers === null && this.#exact() > distinctExactMax) this.#estimate();
  }

  /** Adds all hashes of another set. */
  addAll(other: DistinctValues): void {
    if (other.#registers === null) {
      other.#each((low, high) => this.add(low, high));
      return;
    }
    if (this.#registers === null) this.#estimate();
    const own = this.#registers!;
    for (let i = 0; i < registers; i++) if (other.#registers[i]! > own[i]!) own[i] = other.#registers[i]!;
  }

  count(): number {
    return this.#registers === null ? this.#exact() : Math.round(estimateOf(this.#registers));
  }

  #exact(): number {
    return this.#size + (this.#hasZero ? 1 : 0);
  }

  #each(use: (low: number, high: number) => void): void {
    const slots = this.#slots!;
    if (this.#hasZero) use(0, 0);
    for (let at = 0; at < slots.length; at += 2)
      if (slots[at] !== 0 || slots[at + 1] !== 0) use(slots[at]!, slots[at + 1]!);
  }

  /** Adds a hash that is not 0 to slots. Returns whether it is new. */
  #addTo(slots: Uint32Array, low: number, high: number): boolean {
    const mask = slots.length - 1;
    let at = (low << 1) & mask;
    for (; slots[at] !== 0 || slots[at + 1] !== 0; at = (at + 2) & mask)
      if (slots[at] === low && slots[at + 1] === high) return false;
    slots[at] = low;
    slots[at + 1] = high;
    return true;
  }

  #grow(): void {
    this.#size++;
    const { length, byteLength } = this.#slots!;
    if (8 * this.#size <= 3 * length) return;
    this.#take(byteLength);
    const slots = new Uint32Array(2 * length);
    this.#each((low, high) => low + high > 0 && this.#addTo(slots, low, high));
    this.#slots = slots;
  }

  #estimate(): void {
    const marked = new Uint8Array(registers);
    this.#each((low, high) => mark(marked, low, high));
    this.#take(marked.length - this.#slots!.byteLength);
    this.#registers = marked;
    this.#slots = null;
  }
}

function mark(marked: Uint8Array, low: number, high: number): void {
  const register = high >>> (32 - registerBits);
  const upper = (high << registerBits) >>> 0;
  const zeros = upper > 0 ? Math.clz32(upper) : 32 - registerBits + Math.clz32(low);
  if (zeros >= marked[register]!) marked[register] = zeros + 1;
}

/** Otmar Ertl, New cardinality estimation algorithms for HyperLogLog sketches (2017), algorithm 6: it needs no tables of bias. */
function estimateOf(marked: Uint8Array): number {
  const withZeros = new Float64Array(restBits + 2);
  for (const each of marked) withZeros[each]! += 1;
  let sum = registers * ofFull(1 - withZeros[restBits + 1]! / registers);
  for (let zeros = restBits; zeros >= 1; zeros--) sum = 0.5 * (sum + withZeros[zeros]!);
  sum += registers * ofEmpty(withZeros[0]! / registers);
  return (registers * registers) / (2 * Math.LN2 * sum);
}

/** Sigma of that paper. The part of empty registers is below 1. */
function ofEmpty(part: number): number {
  let [sum, power, weight, before] = [part, part, 1, NaN];
  while (sum !== before) {
    before = sum;
    power *= power;
    sum += power * weight;
    weight += weight;
  }
  return sum;
}

/** Tau of that paper. */
function ofFull(part: number): number {
  if (part === 0 || part === 1) return 0;
  let [sum, root, weight, before] = [1 - part, part, 1, NaN];
  while (sum !== before) {
    before = sum;
    root = Math.sqrt(root);
    weight *= 0.5;
    sum -= (1 - root) ** 2 * weight;
  }
  return sum / 3;
}
