import { basename, dirname, resolve } from 'node:path';
import { LogstrataError } from '../../engine/index.js';
import { nameSuffix } from '../patterns/file-captures.js';

const dates = /\d{4}[-_.]?\d{2}[-_.]?\d{2}/g;

/**
 * The `file.path` for logs: their folder, and an expression for their names before rotation (rotated generations are
 * recognised without it). Dates and numbers in names match any other date or number; other differences between the names
 * match any text. Throws `invalid` for files of several folders.
 */
export function pathOf(files: readonly string[]): string {
  const folders = [...new Set(files.map((file) => dirname(resolve(file))))];
  if (folders.length > 1) {
    const message = `the files are in several folders (${folders.slice(0, 3).join(', ')}), but the logs of an agent must be in one folder: make one agent per folder, or name only the files of one folder`;
    throw new LogstrataError('invalid', message);
  }
  const names = [...new Set(files.map((file) => withoutSuffixes(basename(file))))];
  return `${folders[0]!.replace(/\/$/, '')}/${namePattern(names)}`;
}

function withoutSuffixes(name: string): string {
  let base = name;
  while (nameSuffix.test(base)) {
    const shorter = base.replace(nameSuffix, '');
    // A name that consists only of a date keeps it.
    if (shorter === '') break;
    base = shorter;
  }
  return base;
}

function namePattern(names: readonly string[]): string {
  const dated = new Set(names.map((name) => patternOfDates(name)));
  if (dated.size === 1) return [...dated][0]!;
  const numbered = new Set(names.map((name) => escapedForRegex(name).replaceAll(/\d+/g, '\\d+')));
  if (numbered.size === 1) return [...numbered][0]!;
  const first = names[0]!;
  const beginning = commonLength(names, (name, i) => name[i]);
  const rest = Math.min(...names.map((name) => name.length)) - beginning;
  const ending = Math.min(
    rest,
    commonLength(names, (name, i) => name[name.length - 1 - i]),
  );
  return `${escapedForRegex(first.slice(0, beginning))}.*${escapedForRegex(first.slice(first.length - ending))}`;
}

function patternOfDates(name: string): string {
  return escapedForRegex(name).replaceAll(dates, (date) =>
    date.replaceAll(/\d+/g, (digits) => `\\d{${digits.length}}`),
  );
}

function commonLength(names: readonly string[], at: (name: string, i: number) => string | undefined): number {
  let length = 0;
  while (names.every((name) => at(name, length) !== undefined && at(name, length) === at(names[0]!, length)))
    length++;
  return length;
}

function escapedForRegex(text: string): string {
  return text.replaceAll(/[.*+?()|[\]{}^$\\]/g, '\\$&');
}
