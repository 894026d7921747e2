import { Bench } from 'tinybench';
import { spreadOf } from './spread.js';

/** A step of the engine, done on the same data by the kernel and by its plain TypeScript twin. */
export interface KernelCase {
  readonly name: string;
  /** Bytes that a call processes; rates refer to these. */
  readonly bytes: number;
  /** Each returns its output for the comparison. `kernel` is the implementation that the engine uses. */
  readonly plain: () => Uint8Array;
  readonly kernel: () => Uint8Array;
}

/** The rates of a case in GB/s (10^9 bytes). */
export interface KernelRates {
  readonly name: string;
  readonly plain: number;
  readonly kernel: number;
}

/** Minimum milliseconds and calls of a side in a turn. */
const turnMsMin = 40;
const callsMin = 3;
/** Turns of each side. They alternate, so that other load of the machine affects both alike. */
const turns = 5;

/** Calls per second of each side in one turn. */
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

/** Checks that both sides give the same bytes, then measures them in turns. With `quick` each is called once. */
export function measureCase(kernelCase: KernelCase, quick: boolean): KernelRates {
  const { name, bytes, plain, kernel } = kernelCase;
  const wanted = Buffer.from(plain());
  if (!wanted.equals(kernel())) throw new Error(`${name}: the kernel and its twin differ`);
  const rates = Array.from({ length: quick ? 1 : turns }, () => takeTurn([plain, kernel], quick));
  const rateOf = (side: number): number => spreadOf(rates.map((turn) => (turn[side]! * bytes) / 1e9)).median;
  return { name, plain: rateOf(0), kernel: rateOf(1) };
}
