import { describe, expect, it } from 'vitest';
import { discover, filesToRead, type Discovery, type KnownFile } from '../../agents/archive/discovery.js';
import type { FooterRead } from '../../agents/archive/file-footers.js';
import type { FoundFile } from '../../agents/archive/found-files.js';
import { DamageError } from '../../engine/index.js';

const nowMs = 1_800_000_000_000;
const old = nowMs - 3_600_000;

/**
 * `path hash`: a file of 100 bytes that was changed an hour ago. The hash `-` means a footer that cannot be read, `0` a footer without
 * rows, and a hash that begins with `~` a stream without an end.
 */
function parse(text: string): { path: string; hash: string; mtimeMs: number } {
  const [path, hash, age] = text.split(' ') as [string, string, string | undefined];
  return { path: `/a/${path}`, hash, mtimeMs: age === undefined ? old : nowMs - Number(age) };
}

function knownOf(text: string): KnownFile {
  const { path, hash, mtimeMs } = parse(text);
  return {
    id: `id-${hash}`,
    path,
    bytes: 100,
    mtimeMs,
    footerHash: hash,
    constants: Object.fromEntries(keysOf(path)),
  };
}

/** The key of a folder `k=value`. */
function keysOf(path: string): ReadonlyMap<string, string> {
  const value = /\/k=([^/]+)\//.exec(path)?.[1];
  return new Map(value === undefined ? [] : [['k', value]]);
}

function footerOf(path: string, hash: string): FooterRead {
  if (hash === '-') return new DamageError(`${path} is cut off`, { path });
  const isOpen = hash.startsWith('~') ? true : undefined;
  return { footerHash: hash, rows: hash === '0' ? 0 : 5, isOpen, columns: [] };
}

interface Case {
  readonly known?: readonly string[];
  readonly found: readonly string[];
  readonly changed?: 'replace';
  readonly missing?: 'retire';
  /** The columns that fields read, if they are listed. */
  readonly columns?: readonly string[];
  /** Folders that could not be read. */
  readonly shut?: readonly string[];
}

/** The actions to take, in short form. */
interface Outcome {
  readonly adds?: readonly string[];
  readonly moves?: readonly string[];
  readonly removes?: readonly string[];
  readonly waits?: readonly string[];
  readonly problems?: readonly RegExp[];
}

function outcomeOf({ known = [], found, changed, missing, columns, shut = [] }: Case): Discovery {
  const knownFiles = known.map(knownOf);
  const files = found.map((text): FoundFile => {
    const { path, mtimeMs } = parse(text);
    return { path, format: 'parquet', bytes: 100, mtimeMs, keys: keysOf(path) };
  });
  const needed = new Set(filesToRead(knownFiles, files));
  const footers = new Map(
    found
      .filter((_, i) => needed.has(files[i]!))
      .map((text) => [parse(text).path, footerOf(parse(text).path, parse(text).hash)]),
  );
  const problems = shut.map((folder) => ({ path: `/a/${folder}`, message: 'shut' }));
  const policy = {
    changed: changed ?? 'fail',
    missing: missing ?? 'fail',
    columns: columns === undefined ? undefined : new Set(columns),
  } as const;
  return discover(knownFiles, { files, problems }, footers, policy, nowMs);
}

