import { Bench } from 'tinybench';
import { spreadOf } from './spread.js';

/** One step of the engine, done by the plain twin and by the kernel on the same data. */
export interface KernelCase {
  readonly name: string;
  /** Bytes that one call works through: what the rates are of. */
  readonly bytes: number;
  /** Each returns what it made, so that both can be compared; `kernel` is what the engine calls. */
  readonly plain: () => Uint8Array;
  readonly kernel: () => Uint8Array;
}

/** Rates of one case in GB/s (10^9 bytes). */
export interface KernelRates {
  readonly name: string;
  readonly plain: number;
  readonly kernel: number;
}

/** A side is called for at least so many milliseconds, and so often, in each of its turns. */
const turnMsMin = 40;
const callsMin = 3;
/** Turns of each side; they alternate, so that what else the machine does falls on both. */
const turns = 5;

/** Calls a second of each side, in one turn of both. */
function takeTurn(sides: readonly (() => Uint8Array)[], quick: boolean): number[] {
  const bench = new Bench({
    time: quick ? 0 : turnMsMin,
    iterations: quick ? 1 : callsMin,
    warmup: false,
    throws: true,
  });
  sides.forEach((side, i) => bench.add(String(i), side));
  return bench.runSync().map(({ result }) => ('throughput' in result ? result.throughput.mean : NaN));
}

/** Checks that both sides make the same bytes, then times them in turns. `quick` times each but once. */
export function measureCase(kernelCase: KernelCase, quick: boolean): KernelRates {
  const { name, bytes, plain, kernel } = kernelCase;
  const wanted = Buffer.from(plain());
  if (!wanted.equals(kernel())) throw new Error(`${name}: the kernel and its twin differ`);
  const rates = Array.from({ length: quick ? 1 : turns }, () => takeTurn([plain, kernel], quick));
  const rateOf = (side: number): number => spreadOf(rates.map((turn) => (turn[side]! * bytes) / 1e9)).median;
  return { name, plain: rateOf(0), kernel: rateOf(1) };
}
