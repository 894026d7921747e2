/**
 * Copies `length` bytes in steps of 16. Up to 16 bytes after `source + length` are read and after `target + length` written, which is why
 * every buffer ends with padding (`paddingBytes`). At least 16 bytes are copied, so that short copies need no branch.
 */
export function copyLoose(target: usize, source: usize, length: usize): void {
  let k: usize = 0;
  do {
    v128.store(target + k, v128.load(source + k));
    k += 16;
  } while (k < length);
}

/** Copies exactly `length` bytes. The ranges may overlap. */
export function copyBytes(target: usize, source: usize, length: usize): void {
  memory.copy(target, source, length);
}

/** Copies `count` 32-bit words and adds `shift` to each, modulo 2^32. */
export function copyShifted(target: usize, source: usize, count: u32, shift: u32): void {
  const shifts = i32x4.splat(shift);
  let i: u32 = 0;
  for (; i + 4 <= count; i += 4) {
    const at = (<usize>i) << 2;
    v128.store(target + at, i32x4.add(v128.load(source + at), shifts));
  }
  for (; i < count; i++) {
    const at = (<usize>i) << 2;
    store<u32>(target + at, load<u32>(source + at) + shift);
  }
}
