import { Command } from 'commander';
import { requireSimd } from '../../engine/index.js';
import { didYouMean } from '../../agents/definition/suggestion.js';
import { addCommands } from './commands.js';
import { addCompletionCommand } from './completion.js';
import { exitDone, exitUsage, reportFailure, UsageError } from './failure.js';
import { addOtherNames, withOptionMeant } from './other-names.js';
import { packageVersion } from './options.js';
import { handleClosedOutput, printable, wrapToWidth } from './terminal.js';

const description = 'A columnar archive of log records with one HTTP query route.';

const examples = `
Examples:
  $ logstrata demo                                        load the samples and serve them
  $ logstrata agent new mysite --log access.log           describe a log to Logstrata
  $ logstrata load nginx /var/log/nginx/access.log*       store files, plain, .gz or .zst
  $ logstrata query nginx status__gte=500 --limit 20      the newest 20 server errors
  $ logstrata serve                                       answer on http://127.0.0.1:2111/api/query/nginx

"logstrata <command> --help" explains each. Exit codes: 0 done, 1 an error that you can fix, 2 wrong usage.`;

/** Builds the program with all commands, options and help texts. */
export function buildProgram(): Command {
  const program = new Command('logstrata');
  program
    .description(description)
    .version(packageVersion(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .option('--agents <dir>', 'folder of the agent files (default: agents beside the configuration file)')
    .option(
      '--data <dir>',
      'folder of the records (default: storage.path of the configuration, else data/store)',
    )
    .option(
      '--config <file>',
      'configuration (default: LOGSTRATA_CONFIG, config.yaml, /etc/logstrata/config.yaml)',
    )
    .addHelpText('after', examples)
    .showHelpAfterError('("--help" shows what is possible)')
    .configureHelp({ showGlobalOptions: true, helpWidth, subcommandTerm: (command) => command.name() })
    .configureOutput({
      writeOut: (text) => process.stdout.write(fitHelp(text)),
      writeErr: (text) => process.stderr.write(fitHelp(text)),
      // Error messages are not wrapped, so that other programs can search for them.
      outputError: (text) => void process.stderr.write(shownError(text)),
    })
    .exitOverride()
    .hook('preAction', requireSimd);
  addCommands(program);
  addCompletionCommand(program);
  addHelpCommand(program);
  addOtherNames(program);
  return program;
}

/** An error message of Commander. Its own line ends are the last one and the one before a suggestion; others are those of an argument. */
function shownError(text: string): string {
  return withOptionMeant(text)
    .replace(/^error: /, 'logstrata: ')
    .replaceAll(/[^\n]+|\n(?!\(Did you mean |$)/g, printable);
}

/** Replaces Commander's own `help`, which answers an unknown command with the general help instead of an error. */
function addHelpCommand(program: Command): void {
  program
    .command('help')
    .description('show help for a command')
    .argument('[command]', 'the command to explain (default: all)')
    .action((name?: string) => {
      if (name === undefined) program.help();
      const commands = program.createHelp().visibleCommands(program);
      const command = commands.find((known) => known.name() === name);
      if (command !== undefined) command.help();
      const near = didYouMean(
        name,
        commands.map((known) => known.name()),
      );
      throw new UsageError(`unknown command '${name}'${near}`, '("--help" shows what is possible)');
    });
}

/** Runs a command line (without `node` and the script) and returns the exit code. Errors have been printed on standard error by then. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  handleClosedOutput();
  try {
    const program = buildProgram();
    if (args.length === 0) {
      program.outputHelp({ error: true });
      return exitUsage;
    }
    // Left unset until a command sets it: Node then exits with a code of its own where the event loop ends while a promise is still
    // pending.
    await program.parseAsync(args as string[], { from: 'user' });
    return Number(process.exitCode ?? exitDone);
  } catch (error) {
    return reportFailure(error);
  }
}

/** Width of help texts in columns: that of the narrowest terminals in use. */
export const helpWidth = 80;

/** A line with an example of a command, and its explanation after two or more blanks. */
const example = /^( {2}\$ \S+(?: \S+)*)(?: {2,}(\S.*))?$/;

/** A line with a name, and its explanation after two or more blanks. */
const named = /^( +\S+(?: \S+)* {2,})(\S.*)$/;

/**
 * Fits a help text into `width` columns. Adjacent lines that are sentences form a paragraph and are wrapped together; adjacent examples
 * form a list.
 */
export function fitHelp(text: string, width: number = helpWidth): string {
  const fitted: string[] = [];
  let group: string[] = [];
  const end = (): void => {
    fitted.push(...fitGroup(group, width));
    group = [];
  };
  for (const line of text.split('\n')) {
    if (group.length > 0 && kindOf(line) !== kindOf(group[0]!)) end();
    group.push(line);
  }
  end();
  return fitted.join('\n');
}

function kindOf(line: string): 'example' | 'indented' | 'sentence' | 'blank' {
  if (line === '') return 'blank';
  if (line.startsWith('  $ ')) return 'example';
  return line.startsWith(' ') ? 'indented' : 'sentence';
}

function fitGroup(lines: readonly string[], width: number): readonly string[] {
  if (lines.every((line) => line.length <= width)) return lines;
  switch (kindOf(lines[0]!)) {
    case 'example':
      return fitExamples(lines, width);
    case 'indented':
      return lines.flatMap((line) => fitNamed(line, width));
    case 'sentence':
      return wrapToWidth(lines.join(' '), width);
    case 'blank':
      return lines;
  }
}

/** Puts the explanations of examples behind the commands where all of them fit, else below. */
function fitExamples(lines: readonly string[], width: number): string[] {
  const examples = lines.map((line) => {
    const [, command = line, comment = ''] = example.exec(line) ?? [];
    return { command, comment };
  });
  const widest = Math.max(...examples.map(({ command }) => command.length)) + 2;
  if (examples.every(({ comment }) => widest + comment.length <= width))
    return examples.map(({ command, comment }) => `${command.padEnd(widest)}${comment}`.trimEnd());
  return examples.flatMap(({ command, comment }) => {
    const below = comment === '' ? [] : wrapToWidth(comment, width - 6).map((line) => `      ${line}`);
    return [command, ...below];
  });
}

function fitNamed(line: string, width: number): string[] {
  const [, name, text] = named.exec(line) ?? [];
  if (name === undefined || text === undefined || line.length <= width) return [line];
  return wrapToWidth(text, width - name.length).map(
    (part, i) => `${i === 0 ? name : ' '.repeat(name.length)}${part}`,
  );
}
