import type { Argument, Command, Option } from 'commander';
import { nextArgument, optionsOf, readTypedWords, splitOption, type TypedWords } from './typed-words.js';

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
  return argument === undefined ? [] : wordsOf(argument, typed, agents, last);
}

async function wordsOf(
  argument: Argument,
  typed: TypedWords,
  agents: KnownAgents,
  last: string,
): Promise<Candidates> {
  if (argument.argChoices !== undefined) return choices(argument.argChoices);
  switch (argument.name()) {
    case 'agent':
      return isNewAgent(typed.command) ? [] : agents.agents();
    case 'filters':
      return filterWords(typed, agents, last);
    case 'command':
      return commandWords(typed.command.parent!);
    case 'files':
    case 'file':
      return 'files';
    case 'folder':
      return 'folders';
    default:
      return [];
  }
}

/** Whether the agent argument is a new name, as for `agent new`. */
function isNewAgent(command: Command): boolean {
  return command.name() === 'new';
}

async function valuesOf(
  option: Option,
  typed: TypedWords,
  agents: KnownAgents,
  last: string,
): Promise<Candidates> {
  if (option.argChoices !== undefined) return choices(option.argChoices);
  const [, what] = /[<[]([a-z]+)/.exec(option.flags) ?? [];
  switch (what) {
    case 'dir':
      return 'folders';
    case 'file':
      return 'files';
    case 'names':
      return listedFields(typed, agents, last);
    case 'what':
      return steppedFields(typed, agents);
    default:
      return option.long === '--agent' ? agents.agents() : [];
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
  const at = last.lastIndexOf('__');
  const field = fields.find(({ name }) => at > 0 && name === last.slice(0, at));
  if (field === undefined) return fields.map(({ name, type }) => ({ word: `${name}__`, about: type }));
  const { name, operators } = field;
  return operators.map((operator) => ({ word: `${name}__${operator}=`, about: '' }));
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
