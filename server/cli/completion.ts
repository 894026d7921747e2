import { Argument, Option, type Command } from 'commander';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { groupNames, operatorsOf } from '../../agents/definition/filter-operators.js';
import { exitDone } from './failure.js';
import { readAgentsFolder, readSettings } from './options.js';
import { printable, printLines, writeOut } from './terminal.js';

/** A word that can complete the command line, and its description. A word that ends with `=`, `:`, `,` or `__` is to be continued. */
export interface Candidate {
  readonly word: string;
  readonly about: string;
}

/** The candidates for the next word: a list, or paths, which the shell completes itself. */
export type Candidates = readonly Candidate[] | 'files' | 'folders';

/** A field of an agent and its filter operators. */
export interface CompletedField {
  readonly name: string;
  readonly type: string;
  readonly operators: readonly string[];
}

/** Reads the agents' files where they are needed. */
export interface KnownAgents {
  /** The names of the agents, each with a description. */
  agents(): Promise<readonly Candidate[]>;
  /** The fields of an agent; undefined where it is unknown. */
  fields(agent: string): Promise<readonly CompletedField[] | undefined>;
}

/** Suggested steps for `--by`, which accepts others as well. */
const commonSteps = ['1m', '1h', '1d', '1w'];

/**
 * The candidates for the last of `words`.
 *
 * @param words the words after `logstrata`; the last one may be incomplete
 * @param known gets the values of the options that say where the agents are
 */
export async function candidatesFor(
  program: Command,
  words: readonly string[],
  known: (values: ReadonlyMap<string, string>) => KnownAgents,
): Promise<Candidates> {
  const typed = readTypedWords(program, words.slice(0, -1));
  const last = words.at(-1) ?? '';
  const agents = known(typed.values);
  if (typed.open !== undefined) return beginningWith(last, await valuesOf(typed.open, typed, agents, last));
  const [name, value] = splitOption(last);
  if (last.startsWith('-') && !typed.isPastOptions) {
    const options = optionsOf(typed.command);
    if (value === undefined) return beginningWith(last, optionWords(options));
    const option = options.find(({ long }) => long === name);
    if (option === undefined) return [];
    const values = beginningWith(value, await valuesOf(option, typed, agents, value));
    // Shells do not complete paths after "=".
    return typeof values === 'string'
      ? []
      : values.map(({ word, about }) => ({ word: `${name}=${word}`, about }));
  }
  return beginningWith(last, await operandWords(typed, agents, last));
}

function beginningWith(start: string, candidates: Candidates): Candidates {
  return typeof candidates === 'string'
    ? candidates
    : candidates.filter(({ word }) => word.startsWith(start));
}

function optionWords(options: readonly Option[]): Candidate[] {
  return options.map(({ long, description }) => ({ word: long!, about: description }));
}

function commandWords(command: Command): Candidate[] {
  const help = command.createHelp();
  return help
    .visibleCommands(command)
    .map((each) => ({ word: each.name(), about: help.subcommandDescription(each) }));
}

async function operandWords(typed: TypedWords, agents: KnownAgents, last: string): Promise<Candidates> {
  const { command, operands } = typed;
  if (command.commands.length > 0) return operands.length === 0 ? commandWords(command) : [];
  const argument = nextArgument(typed);
  return argument === undefined ? [] : valuesOf(argument, typed, agents, last);
}

