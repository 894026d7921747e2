/**
 * Copies `length` bytes in steps of 16: up to 16 bytes behind `source + length` are read and behind `target + length`
 * written, which is why every buffer ends with slack. At least 16 bytes are copied, so that short ones have no branch.
 */
export function copyLoose(target: usize, source: usize, length: usize): void {
  let k: usize = 0;
  do {
    v128.store(target + k, v128.load(source + k));
    k += 16;
  } while (k < length);
}
