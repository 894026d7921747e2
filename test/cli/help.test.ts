import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { buildProgram, fitHelp, helpWidth } from '../../server/cli/program.js';
import { drawBar, formatTable, textWidth } from '../../server/cli/terminal.js';
import { run } from './here.js';
import { workFolder } from './process.js';

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (piece) => (text += piece) });
  command.outputHelp();
  return fitHelp(text);
}

const allOf = (command: Command): Command[] => [command, ...command.commands.flatMap(allOf)];

it('fits a terminal of 80 columns completely', async () => {
  const commands = allOf(buildProgram());
  expect(commands.length).toBeGreaterThan(18);
  const long = commands.flatMap((command) =>
    helpOf(command)
      .split('\n')
      .filter((line) => textWidth(line) > helpWidth)
      .map((line) => `${command.name()}: ${line}`),
  );
  expect(long).toEqual([]);
  // Also in the printed form.
  const shown = await run(workFolder(), ['query', '--help']);
  expect(Math.max(...shown.stdout.split('\n').map(textWidth))).toBeLessThanOrEqual(helpWidth);
  // An error is one line, however long.
  const wrong = await run(workFolder(), ['token', 'new', '--agent', 'a/b']);
  expect(wrong.stderr).toContain(
    "option '--agent <name...>' argument 'a/b' is invalid. It is not a valid agent name",
  );
});

it('has examples in one list, sentences in paragraphs, and names next to their descriptions', () => {
  const text = [
    'One sentence that is long. Another one.',
    '  name   what is said of it at some length',
    '  $ do this   because of that',
    '  $ do   so',
    '  $ something quite long',
  ].join('\n');
  expect(fitHelp(text, 100)).toBe(text);
  expect(fitHelp(text, 28).split('\n')).toEqual([
    'One sentence that is long.',
    'Another one.',
    '  name   what is said of it',
    '         at some length',
    '  $ do this',
    '      because of that',
    '  $ do',
    '      so',
    '  $ something quite long',
  ]);
});

it('shows the progress of long work under any name', () => {
  const path = `/var/log/${'very/'.repeat(20)}access.log`;
  const bar = drawBar(path, 0.5, '1,000,000 records', 80);
  expect(textWidth(bar)).toBe(80);
  expect(bar).toMatch(/^\/var\/[^…]*…[^…]*\.log █{12}░{12}  50 % 1,000,000 records$/);
  expect(drawBar('a.log', null, '5 records', 80)).toBe('a.log: 5 records');
});

it('continues below long cells of a table', () => {
  expect(
    formatTable(['part', 'text'], [['agent', 'Mozilla/5.0 (X11; Linux) Firefox/126.0']], [], 32),
  ).toEqual([
    'part   text',
    '-----  -------------------------',
    'agent  Mozilla/5.0 (X11; Linux)',
    '       Firefox/126.0',
  ]);
});

it('aligns the columns of a table by what the characters take', () => {
  const rows = [
    ['日本語', '7', '書籍'],
    ['🙂 ok', '12', 'e\u0301t'],
    ['plain', '3', 'books'],
  ];
  expect(formatTable(['name', 'n', 'value'], rows, [1])).toEqual([
    'name     n  value',
    '------  --  -----',
    '日本語   7  書籍',
    '🙂 ok   12  e\u0301t',
    'plain    3  books',
  ]);
});
