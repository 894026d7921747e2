import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findFiles } from '../../agents/archive/found-files.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { fixedBeginning, folderKeys, keysOfGlob } from '../../agents/definition/file-captures.js';

const now = Date.now() / 1000;

/** A folder with these files; each was changed one second before the previous one. */
function folderOf(paths: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-archive-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  paths.forEach((path, i) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), path);
    utimesSync(join(folder, path), now - i, now - i);
  });
  return folder;
}

/** The files that a search from `folder` finds, as paths below it, and its problems. */
async function search(
  folder: string,
  path: string,
  format = 'parquet',
  dataFolder?: string,
): Promise<{ found: string[]; keys: object[]; problems: string[] }> {
  const text = `fields: [{ name: m }]\narchive: { path: ${path}, format: ${format} }`;
  const { archive } = parseAgentFile(text, join(folder, 'agent.yaml'));
  const { files, problems } = await findFiles(archive!, dataFolder);
  const below = (text: string): string => text.replaceAll(`${folder}/`, '');
  return {
    found: files.map((file) => below(file.path)),
    keys: files.map((file) => Object.fromEntries(file.keys)),
    problems: problems.map(({ message }) => below(message)),
  };
}

describe('the files of an archive', () => {
  it('are found by relative and absolute globs, the newest first', async () => {
    const folder = folderOf(['a/1.parquet', 'a/b/2.parquet', 'a/b/c/3.parquet', 'a/4.csv', 'x/5.parquet']);
    expect((await search(folder, "'a/**/*.parquet'")).found).toEqual([
      'a/1.parquet',
      'a/b/2.parquet',
      'a/b/c/3.parquet',
    ]);
    expect((await search(folder, `['${folder}/x/*', 'a/*.{parquet,csv}', a/1.parquet]`)).found).toEqual([
      'a/1.parquet',
      'a/4.csv',
      'x/5.parquet',
    ]);
  });

  it('have any names, also with line ends and in folders with such names', async () => {
    const names = ['\n', '\r', '\u2028', '\u2029', '\\', '[', '"', ' ', '😀'].flatMap((character) => [
      `${character}b`,
      `b${character}b`,
    ]);
    const paths = names.flatMap((name) => [`d/${name}=1/1.parquet`, `d/x/${name}.parquet`]);
    const folder = folderOf(paths);
    symlinkSync(join(folder, 'd'), join(folder, 'a\nlink'));
    for (const path of ['d/**/*.parquet', '*/{?,??,???,????}*/*.parquet'])
      expect((await search(folder, `'${path}'`)).found).toEqual(paths);
    for (const name of names)
      expect(await search(join(folder, 'd', `${name}=1`), '"**/*.parquet"')).toMatchObject({
        found: ['1.parquet'],
        problems: [],
      });
    const exact = JSON.stringify('d/\nb=1/*.parquet');
    expect((await search(folder, exact)).found).toEqual(['d/\nb=1/1.parquet']);
  });

  const tables: readonly (readonly [log: string, file: string, path: string])[] = [
    // The log is where the pattern begins, above that, or below.
    ['t/_delta_log/00000000000000000000.json', 't/1.parquet', 't/*.parquet'],
    ['t/_delta_log/00000000000000000000.json', 't/day=1/x/1.parquet', 't/day=1/x/*.parquet'],
    ['lake/a/t/_delta_log/00000000000000000000.json', 'lake/a/t/1.parquet', 'lake/**/*.parquet'],
    ['lake/a/t/_delta_log/00000000000000000000.json', 'lake/a/t/x/1.parquet', 'lake/*/t/x/1.parquet'],
    ['t/metadata/v1.metadata.json', 't/data/1.parquet', 't/data/*.parquet'],
    ['t/metadata/00000-5f.gz.metadata.json', 't/1.parquet', '**/*.parquet'],
    ['lake/t/metadata/snap-1.avro', 'lake/t/data/a=1/1.parquet', 'lake/*/data/**/*.parquet'],
    ['t/.hoodie/hoodie.properties', 't/1.parquet', '*/*.parquet'],
  ];
  it.each(tables)('of a table with the log %s are refused', async (log, file, path) => {
    const folder = folderOf([log, file, 'other/1.parquet']);
    const place = join(folder, log.replace(/\/[^/]*$/, ''));
    const refusal = expect.stringMatching(
      new RegExp(`^${place} is the log of an? (?:Delta|Iceberg|Hudi) table: `),
    ) as string;
    await expect(search(folder, `'${path}'`)).rejects.toMatchObject({ message: refusal, path: place });
    await expect(search(folder, `['other/*.parquet', '${path}']`)).rejects.toThrow(place);
    expect((await search(folder, 'other/*.parquet')).found).toEqual(['other/1.parquet']);
    // A link leads into the table.
    symlinkSync(join(folder, file, '..'), join(folder, 'other/link'));
    for (const path of ['other/link/*.parquet', 'other/**/*.parquet'])
      await expect(search(folder, `'${path}'`)).rejects.toThrow(`/${basename(place)} is the log of`);
  });

  it('that belong to no table are found beside one, and in folders that only have such a name', async () => {
    const folder = folderOf([
      'a/1.parquet',
      'a/metadata/notes.json',
      'a/b/metadata/2.parquet',
      't/_delta_log/0.json',
      't/3.parquet',
      't/4.log',
    ]);
    expect((await search(folder, "'a/**/*.parquet'")).found).toEqual([
      'a/1.parquet',
      'a/b/metadata/2.parquet',
    ]);
    expect((await search(folder, "'*/1.parquet'")).found).toEqual(['a/1.parquet']);
    expect((await search(folder, "'t/*.log'", 'json')).found).toEqual(['t/4.log']);
  });

  it('of the same time are ordered by name from the end, numbers by value', async () => {
    const folder = folderOf(['l.2', 'l.10', 'l.1']);
    for (const name of ['l.2', 'l.10', 'l.1']) utimesSync(join(folder, name), now, now);
    expect((await search(folder, "'l.*'", 'json')).found).toEqual(['l.10', 'l.2', 'l.1']);
  });

  it('leave out hidden files, files that other programs put aside, and our own files', async () => {
    const names = [
      'a/1.parquet',
      'a/.1.parquet',
      'a/_temporary/0/2.parquet',
      'a/_metadata.parquet',
      'a/_day=1/3.parquet',
      'a/store/web/4.parquet',
    ];
    const folder = folderOf(names);
    const { found } = await search(folder, "'a/**/*.parquet'", 'parquet', join(folder, 'a/store'));
    expect(found).toEqual(['a/1.parquet', 'a/_day=1/3.parquet']);
    expect((await search(folder, "'a/_*'", 'json')).found).toEqual(['a/_metadata.parquet']);
  });

  it('are found once, under their shortest name, whatever links lead to them', async () => {
    const folder = folderOf(['a/dt=1/long.parquet', 'far/z.parquet']);
    symlinkSync('..', join(folder, 'a/dt=1/loop'));
    symlinkSync('../far', join(folder, 'a/link'));
    symlinkSync('../far/z.parquet', join(folder, 'a/z.parquet'));
    linkSync(join(folder, 'a/dt=1/long.parquet'), join(folder, 'a/dt=1/l.parquet'));
    const { found, problems } = await search(folder, "'a/**/*.parquet'");
    expect(found).toEqual(['a/dt=1/l.parquet', 'a/z.parquet']);
    expect(problems).toEqual([]);
  });

  it('that cannot be read are named, and the others are found', async () => {
    const folder = folderOf(['a/1.parquet', 'a/shut/2.parquet']);
    symlinkSync('nowhere', join(folder, 'a/broken.parquet'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    symlinkSync('../pipe', join(folder, 'a/pipe.parquet'));
    writeFileSync(
      Buffer.concat([Buffer.from(join(folder, 'a/')), Buffer.from([0xff]), Buffer.from('.parquet')]),
      '',
    );
    chmodSync(join(folder, 'a/shut'), 0);
    onTestFinished(() => chmodSync(join(folder, 'a/shut'), 0o700));
    const { found, problems } = await search(folder, "'a/**/*.parquet'");
    expect(found.slice(0, 1)).toEqual(['a/1.parquet']);
    expect(problems).toContain('a/broken.parquet is a symbolic link to a file that does not exist');
    expect(problems).toContain('a/pipe.parquet is skipped: it is a named pipe or a device, not a file');
    expect(problems.join()).toContain('its name is not UTF-8; rename it');
    // A superuser may read every folder.
    if (process.getuid?.() !== 0) expect(problems.join()).toContain("a/shut can't be read");
  });

  it('in a missing folder are a problem', async () => {
    const folder = folderOf([]);
    const { found, problems } = await search(folder, "'gone/**/*.parquet'");
    expect(found).toEqual([]);
    expect(problems).toEqual(['the folder gone is not there']);
  });

  it('have the keys of the folders below the fixed part of their glob', async () => {
    const folder = folderOf([
      'x=1/dt=2026-01-01/host=a%2Fb%20c/1.parquet',
      'x=1/dt=__HIVE_DEFAULT_PARTITION__/host=100%/2.parquet',
    ]);
    const { keys } = await search(folder, "'x=1/**/*.parquet'");
    expect(keys).toEqual([
      { dt: '2026-01-01', host: 'a/b c' },
      { dt: null, host: '100%' },
    ]);
  });
});

it.each([
  ['/a/b/*.parquet', '/a/b'],
  ['a/b/c.parquet', 'a/b'],
  ['*.parquet', ''],
  ['/x.parquet', '/'],
  ['/**/x', '/'],
  ['a/{b,c}/d/*', 'a'],
  ['../l?/d/*', '..'],
])('the fixed folder of the pattern %s is "%s"', (glob, beginning) => {
  expect(fixedBeginning(glob)).toBe(beginning);
});

it('the keys of folders are read from globs and from paths', () => {
  expect(keysOfGlob('/a/dt=*/host=web-?/b/c=1.parquet')).toEqual(['dt', 'host']);
  const keys = (path: string, ...folders: string[]): object => Object.fromEntries(folderKeys(path, folders));
  expect(keys('/a/d=1/e=2/f=3.log', '/a/d=1', '/a')).toEqual({ d: '1', e: '2' });
  expect(keys('/a/d=1/d=2/f', '/a')).toEqual({ d: '2' });
  expect(keys('/a/=1/d=/%ff=%zz/f', '/a')).toEqual({ d: '', '%ff': '%zz' });
  expect(keys('/ab/d=1/f', '/a')).toEqual({});
});