/** The values of an argument or an option, by its choices or by the name that its help shows. */
async function valuesOf(
  what: Argument | Option,
  typed: TypedWords,
  agents: KnownAgents,
  last: string,
): Promise<Candidates> {
  if (what.argChoices !== undefined) return choices(what.argChoices);
  const shown = what instanceof Argument ? what.name() : /[<[]([a-z]+)/.exec(what.flags)?.[1];
  switch (what instanceof Option && what.long === '--agent' ? 'agent' : shown) {
    case 'agent':
      // The agent of "agent new" has a new name.
      return typed.command.name() === 'new' && what instanceof Argument ? [] : agents.agents();
    case 'filters':
      return filterWords(typed, agents, last);
    case 'command':
      return commandWords(typed.command.parent!);
    case 'files':
    case 'file':
      return 'files';
    case 'folder':
    case 'dir':
      return 'folders';
    case 'names':
      return listedFields(typed, agents, last);
    case 'what':
      return steppedFields(typed, agents);
    default:
      return [];
  }
}

function choices(words: readonly string[]): Candidate[] {
  return words.map((word) => ({ word, about: '' }));
}

async function fieldsOf({ operands }: TypedWords, agents: KnownAgents): Promise<readonly CompletedField[]> {
  const [agent] = operands;
  return (agent === undefined ? undefined : await agents.fields(agent)) ?? [];
}

/** Completes the field first and its operator next: together there would be too many candidates. */
async function filterWords(typed: TypedWords, agents: KnownAgents, last: string): Promise<Candidate[]> {
  const fields = await fieldsOf(typed, agents);
  const group = groupNames.map((name) => `${name}=`).find((start) => last.startsWith(start)) ?? '';
  const at = last.lastIndexOf('__');
  const field = fields.find(({ name }) => at > 0 && name === last.slice(group.length, at));
  if (field === undefined) {
    const names = fields.map(({ name, type }) => ({ word: `${group}${name}__`, about: type }));
    const groups = [{ word: 'any=', about: 'a filter, of several of which one must hold' }];
    return group === '' && names.length > 0 ? [...names, ...groups] : names;
  }
  const { name, operators } = field;
  return operators.map((operator) => ({ word: `${group}${name}__${operator}=`, about: '' }));
}

/** Completes a list such as `time,level,` by one more field. */
async function listedFields(typed: TypedWords, agents: KnownAgents, last: string): Promise<Candidate[]> {
  const listed = last.slice(0, last.lastIndexOf(',') + 1);
  const names = new Set(listed.split(','));
  const fields = await fieldsOf(typed, agents);
  return fields
    .filter(({ name }) => !names.has(name))
    .map(({ name, type }) => ({ word: `${listed}${name}`, about: type }));
}

async function steppedFields(typed: TypedWords, agents: KnownAgents): Promise<Candidate[]> {
  const fields = await fieldsOf(typed, agents);
  return fields.flatMap(({ name, type }) =>
    type === 'time'
      ? commonSteps.map((step) => ({ word: `${name}:${step}`, about: `every ${step}` }))
      : [{ word: name, about: `the most frequent values (${type})` }],
  );
}

/** The shells with a completion script. */
export const shells = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof shells)[number];

/**
 * The scripts that set up completion in a shell. Each runs `logstrata complete`, which prints one candidate per line, with a description
 * after a tab, or `:files` or `:folders` where the shell is to complete a path. So an upgrade of logstrata needs no new script.
 */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# bash completion of logstrata, for bash 4 and newer
_logstrata() {
  local line="\${COMP_LINE:0:COMP_POINT}" words last head word about
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  last="\${words[-1]}"
  # bash replaces only what stands behind the last of these.
  head=''
  [[ $last == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]] && head="\${last%"\${last##*[=:]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    case $word in
      :files) compopt -o default; return ;;
      :folders) compopt -o dirnames; return ;;
      *[=:,] | *__) compopt -o nospace ;;
    esac
    COMPREPLY+=("\${word#"$head"}")
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -F _logstrata logstrata
`,
  zsh: `#compdef logstrata
