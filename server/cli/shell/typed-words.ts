import type { Argument, Command, Option } from 'commander';

/** What a person has typed before the word that is to be completed, as the commands understand it. */
export interface TypedWords {
  /** The command that the words are for: the program itself, or one below it. */
  readonly command: Command;
  /** Values of options that were given, by their long names; the last one counts. */
  readonly values: ReadonlyMap<string, string>;
  /** Words that are arguments of the command. */
  readonly operands: readonly string[];
  /** The option whose value the next word is. */
  readonly open: Option | undefined;
  /** Whether `--` was typed: what follows is no option. */
  readonly isPastOptions: boolean;
}

/** Options that a command takes, its own and those of the program. */
export function optionsOf(command: Command): Option[] {
  const options: Option[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) {
    const help = each.createHelp();
    options.push(...help.visibleOptions(each));
  }
  return options;
}

/** The argument that the next operand is; undefined where the command takes no more. */
export function nextArgument({ command, operands }: TypedWords): Argument | undefined {
  const taken = command.registeredArguments;
  const last = taken.at(-1);
  return taken[operands.length] ?? (last?.variadic === true ? last : undefined);
}

/** Reads words as Commander would, but for mistakes: those are not told, and nothing is made of them. */
export function readTypedWords(program: Command, words: readonly string[]): TypedWords {
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

/** `--name=value` as name and value; the value is undefined where there is none. */
export function splitOption(word: string): [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}
