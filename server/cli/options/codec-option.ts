import { Option } from 'commander';
import type { Codec } from '../../../engine/index.js';

/** The option `--codec` of the commands that write sealed segments or exported files. */
export function codecOption(byDefault: string): Option {
  const choices: readonly Codec[] = ['lz4', 'zstd'];
  return new Option('--codec <name>', `lz4 (fast to read) or zstd (small) (default: ${byDefault})`).choices(
    choices,
  );
}
