import type { Command, Option } from 'commander';

/** A part of the text that follows the options in the help of a command. */
type HelpPiece =
  | { readonly kind: 'title'; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  | { readonly kind: 'examples'; readonly examples: readonly Example[] };

/** A command line, and an explanation, which may be empty. */
export interface Example {
  readonly command: string;
  readonly about: string;
}

/**
 * Splits the text after the options into its parts: titles (`Title:` alone on a line), examples (`  $ command   explanation`), other
 * indented lines, and paragraphs.
 */
export function helpPieces(text: string): HelpPiece[] {
  const pieces: HelpPiece[] = [];
  let paragraph: string[] = [];
  let indented: string[] = [];
  let examples: Example[] = [];
  const end = (): void => {
    if (paragraph.length > 0) pieces.push({ kind: 'paragraph', text: paragraph.join(' ') });
    if (indented.length > 0) pieces.push({ kind: 'lines', lines: indented });
    if (examples.length > 0) pieces.push({ kind: 'examples', examples });
    paragraph = [];
    indented = [];
    examples = [];
  };
  for (const line of text.split('\n')) {
    const [, command, about = ''] = /^ {2}\$ (\S(?:.*?\S)?)(?: {2,}(\S.*))?$/.exec(line) ?? [];
    if (command !== undefined) {
      if (paragraph.length + indented.length > 0) end();
      examples.push({ command, about });
    } else if (line.startsWith('  ')) {
      if (paragraph.length + examples.length > 0) end();
      indented.push(line.slice(2));
    } else if (line === '' || /^[A-Z]\w+:$/.test(line)) {
      end();
      if (line !== '') pieces.push({ kind: 'title', text: line.slice(0, -1) });
    } else {
      if (indented.length + examples.length > 0) end();
      paragraph.push(line);
    }
  }
  end();
  return pieces;
}

/** Escapes a text for mdoc(7). Hyphens are escaped so that they can be copied as ASCII hyphens. */
function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}

/** Quotes an argument of a macro, so that no word of it is taken for a macro. */
function quoted(text: string): string {
  return `"${plain(text).replaceAll('"', '""')}"`;
}

/** Maximum length of a line of the source in bytes, which linters of mdoc check. */
const lineBytesMax = 78;

/** Filled text. As mdoc prefers, each sentence begins a new line; long ones are wrapped. */
function filled(text: string): string {
  const sentences = text
    .trim()
    .replace(/\s+/g, ' ')
    .split(/(?<=[a-z)"][.:]) (?=["A-Z])/);
  return sentences.flatMap(wrapped).map(plain).join('\n');
}

