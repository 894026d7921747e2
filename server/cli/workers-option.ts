import { InvalidArgumentError, Option } from 'commander';
import { workersMax } from '../../engine/limits.js';

/** `--workers`, for the commands that write sealed segments. */
export function workersOption(): Option {
  const what = `threads that parse and write, 0 to ${workersMax}; 0 for none (default: the cores, at most 8)`;
  return new Option('--workers <n>', what).argParser(readWorkers);
}

function readWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : -1;
  if (count < 0 || count > workersMax) {
    throw new InvalidArgumentError(`expected a whole number from 0 to ${workersMax}.`);
  }
  return count;
}