const cases: readonly (readonly [string, Case, Outcome])[] = [
  ['nothing', { found: [] }, {}],
  ['new files, in the order in which they were found', { found: ['b B', 'a A'] }, { adds: ['b', 'a'] }],
  ['files that have not changed', { known: ['a A', 'b B'], found: ['a A', 'b B'] }, {}],
  ['a file that was touched', { known: ['a A'], found: ['a A 7000'] }, { moves: ['id-A a'] }],
  ['a file that was moved', { known: ['a A'], found: ['x/b A'] }, { moves: ['id-A x/b'] }],
  [
    'a file that was moved, whose name another file has now',
    {
      known: ['log.1 A 1000000', 'log.2 B 2000000'],
      found: ['log.1 C 100', 'log.2 A 1000000', 'log.3 B 2000000'],
    },
    { adds: ['log.1'], moves: ['id-A log.2', 'id-B log.3'] },
  ],
  [
    'files that have swapped their names',
    { known: ['a A', 'b B'], found: ['a B 99999', 'b A 99999'] },
    { moves: ['id-B a', 'id-A b'] },
  ],
  [
    'files that have swapped their names, and have the same size and time',
    { known: ['a A', 'b B'], found: ['a B', 'b A'] },
    { moves: ['id-B a', 'id-A b'] },
  ],
  ['two files with the same content', { found: ['b A', 'a A'] }, { adds: ['b', 'a'] }],
  ['a copy of a known file', { known: ['a A'], found: ['b A', 'a A'] }, { adds: ['b'] }],
  [
    'two copies of a known file that is missing',
    { known: ['a A'], found: ['c A', 'b A'] },
    { adds: ['b'], moves: ['id-A c'] },
  ],
  [
    'a copy in another folder of a known file that is missing, with another key',
    { known: ['k=1/a A'], found: ['k=2/a A'], missing: 'retire' },
    { adds: ['k=2/a'], removes: ['id-A'] },
  ],
  [
    'a file that was moved to a folder with another key, which no field reads',
    { known: ['k=1/a A'], found: ['k=2/a A'], columns: ['time'] },
    { moves: ['id-A k=2/a'] },
  ],
  [
    'files that an earlier version has attached by their footers alone',
    { known: ['a A', 'b B'], found: ['a A+1 99999', 'x/b B+2'] },
    { moves: ['id-A a', 'id-B x/b'] },
  ],
  ['files without rows', { found: ['a 0', 'b 0'] }, {}],
  ['a file that is being written', { found: ['a - 59999'] }, { waits: ['a'] }],
  ['a stream without an end that was changed recently', { found: ['a ~h 59999'] }, { waits: ['a'] }],
  ['a stream without an end that is no longer being written', { found: ['a ~h 60000'] }, { adds: ['a'] }],
  ['a file with a modification time in the future', { found: ['a - -5000'] }, { waits: ['a'] }],
  [
    'a file that was cut off',
    { found: ['a - 60000', 'b B'] },
    { adds: ['b'], problems: [/^\/a\/a is cut off/] },
  ],
  [
    'a known file that is now cut off',
    { known: ['a A'], found: ['a - 60000'], changed: 'replace' },
    { problems: [/^\/a\/a is cut off/] },
  ],
  [
    'a file that has changed',
    { known: ['a A'], found: ['a B 100'] },
    { problems: [/^\/a\/a is not the file that was attached.*archive.changed is set to replace/] },
  ],
  [
    'a file that has changed, if changes are allowed',
    { known: ['a A'], found: ['a B 100'], changed: 'replace' },
    { adds: ['a'], removes: ['id-A'] },
  ],
  [
    'a file that has lost its rows',
    { known: ['a A'], found: ['a 0 100'], changed: 'replace' },
    { removes: ['id-A'] },
  ],
  [
    'a file that is missing',
    { known: ['a A', 'b B'], found: ['b B'] },
    { problems: [/^\/a\/a does not exist any more: .*archive.missing is set to retire/] },
  ],
  [
    'a file that is missing, if that is allowed',
    { known: ['a A', 'b B'], found: ['b B'], missing: 'retire' },
    { removes: ['id-A'] },
  ],
  [
    'a file that has changed, if only missing files are allowed',
    { known: ['a A', 'b B'], found: ['b B', 'a C 100'], missing: 'retire' },
    { problems: [/^\/a\/a is not the file/] },
  ],
  [
    'no file at all, as with a disk that is not mounted',
    { known: ['a A', 'b B'], found: [], missing: 'retire' },
    {
      problems: [
        /^\/a\/a does not exist any more: no file of the archive was found/,
        /^\/a\/b does not exist/,
      ],
    },
  ],
  [
    'files in a folder that cannot be read',
    { known: ['x/a A', 'b B'], found: ['b B'], shut: ['x'], missing: 'retire' },
    {},
  ],
];

describe('changes to the files of an archive', () => {
  it.each(cases)('%s', (_, given, expected) => {
    const { adds, moves, removes, waits, problems } = outcomeOf(given);
    const short = (path: string): string => path.slice('/a/'.length);
    expect(adds.map(({ path }) => short(path))).toEqual(expected.adds ?? []);
    expect(moves.map(({ id, path }) => `${id} ${short(path)}`)).toEqual(expected.moves ?? []);
    expect(removes.map(({ id }) => id)).toEqual(expected.removes ?? []);
    expect(waits.map(short)).toEqual(expected.waits ?? []);
    expect(problems.map(({ message }) => message)).toEqual(
      (expected.problems ?? []).map((pattern) => expect.stringMatching(pattern) as string),
    );
  });

  it('are found in time proportional to the number of files', () => {
    const texts = Array.from({ length: 200_000 }, (_, i) => `f${i} H${i}`);
    const { moves, adds } = outcomeOf({ known: texts, found: texts.map((text) => `x/${text}`) });
    expect(moves).toHaveLength(texts.length);
    expect(adds).toEqual([]);
  });
});
