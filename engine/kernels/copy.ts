/** Copies source[from, to) to `target` from `at` on. */
export function copyBytes(
  source: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): void {
  target.set(source.subarray(from, to), at);
}

/** Copies source[from, to) to `target` from `at` on, each with `shift` added to it, modulo 2^32. */
export function copyShifted(
  source: Uint32Array,
  from: number,
  to: number,
  shift: number,
  target: Uint32Array,
  at: number,
): void {
  for (let i = from; i < to; i++) target[at++] = source[i]! + shift;
}
