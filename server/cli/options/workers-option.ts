import { InvalidArgumentError, Option } from 'commander';
import { workersMax } from '../../../engine/index.js';

/** The option `--workers` of the commands that use threads; `work` says for what. */
export function workersOption(
  work: 'parse and write' | 'read and search' | 'read and count' | 'read and index',
): Option {
  const what = `threads that ${work}, 0 to ${workersMax}; 0 for none (default: one per core, at most 8)`;
  return new Option('--workers <n>', what).argParser(readWorkers);
}

function readWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : -1;
  if (count < 0 || count > workersMax) {
    throw new InvalidArgumentError(`Expected a whole number from 0 to ${workersMax}.`);
  }
  return count;
}
