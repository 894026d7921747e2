import type { Command } from 'commander';
import { UsageError } from './failure.js';

/** What other programs call a command, and the command that is meant. It is followed by the words that were typed, and by an option. */
const commandsMeant: Readonly<Record<string, readonly [command: string, option?: string]>> = {
  tail: ['query', '--follow'],
  search: ['query'],
  find: ['query'],
  grep: ['query'],
  delete: ['remove'],
  rm: ['remove'],
  add: ['load'],
  list: ['agent list'],
  ls: ['agent list'],
  agents: ['agent list'],
  status: ['stats'],
  start: ['serve'],
  server: ['serve'],
};

/** What other programs call an option, and what to write. */
const optionsMeant: Readonly<Record<string, string>> = {
  '--last': '--since 1h',
  '--from': '--since',
  '--to': '--until',
  '--tail': '--limit 20, or --follow for new records',
  '--lines': '--limit',
  '--where': 'each filter as a word: status__gte=500',
  '--filter': 'each filter as a word: status__gte=500',
  '--query': 'a text or a filter as a word: timeout, status__gte=500',
  '--format': '--json, --csv or --jsonl',
  '--group-by': '--by',
};

/** Adds commands that the help does not show: each says what to type in its place. */
export function addOtherNames(program: Command): void {
  for (const [name, [command, option]] of Object.entries(commandsMeant))
    program
      .command(name, { hidden: true })
      .allowUnknownOption()
      .helpOption(false)
      .argument('[words...]')
      .action((words: readonly string[]) => {
        const typed = command === 'agent list' ? [] : words;
        // Options have other names there too, so that only words are repeated.
        const kept = typed.some((word) => word.startsWith('-')) ? ['…'] : typed.map(quoted);
        const meant = ['logstrata', command, ...kept, ...(option === undefined ? [] : [option])].join(' ');
        throw new UsageError(
          `unknown command '${name}': write ${meant}`,
          '("--help" shows what is possible)',
        );
      });
}

function quoted(word: string): string {
  return /^[\w.,:=@%+/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Adds what to write to Commander's message for an unknown option that other programs have, in place of an option with a similar name. */
export function withOptionMeant(message: string): string {
  const name = /unknown option '(--[a-z-]+)/.exec(message)?.[1] ?? '';
  return Object.hasOwn(optionsMeant, name)
    ? message.replace(/'(\n\(Did you mean .*)?$/m, `': write ${optionsMeant[name]}`)
    : message;
}
