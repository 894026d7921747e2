import { Argument, type Command } from 'commander';
import { operatorsOf } from '../../request/operators.js';
import { readAgentsFolder } from '../options/agent-choice.js';
import { readSettings } from '../options/settings.js';
import { exitDone } from '../output/failure.js';
import { printLines, writeOut } from '../output/terminal.js';
import { printable } from '../output/text-width.js';
import { candidatesFor, type KnownAgents } from './candidates.js';
import { completionScripts, shells, type Shell } from './completion-scripts.js';

const examples = `
Examples:
  $ source <(logstrata completion bash)                   in this shell; put it into ~/.bashrc for new shells
  $ logstrata completion bash > /etc/bash_completion.d/logstrata
  $ logstrata completion zsh > "\${fpath[1]}/_logstrata"
  $ logstrata completion fish > ~/.config/fish/completions/logstrata.fish`;

/** The agents of the folder that the typed options choose; none where it can't be read. */
function agentsOf(values: ReadonlyMap<string, string>): KnownAgents {
  const read = async (): Promise<Awaited<ReturnType<typeof readAgentsFolder>>['agents']> => {
    const [agents, data, config] = ['--agents', '--data', '--config'].map((name) => values.get(name));
    try {
      return (await readAgentsFolder(await readSettings({ agents, data, config }))).agents;
    } catch {
      // An error message would disturb the user's typing.
      return [];
    }
  };
  return {
    agents: async () => (await read()).map(({ name, path }) => ({ word: name, about: path })),
    fields: async (name) => {
      const agent = (await read()).find((each) => each.name === name);
      return agent?.schema.fields.map(({ name, type }) => ({ name, type, operators: operatorsOf(type) }));
    },
  };
}

/** Prints the candidates for the last word, in the format that the scripts read. */
async function complete(program: Command, words: readonly string[]): Promise<void> {
  const found = await candidatesFor(program, words, agentsOf);
  if (typeof found === 'string') return printLines([`:${found}`]);
  const lines = found.map(({ word, about }) =>
    about === '' ? printable(word) : `${printable(word)}\t${printable(about)}`,
  );
  await writeOut(lines.map((line) => `${line}\n`).join(''));
}

/** Adds `logstrata completion`, which prints the scripts, and the hidden command `complete`, which they run. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .summary('print a completion script for a shell')
    .description(
      'Prints a script that lets a shell complete commands, options and their values, agents, and the fields of filters.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText('after', examples)
    .action(async (shell: Shell) => {
      await writeOut(completionScripts[shell]);
      process.exitCode = exitDone;
    });
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      await complete(program, words);
      process.exitCode = exitDone;
    });
}
