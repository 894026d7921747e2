import { InvalidArgumentError, Option } from 'commander';
import { byteSizeShape, parseByteSize } from '../../../agents/definition/byte-size.js';

/** The option `--cache` of the commands that answer queries. Its value is parsed to bytes. */
export function cacheOption(): Option {
  const what =
    'memory for decoded columns, such as 512mb or 2gb (default: a quarter of all memory, at most 3.5gb)';
  return new Option('--cache <size>', what).argParser(readSize);
}

function readSize(text: string): number {
  const sizeBytes = parseByteSize(text);
  if (sizeBytes === undefined) throw new InvalidArgumentError(`Expected ${byteSizeShape}.`);
  return sizeBytes;
}
