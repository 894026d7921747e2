import { execFileSync } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { expandFiles } from '../../../agents/load/load-paths.js';
import { PathPattern } from '../../../agents/definition/file-captures.js';
import { shellWord, shownLine } from '../../../agents/decode/line-text.js';
import { shellPath } from '../../../agents/sources/paths.js';
import { itUnless, missingProgram } from '../../needs.js';
import { temporaryFolder } from './temporary.js';

async function folderWith(...names: string[]): Promise<string> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'old'));
  for (const name of names) await writeFile(join(folder, name), 'x\n');
  return folder;
}

const built = pathToFileURL(join(import.meta.dirname, '../../../dist/agents/load/load-paths.js')).href;

describe('the files to load', () => {
  test('are named, or matched by patterns, each once and with numbers in numeric order', async () => {
    const folder = await folderWith('a.log', 'a.log.10', 'a.log.2', 'b.log', 'old/c.log', '.hidden.log');
    const names = async (...patterns: string[]): Promise<string[]> =>
      (await expandFiles(patterns, folder)).map((path) => path.slice(folder.length + 1));
    expect(await names('a.log*')).toEqual(['a.log', 'a.log.2', 'a.log.10']);
    expect(await names('b.log', '{a,b}.log')).toEqual(['b.log', 'a.log']);
    expect(await names('**/*.log')).toEqual(['.hidden.log', 'a.log', 'b.log', 'old/c.log']);
    expect(await names(join(folder, 'a.log.*'))).toEqual(['a.log.2', 'a.log.10']);
    await symlink(join(folder, 'a.log'), join(folder, 'current'));
    expect(await names('a.log', 'current')).toEqual(['a.log']);
  });

  test('may have names that look like patterns', async () => {
    const folder = await folderWith('app[1].log', 'app1.log');
    expect(await expandFiles(['app[1].log'], folder)).toEqual([join(folder, 'app[1].log')]);
    expect(await expandFiles(['app[0-9].log'], folder)).toEqual([join(folder, 'app1.log')]);
  });

  test('are shown as they were named, or by absolute path if the pattern is absolute', async () => {
    const folder = await folderWith('a.log', 'b.log');
    const named = [join(folder, 'a.log'), join(folder, 'b.log')];
    expect(await expandFiles([join(folder, '*.log')])).toEqual(named);
    const beside = join(folder, 'beside');
    await mkdir(beside);
    expect(await expandFiles([join(folder, '[a-b].log')], beside)).toEqual(named);
    expect(await expandFiles([relative(process.cwd(), join(folder, '*.log'))])).toEqual(
      named.map((path) => relative(process.cwd(), path)),
    );
  });

  test('are all checked before loading begins', async () => {
    const folder = await folderWith('a.log');
    await expect(expandFiles(['a.log', 'none.log'], folder)).rejects.toMatchObject({
      code: 'not_found',
      message: 'none.log is not there',
    });
    await expect(expandFiles(['*.gz'], folder)).rejects.toThrow('*.gz matches no file');
    await expect(expandFiles(['old'], folder)).rejects.toThrow(/old is a folder; name its files: 'old\/\*'/);
    await expect(expandFiles([], folder)).rejects.toThrow(/no file/);
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await expect(expandFiles(['pipe'], folder)).rejects.toThrow(/pipe is not a regular file; pipe it in/);
  });

  test('that cannot be read are named, with the user', async () => {
    const folder = await folderWith('secret.log');
    await chmod(folder, 0o755);
    await chmod(join(folder, 'secret.log'), 0);
    // Root may read every file, so the test runs as another user in a process of its own. The process changes its user after it has loaded
    // the build, since the project may lie in a folder that only root may enter.
    const program = `
      import { expandFiles } from ${JSON.stringify(built)};
      if (process.getuid() === 0) {
        process.setgroups([]);
        process.setgid(65534);
        process.setuid(65534);
      }
      await expandFiles(['secret.log'], ${JSON.stringify(folder)}).catch((error) => console.log(error.message));`;
    const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: '/' });
    expect(said.toString()).toMatch(/secret\.log can't be read: user .+ has no permission/);
  });
});

describe('fields from the name of a file', () => {
  const captures = (namePattern: string, path: string) =>
    Object.fromEntries(new PathPattern({ namePattern }).nameCaptures(path));

  test('use the whole name without the suffixes of rotation and compression', () => {
    const pattern = 'access_(?P<host>[a-z]+)(?:-(?P<port>\\d+))?\\.log';
    for (const suffix of [
      '',
      '.1',
      '.gz',
      '.2.gz',
      '-20261120',
      '-20261120.zst',
      '.2026-11-20.gz',
      '.1.ZST',
    ]) {
      expect(captures(pattern, `/var/log/access_web.log${suffix}`)).toEqual({ host: 'web' });
    }
    expect(captures(pattern, 'access_web-80.log')).toEqual({ host: 'web', port: '80' });
    expect(captures(pattern, 'my_access_web.log')).toEqual({});
    expect(captures('(?<all>.*)', 'x.log.1')).toEqual({ all: 'x.log.1' });
    expect(captures('plain\\.log', 'plain.log')).toEqual({});
  });
});

describe('a line in a message', () => {
  test('is shortened and cannot control a terminal', () => {
    expect(shownLine(Buffer.from('a\tb\x1b[31mred\u202e'))).toBe('a\\x09b\\x1b[31mred\\u{202e}');
    expect(shownLine(Buffer.from('x'.repeat(500)))).toBe(`${'x'.repeat(200)}… (500 bytes)`);
    expect(shownLine(Buffer.from(`${'x'.repeat(199)}é`))).toBe(`${'x'.repeat(199)}… (201 bytes)`);
  });

  test('is quoted as one shell word', () => {
    const line = `it's "$HOME" \`date\` \\n`;
    const word = shellWord(Buffer.from(line))!;
    expect(execFileSync('sh', ['-c', `printf %s ${word}`]).toString()).toBe(line);
    expect(shellWord(Buffer.from('with\ta tab'))).toBeNull();
  });
});

describe('a path in a command', () => {
  const names = [
    '/var/log/a-1.log',
    "it's $HOME.log",
    'line\nend.log',
    'bell\u0007 \u001b[31m\u202e7\\8\'".log',
  ];

  test('is one word without control characters', () => {
    expect(names.map(shellPath)).toEqual([
      `'/var/log/a-1.log'`,
      `'it'\\''s $HOME.log'`,
      `$'line\\012end.log'`,
      `$'bell\\007 \\033[31m\\342\\200\\2567\\\\8\\'".log'`,
    ]);
  });

  itUnless(missingProgram('bash'), 'is what a shell reads from it', () => {
    for (const name of names)
      expect(execFileSync('bash', ['-c', `printf %s ${shellPath(name)}`]).toString()).toBe(name);
  });
});
