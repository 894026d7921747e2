import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { commandPage, manPage } from '../../server/cli/build-manual.js';
import { buildProgram } from '../../server/cli/program.js';
import { itUnless, missingProgram } from '../needs.js';
import { root } from '../tidy/source-files.js';

const page = manPage(buildProgram(), '1.2.3', Date.UTC(2026, 10, 24));

/** The visible text of the page: all white space as single blanks, without macros. */
const shown = page
  .replace(/^\.(?:It |Ss |Sh |Nd )?/gm, '')
  .replace(/\\[&e-]/g, (escape) => ({ '\\&': '', '\\e': '\\', '\\-': '-' })[escape]!)
  .replaceAll('""', '"')
  .replace(/\s+/g, ' ')
  .toLowerCase();

const isShown = (text: string): boolean => shown.includes(text.replace(/\s+/g, ' ').trim().toLowerCase());

function commandsBelow(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .flatMap((each) => [each, ...commandsBelow(each)]);
}

function textBelow(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (piece) => (text += piece) });
  command.outputHelp();
  return text.slice(command.helpInformation().length);
}

it('the manual page has the help text of every command', () => {
  const program = buildProgram();
  const missing: string[] = [];
  const want = (where: string, text: string): void => {
    if (!isShown(text)) missing.push(`${where}: ${text}`);
  };
  const all = [program, ...commandsBelow(program)].filter((command) => command.name() !== 'help');
  expect(all.length).toBeGreaterThan(20);
  for (const command of all) {
    const help = command.createHelp();
    const name = command.name();
    // A command that only groups others does nothing itself.
    if (command.commands.length === 0) want(name, command.description());
    for (const option of help.visibleOptions(command)) {
      if (option.long === '--help') continue;
      want(name, option.long!);
      want(name, help.optionDescription(option));
    }
    for (const argument of help.visibleArguments(command)) want(name, help.argumentDescription(argument));
    for (const line of textBelow(command).split('\n'))
      for (const part of line.split(/ {2,}/)) want(name, part);
  }
  expect(missing).toEqual([]);
});

it('docs/cli.md is what "npm run build:manual" writes', () => {
  expect(readFileSync(join(root, 'docs/cli.md'), 'utf8')).toBe(commandPage(buildProgram()));
});

itUnless(missingProgram('mandoc'), 'mandoc accepts the page', () => {
  const lint = spawnSync('mandoc', ['-T', 'lint'], { input: page, encoding: 'utf8' });
  expect(lint.stdout + lint.stderr).toBe('');
});

itUnless(missingProgram('man'), 'man shows the page at 80 columns', (context) => {
  const env = { ...process.env, MANWIDTH: '80', LC_ALL: 'C.UTF-8' };
  const man = spawnSync('man', ['-P', 'cat', '-l', '-'], { input: page, encoding: 'utf8', env });
  if (man.stdout.includes('This system has been minimized'))
    context.skip('not tried: "man" only reports that pages were left out');
  expect(man.stderr).toBe('');
  const lines = man.stdout.split('\n');
  expect(lines.length).toBeGreaterThan(300);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});
