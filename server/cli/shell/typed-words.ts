import type { Argument, Command, Option } from 'commander';

/** The words before the one to complete, as the command parses them. */
export interface TypedWords {
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
export function optionsOf(command: Command): Option[] {
  const options: Option[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) {
    const help = each.createHelp();
    options.push(...help.visibleOptions(each));
  }
  return options;
}

/** The argument that the next word is for; undefined where the command takes no more. */
export function nextArgument({ command, operands }: TypedWords): Argument | undefined {
  const taken = command.registeredArguments;
  const last = taken.at(-1);
  return taken[operands.length] ?? (last?.variadic === true ? last : undefined);
}

/** Parses words as Commander does, but ignores mistakes. */
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

/** Splits `--name=value` into name and value; the value is undefined where there is no `=`. */
export function splitOption(word: string): [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}
