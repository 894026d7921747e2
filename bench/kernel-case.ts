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

/** A side is called for at least this long, and this often, in each of its turns. */
const turnMsMin = 40;
const callsMin = 3;
/** Turns of each side; they alternate, so that what else the machine does falls on both. */
const turns = 5;

function callsPerMs(run: () => unknown, msMin: number): number {
  const start = performance.now();
  let calls = 0;
  let elapsedMs = 0;
  while (calls < callsMin || elapsedMs < msMin) {
    run();
    calls++;
    elapsedMs = performance.now() - start;
  }
  return calls / elapsedMs;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

/** Checks that both sides make the same bytes, then times them in turns. `quick` times each but once. */
export function measureCase(kernelCase: KernelCase, quick: boolean): KernelRates {
  const { name, bytes, plain, kernel } = kernelCase;
  const wanted = Buffer.from(plain());
  if (!wanted.equals(kernel())) throw new Error(`${name}: the kernel and its twin differ`);
  const msMin = quick ? 0 : turnMsMin;
  const plainRates: number[] = [];
  const kernelRates: number[] = [];
  for (let turn = 0; turn < (quick ? 1 : turns); turn++) {
    plainRates.push(callsPerMs(plain, msMin));
    kernelRates.push(callsPerMs(kernel, msMin));
  }
  // A call a millisecond over bytes is bytes/10^6 GB/s.
  return { name, plain: (median(plainRates) * bytes) / 1e6, kernel: (median(kernelRates) * bytes) / 1e6 };
}