_logstrata() {
  local line word about
  local -a plain open
  while IFS=$'\\t' read -r word about; do
    case $word in
      :files) _files; return ;;
      :folders) _files -/; return ;;
      *[=:,]|*__) open+=("\${word//:/\\\\:}:$about") ;;
      *) plain+=("\${word//:/\\\\:}:$about") ;;
    esac
  done < <("\${(Q)words[1]}" complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2> /dev/null)
  (( $#open )) && _describe -t values logstrata open -S ''
  (( $#plain )) && _describe -t values logstrata plain
}
if [ "$funcstack[1]" = _logstrata ]; then _logstrata; else compdef _logstrata logstrata; fi
`,
  fish: `# fish completion of logstrata
function __logstrata_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..-1] "$last" 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path "$last"
        case :folders
            __fish_complete_directories "$last"
        case '*'
            printf '%s\\n' $lines
    end
end
complete -c logstrata -f -a '(__logstrata_complete)'
`,
};

const examples = `
Examples:
  $ source <(logstrata completion bash)                   in this shell; put it into ~/.bashrc for new shells
  $ logstrata completion bash > /etc/bash_completion.d/logstrata
  $ logstrata completion zsh > "\${fpath[1]}/_logstrata"
  $ logstrata completion fish > ~/.config/fish/completions/logstrata.fish`;

/** The agents of the folder that the typed options choose; none where it can't be read, as an error would disturb the user's typing. */
function agentsOf(values: ReadonlyMap<string, string>): KnownAgents {
  const [agents, data, config] = ['--agents', '--data', '--config'].map((name) => values.get(name));
  const reading = (): Promise<readonly AgentDefinition[]> =>
    readSettings({ agents, data, config })
      .then(readAgentsFolder)
      .then((found) => found.agents)
      .catch(() => []);
  return {
    agents: async () => (await reading()).map(({ name, path }) => ({ word: name, about: path })),
    fields: async (agent) => {
      const found = (await reading()).find(({ name }) => name === agent);
      return found?.schema.fields.map(({ name, type }) => ({ name, type, operators: operatorsOf(type) }));
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

/** The words before the one to complete, as the command parses them. */
interface TypedWords {
  /** The command that the words belong to: the program, or the innermost subcommand. */
  readonly command: Command;
  /** Values of the given options by long name. Of a repeated option the last value counts. */
  readonly values: ReadonlyMap<string, string>;
  /** Words that are arguments of the command. */
  readonly operands: readonly string[];
  /** The option whose value is still to be typed; undefined where there is none. */
  readonly open: Option | undefined;
  /** Whether `--` was typed, after which no word is an option. */
  readonly isPastOptions: boolean;
}

/** The options that a command accepts: its own and those of its parents. */
function optionsOf(command: Command): Option[] {
  const options: Option[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) {
    const help = each.createHelp();
    options.push(...help.visibleOptions(each));
  }
  return options;
}

/** The argument that the next word is for; undefined where the command takes no more. */
function nextArgument({ command, operands }: TypedWords): Argument | undefined {
  const taken = command.registeredArguments;
  const last = taken.at(-1);
  return taken[operands.length] ?? (last?.variadic === true ? last : undefined);
}

/** Parses words as Commander does, but ignores mistakes. */
function readTypedWords(program: Command, words: readonly string[]): TypedWords {
  const values = new Map<string, string>();
  const operands: string[] = [];
  let command = program;
  let open: Option | undefined;
  let isPastOptions = false;
  for (const word of words) {
    if (open !== undefined) {
      values.set(open.long!, word);
      open = undefined;
    } else if (!isPastOptions && word === '--') {
      isPastOptions = true;
    } else if (!isPastOptions && word.startsWith('-')) {
      const [name, value] = splitOption(word);
      const option = optionsOf(command).find(({ long, short }) => long === name || short === name);
      if (value !== undefined && option !== undefined) values.set(option.long!, value);
      else if (option?.required === true) open = option;
    } else {
      const below = operands.length === 0 ? command.commands.find((each) => each.name() === word) : undefined;
      if (below === undefined) operands.push(word);
      else command = below;
    }
  }
  return { command, values, operands, open, isPastOptions };
}

/** Splits `--name=value` into name and value; the value is undefined where there is no `=`. */
function splitOption(word: string): [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}