function wrapped(sentence: string): string[] {
  const lines: string[] = [];
  for (const word of sentence.split(' ')) {
    const last = lines.at(-1);
    // Compared in its escaped form, which is longer.
    const isFull = last === undefined || plain(`${last} ${word}`).length > lineBytesMax;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Filled text after a blank line. */
function paragraph(text: string): string {
  return `.Pp\n${filled(text)}`;
}

/** Lines that are shown unchanged. */
function literal(lines: readonly string[]): string {
  return ['.Bd -literal', ...lines.map(plain), '.Ed'].join('\n');
}

/** A list of tagged items. A tag is the text after `.It`. */
function tagged(items: readonly (readonly [tag: string, text: string])[]): string {
  const shown = items.map(([tag, text]) => (text === '' ? `.It ${tag}` : `.It ${tag}\n${filled(text)}`));
  return ['.Bl -tag -width Ds', ...shown, '.El'].join('\n');
}

/** Content of the page that is not in the help of the commands. */
const environment = [
  ['Ev LOGSTRATA_CONFIG', 'The configuration file, if --config is not given.'],
  ['Ev LOGSTRATA_DEBUG', 'If 1, error messages show where in the code the error arose, for bug reports.'],
] as const;

const files = [
  ['Pa config.yaml', 'The configuration file, in the working folder.'],
  [
    'Pa /etc/logstrata/config.yaml',
    'The configuration file of the machine, used if the working folder has neither a configuration file nor an agents folder.',
  ],
  ['Pa agents/<name>.yaml', 'Agent files, in a folder beside the configuration file.'],
  ['Pa data/store', 'The data folder.'],
] as const;

const exitCodes = [
  ['0', 'Done; also if the reader of a pipe or the terminal was closed.'],
  ['1', 'An error that you can fix: a missing file, an invalid agent file, damage, a busy port.'],
  ['2', 'Wrong usage: the command, an option or an argument is not valid.'],
  ['129, 130, 143', 'Stopped by SIGHUP, SIGINT or SIGTERM.'],
] as const;

/** A command with its full name, such as `token new`. */
interface NamedCommand {
  readonly name: string;
  readonly command: Command;
}

/**
 * The manual page of the program in mdoc(7), made from the help texts of the commands.
 *
 * @param dateMs the date shown in the page, in milliseconds since the epoch
 */
export function manPage(program: Command, version: string, dateMs: number): string {
  const date = new Date(dateMs).toLocaleDateString('en-US', {
    month: 'long',
    day: 'numeric',
    year: 'numeric',
    timeZone: 'UTC',
  });
  const commands = namedCommands(program, '');
  return [
    `.Dd ${date}`,
    '.Dt LOGSTRATA 1',
    '.Os',
    '.Sh NAME',
    '.Nm logstrata',
    `.Nd ${plain(withoutStop(program.description()))}`,
    '.Sh SYNOPSIS',
    ...commands.flatMap(({ name, command }) => ['.Nm', ...synopsisOf(name, command)]),
    '.Sh DESCRIPTION',
    filled(`${program.description()} This page is of version ${version}.`),
    paragraph(
      'The commands are described below, and by "logstrata <command> --help". All of them take these options:',
    ),
    optionsOf(program),
    '.Sh COMMANDS',
    ...commands.flatMap(({ name, command }) => describeCommand(name, command)),
    '.Sh ENVIRONMENT',
    tagged(environment),
    '.Sh FILES',
    tagged(files),
    '.Sh EXIT STATUS',
    tagged(exitCodes),
    '.Sh EXAMPLES',
    ...piecesBelow(program, 'Examples'),
    '',
  ].join('\n');
}

/** The commands that can be run. Of a command with subcommands, these are the subcommands. */
function namedCommands(parent: Command, above: string): NamedCommand[] {
  const help = parent.createHelp();
  return help.visibleCommands(parent).flatMap((command) => {
    const name = `${above}${command.name()}`;
    if (above !== '' && command.name() === 'help') return [];
    const below = command.commands.length === 0 ? [] : namedCommands(command, `${name} `);
    return below.length === 0 ? [{ name, command }] : below;
  });
}

function synopsisOf(name: string, command: Command): string[] {
  const options = command.createHelp().visibleOptions(command).length > 1 ? ['.Op Ar options'] : [];
  const taken = command.registeredArguments.map((argument) => {
    const shown = `Ar ${argument.name()}${argument.variadic ? ' ...' : ''}`;
    return argument.required ? `.${shown}` : `.Op ${shown}`;
  });
  return [`.Cm ${name}`, ...options, ...taken];
}

function describeCommand(name: string, command: Command): string[] {
  const { parent } = command;
  const help = command.createHelp();
  const taken = help
    .visibleArguments(command)
    .map((argument) => [`Ar ${argument.name()}`, sentence(help.argumentDescription(argument))] as const);
  // The text of a command with subcommands is shown with the first of them.
  const isFirst = parent !== null && parent.parent !== null && parent.commands[0] === command;
  return [
    `.Ss ${name}`,
    filled(sentence(command.description())),
    ...(taken.length === 0 ? [] : [tagged(taken)]),
    optionsOf(command),
    ...piecesBelow(command),
    ...(isFirst ? piecesBelow(parent) : []),
  ].filter((text) => text !== '');
}

function optionsOf(command: Command): string {
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  if (options.length === 0) return '';
  return tagged(options.map((option) => [tagOf(option), sentence(help.optionDescription(option))]));
}

/** An option as an mdoc tag: its flags, and the name of its value. */
function tagOf({ short, long, flags }: Option): string {
  const [, value] = / [<[](.+)[>\]]$/.exec(flags) ?? [];
  const names = [short, long].filter((name) => name !== undefined && name !== null);
  const shown = names.map((name) => `Fl ${plain(name.slice(1))}`).join(' , ');
  return value === undefined ? shown : `${shown} Ar ${quoted(value)}`;
}

/** The text that follows the options, as mdoc; with `title`, only the part after that title. */
function piecesBelow(command: Command, title?: string): string[] {
  let text = '';
  // Commander does not expose these texts. It prints them after the help, so the output is captured.
  command.configureOutput({ writeOut: (piece) => (text += piece) });
  command.outputHelp();
  text = text.slice(command.helpInformation().length);
  const pieces = helpPieces(text);
  const from =
    title === undefined ? 0 : pieces.findIndex((piece) => piece.kind === 'title' && piece.text === title) + 1;
  return pieces.slice(from).map(writePiece);
}

function writePiece(piece: HelpPiece): string {
  switch (piece.kind) {
    case 'title':
      return `.Pp\n${plain(piece.text)}:`;
    case 'paragraph':
      return paragraph(piece.text);
    case 'lines':
      return literal(piece.lines);
    case 'examples':
      return tagged(
        piece.examples.map(({ command, about }) => [
          `Li ${quoted(`$ ${command}`)}`,
          about === '' ? '' : sentence(about),
        ]),
      );
  }
}

/** Begins a text with a capital letter, where it begins with a plain word. */
const capital = (text: string): string =>
  /^[a-z]+(?: |$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;

const sentence = (text: string): string => `${capital(withoutStop(text))}.`;

const withoutStop = (text: string): string => text.replace(/\.$/, '');
