import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../server/cli/program.js';
import { failureKinds, failureOf } from '../../server/viewer/state/failure.js';
import { root } from '../tidy/source-files.js';
import { documentation, fencesOf, proseOf } from './pages.js';

const program = buildProgram();

const everywhere = ['--agents', '--data', '--config', '--help', '--version'];

/** The words after `logstrata` in every command that the pages show. */
function shownCommands(): { where: string; words: string[] }[] {
  return documentation().flatMap((page) => {
    const quoted = [...proseOf(page).matchAll(/`([^`]*)`/g)].map((match) => match[1]!);
    const fenced = fencesOf(page)
      .filter(({ language }) => language === '')
      .flatMap(({ lines }) => lines);
    return [...quoted, ...fenced].flatMap((line) => {
      const match = /(?:^|[$|] )(?:npx )?logstrata ((?!version )(?:[a-z]|--[a-z]).*)$/.exec(line);
      return match === null
        ? []
        : [
            {
              where: `${page.path}: ${line.trim()}`,
              words: match[1]!.replace(/'[^']*'|"[^"]*"/g, 'QUOTED').split(/[\s[\]]+/),
            },
          ];
    });
  });
}

describe('commands in the documentation', () => {
  it('exist, with the options that are shown', () => {
    const shown = shownCommands();
    expect(shown.length).toBeGreaterThan(25);
    const problems = shown.flatMap(({ where, words }) => {
      const [name, ...rest] = words as [string, ...string[]];
      if (everywhere.includes(name)) return [];
      const command = program.commands.find((candidate) => candidate.name() === name);
      if (command === undefined) return [`${where}: there is no command ${name}`];
      const options = [command, ...command.commands].flatMap((each) => each.options);
      const known = [...options.map((option) => option.long), ...everywhere];
      return rest
        .filter((word) => word.startsWith('--') && !known.includes(word))
        .map((word) => `${where}: ${name} has no option ${word}`);
    });
    expect(problems).toEqual([]);
  });

  it('and settings that the viewer names exist too', () => {
    const named = failureKinds.flatMap((kind) =>
      [...failureOf(kind, '').advice.matchAll(/`([^`]*)`/g)].map((match) => match[1]!),
    );
    const settings = readFileSync(join(root, 'docs/configuration.md'), 'utf8');
    const pages = documentation().map(({ text }) => text);
    expect(named.length).toBeGreaterThan(5);
    for (const name of named)
      expect(
        name.startsWith('logstrata ')
          ? pages.some((text) => text.includes(name))
          : settings.includes(`\`${name}\``),
        name,
      ).toBe(true);
  });

  it('have each of their options in cli.md, under their heading', () => {
    const page = documentation().find(({ path }) => path === 'docs/cli.md')!;
    const sections = new Map(page.text.split(/^## /m).map((text) => [text.split('\n', 1)[0]!, text]));
    const missing = program.commands.flatMap((command) =>
      command.options
        .filter(({ long }) => !new RegExp(`${long}\\b`).test(sections.get(command.name()) ?? ''))
        .map(({ long }) => `${command.name()} ${long}`),
    );
    expect(missing).toEqual([]);
  });

  it('that npm runs are in package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = documentation().flatMap((page) =>
      [...page.text.matchAll(/npm run (?:--silent )?([a-z:]+)/g)].map((match) => match[1]!),
    );
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
