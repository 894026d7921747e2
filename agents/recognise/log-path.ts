import { basename, dirname, resolve } from 'node:path';
import { LogstrataError } from '../../engine/index.js';
import {
  expressionOfShellPattern,
  kindOfFolder,
  nameSuffix,
  pathComponents,
} from '../definition/file-captures.js';

const dates = /\d{4}[-_.]?\d{2}[-_.]?\d{2}/g;

/** Logs in folders that come and go with what writes them: the end of their paths, and what is written for it. */
const knownEnds: readonly (readonly [RegExp, string])[] = [
  [
    /\/pods\/[^/_]+_[^/_]+_[^/_]+\/[^/]+\/\d+\.log$/,
    '(?P<namespace>[^_]+)_(?P<pod>[^_]+)_(?P<uid>[^_]+)/(?P<container>[^/]+)/\\d+\\.log',
  ],
  [/\/containers\/[0-9a-f]{64}\/[0-9a-f]{64}-json\.log$/, '(?P<container_id>[0-9a-f]+)/[0-9a-f]+-json\\.log'],
];

/**
 * The `file.path` for logs: their folder, and an expression for their names before rotation (rotated generations are
 * recognised without it). Dates and numbers in names match any other date or number; other differences between the names
 * match any text. A folder is a pattern where the names of the files' folders differ, or `globs` have one there. Throws
 * `invalid` for files of folders that are not siblings.
 *
 * @param globs patterns of a shell by which the files were found
 */
export function pathOf(files: readonly string[], globs: readonly string[] = []): string {
  const folders = [...new Set(files.map((file) => dirname(resolve(file))))];
  const paths = files.map((file) => resolve(dirname(file), withoutSuffixes(basename(file))).split('/'));
  const { length } = paths[0]!;
  if (paths.some((path) => path.length !== length || path[1] !== paths[0]![1])) {
    const message = `the files are in several folders (${folders.slice(0, 3).join(', ')}) that differ in more than the names of their last folders: make one agent for each, or name only the files of one folder`;
    throw new LogstrataError('invalid', message);
  }
  const written = globs.map((glob) => resolve(glob).split('/')).filter((glob) => glob.length === length);
  const known = knownEnds.find(([each]) => paths.every((path) => each.test(path.join('/'))));
  const end = known && pathComponents(known[1]);
  const components = paths[0]!.slice(0, length - (end?.length ?? 1)).map((first, i) => {
    const glob = written.map((each) => each[i]!).find(isShellPattern);
    if (glob !== undefined) return glob;
    if (paths.some((path) => path[i] !== first)) return '*';
    return kindOfFolder(first) === 'literal' ? first : escapedForRegex(first);
  });
  if (end !== undefined) return [...components, ...end].join('/');
  // A pattern for folders is meant for more than the files that are there now.
  const isTree = components.some((each) => kindOfFolder(each) === 'shell');
  const glob = isTree ? written.map((each) => each.at(-1)!).find(isShellPattern) : undefined;
  const names = [...new Set(paths.map((path) => path.at(-1)!))];
  return [...components, (glob && expressionOfShellPattern(glob)) ?? namePattern(names)].join('/');
}

function isShellPattern(component: string): boolean {
  return component !== '**' && expressionOfShellPattern(component) !== undefined;
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
