import { accessSync, constants, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { LogNames } from '../../../agents/collect/logs/log-names.js';
import type { FileInput } from '../../../agents/definition/definition.js';
import { expressionOfShellPattern } from '../../../agents/patterns/shell-pattern.js';
import { describeSystemError } from '../../../agents/sources/source-error.js';
import { formatCount, formatCounted } from '../output/figures.js';

/** Maximum number of names that are shown. */
const shownMax = 3;

/** What `file.path` matches at present. */
export interface PathReport {
  /** Why the folder can't be read; null where it can. */
  readonly problem: string | null;
  /** Names that match as they are, in natural order (numbers by value). */
  readonly logs: readonly string[];
  /** Number of names that match once the endings of rotation and compression are removed. */
  readonly rotated: number;
  /** Names of both kinds that the current user may not read. */
  readonly unreadable: readonly string[];
  /**
   * Where nothing matches because the name was written as a shell pattern such as `app-*.log`: the pattern, and the regular expression to
   * write instead. Else null.
   */
  readonly shellPattern: { readonly pattern: string; readonly expression: string } | null;
}

/** Examines the folder of an agent's logs. */
export function checkPath({ directory, namePattern }: FileInput): PathReport {
  let entries: readonly string[];
  try {
    entries = readdirSync(directory);
  } catch (error) {
    const { message } = describeSystemError(error, directory);
    return { problem: message, logs: [], rotated: 0, unreadable: [], shellPattern: null };
  }
  const names = new LogNames(namePattern);
  const found = entries.flatMap((entry) => names.read(entry) ?? []);
  const inOrder = found.toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  const unreadable = inOrder.filter(({ name }) => !isReadable(join(directory, name)));
  return {
    problem: null,
    logs: inOrder.filter(({ direct }) => direct).map(({ name }) => name),
    rotated: found.filter(({ direct }) => !direct).length,
    unreadable: unreadable.map(({ name }) => name),
    shellPattern: found.length === 0 ? shellPatternFor(namePattern, entries) : null,
  };
}

function shellPatternFor(pattern: string, entries: readonly string[]): PathReport['shellPattern'] {
  const expression = expressionOfShellPattern(pattern);
  if (expression === undefined) return null;
  const names = new LogNames(expression);
  return entries.some((entry) => names.read(entry) !== null) ? { pattern, expression } : null;
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** The report as lines for people. */
export function describePath({ problem, logs, rotated, unreadable, shellPattern }: PathReport): string[] {
  if (problem !== null) return [`note: ${problem}; a server waits for it`];
  if (shellPattern !== null)
    return [
      'note: no file there matches: the name in path is a regular expression.',
      `      ${shellPattern.pattern} of a shell is written ${shellPattern.expression} here`,
    ];
  if (logs.length + rotated === 0) return ['note: no file there matches; a server waits for one'];
  const generations = formatCounted(rotated, 'rotated one');
  const rest = rotated === 0 ? '' : logs.length === 0 ? generations : `, and ${generations}`;
  const there = [
    `there ${logs.length + rotated === 1 ? 'is' : 'are'} ${namesOf(logs)}${rest}`,
    ...(unreadable.length === 0
      ? []
      : [
          `note: this user has no permission to read ${namesOf(unreadable)}; a server that runs as this user has none either`,
        ]),
  ];
  return there;
}

function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, shownMax).join(', ');
  return names.length > shownMax ? `${formatCount(names.length)} files: ${shown}, …` : shown;
}
