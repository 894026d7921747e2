import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Help, type Command } from 'commander';
import { defaultConfig } from '../../agents/definition/config.js';
import { assert } from '../../engine/index.js';
import { openApi } from '../console/openapi.js';
import { formatUrl } from '../http/listen.js';
import { filterHelp } from './commands.js';
import { packageRoot, packageVersion } from './options.js';
import { buildProgram, fitHelp } from './program.js';

/** Columns of help texts in the manual page, which `man` indents by five. */
const manualWidth = 74;
const pageWidth = 80;

/** What the help of the commands does not say. */
const environment = [
  ['LOGSTRATA_CONFIG', 'the configuration file, if `--config` is not given'],
  ['LOGSTRATA_DEBUG', 'if 1, error messages show where in the code the error arose, for bug reports'],
] as const;

const files = [
  ['config.yaml', 'the configuration file, in the working folder'],
  [
    '/etc/logstrata/config.yaml',
    'the configuration file of the machine, used if the working folder has neither a configuration file nor an agents folder',
  ],
  ['agents/<name>.yaml', 'agent files, in a folder beside the configuration file'],
  ['data/store', 'the data folder'],
] as const;

const exitCodes = [
  ['0', 'done; also if the reader of a pipe or the terminal was closed'],
  ['1', 'an error that you can fix: a missing file, an invalid agent file, damage, a busy port'],
  ['2', 'wrong usage: the command, an option or an argument is not valid'],
  ['129, 130, 143', 'stopped by SIGHUP, SIGINT or SIGTERM; a second signal ends the process at once'],
] as const;

/** Where the documentation says more about a command. */
const furtherReading: Readonly<Record<string, string>> = {
  serve:
    '[HTTP](http.md), [collecting logs](collecting.md), [operating](operating.md#a-running-server), [access](access.md)',
  load: '[loading files](loading.md)',
  query: '[queries over HTTP](http.md), [records in a terminal](viewer.md#in-a-terminal)',
  count: '[counts](counts.md); filters as for [query](#query)',
  export: 'filters as for [query](#query)',
  mcp: '[for language models](mcp.md)',
  agent: '[agents from logs](loading.md#agents-from-logs), [agent files](agent-file.md)',
  check: '[lines and files on trial](loading.md#lines-and-files-on-trial)',
  verify: '[damage and repair](maintenance.md#damage-and-repair)',
  compact: '[compaction](maintenance.md#compaction)',
  backup: '[copies](maintenance.md#copies), [restoring](deploy.md#backup-and-restore)',
  remove: '[removing records](maintenance.md#removing-records)',
  retention: '[retention](agent-file.md#retention-and-rotate)',
  index: '[archives](archives.md)',
  far: '[the far tier](far.md)',
  import: '[moving from Fugo](fugo.md)',
  token: '[access](access.md)',
};

/** The help of a command in lines of at most `width` columns, without the options that all commands have. `listed`: with its subcommands. */
function helpOf(command: Command, width: number, listed = true): string {
  let text = '';
  command
    .configureHelp({
      ...command.configureHelp(),
      helpWidth: width,
      showGlobalOptions: command.parent === null,
      visibleOptions: (each) => new Help().visibleOptions(each).filter(({ long }) => long !== '--help'),
      ...(listed ? {} : { visibleCommands: () => [] }),
    })
    .configureOutput({ writeOut: (piece) => (text += piece) })
    .outputHelp();
  return fitHelp(text, width).trim();
}

/** The commands that a page describes: all but `help`, each group before its subcommands. */
function commandsBelow(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((each) => each.name() !== 'help').flatMap((each) => [each, ...commandsBelow(each)]);
}

/** The name of a command after `logstrata`, such as `token new`. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${nameOf(parent)} ${command.name()}`;
}

/** Escapes a text for mdoc(7). Hyphens are escaped so that they can be copied as ASCII hyphens. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}

/** The manual page in mdoc(7): the help of each command as it is. `dateMs` is the date that the page shows, in milliseconds since the epoch. */
export function manPage(program: Command, version: string, dateMs: number): string {
  const date = new Date(dateMs).toLocaleDateString('en-US', { dateStyle: 'long', timeZone: 'UTC' });
  const literal = (text: string): string => `.Bd -literal\n${escaped(text)}\n.Ed`;
  const list = (items: readonly (readonly [string, string])[]): string =>
    literal(
      items
        .map(([name, about]) => fitHelp(`  ${name.padEnd(28)}${about.replaceAll('`', '')}`, manualWidth))
        .join('\n'),
    );
  const sections = commandsBelow(program).map(
    (command) => `.Ss ${nameOf(command)}\n${literal(helpOf(command, manualWidth))}`,
  );
  return `${[
    `.Dd ${date}\n.Dt LOGSTRATA 1\n.Os\n.Sh NAME\n.Nm logstrata`,
    `.Nd ${escaped(program.description().replace(/\.$/, ''))}`,
    `.Sh SYNOPSIS\n.Nm\n.Op Ar options\n.Ar command\n.Op Ar arguments`,
    `.Sh DESCRIPTION\nThis page is of version ${version}.\n${literal(helpOf(program, manualWidth))}`,
    ...['.Sh COMMANDS', ...sections],
    ...['.Sh ENVIRONMENT', list(environment), '.Sh FILES', list(files), '.Sh EXIT STATUS', list(exitCodes)],
  ].join('\n')}\n`;
}

/** The page `docs/cli.md`, made of the same texts. */
export function commandPage(program: Command): string {
  const table = (head: string, rows: readonly (readonly [string, string])[]): string =>
    `| ${head} | |\n|---|---|\n${rows.map(([name, about]) => `| \`${name}\` | ${about} |`).join('\n')}`;
  // The filters are described once.
  const fence = (command: Command): string => {
    const help = helpOf(command, pageWidth, false);
    return `\`\`\`\n${command.name() === 'query' ? help : help.replace(`${fitHelp(filterHelp, pageWidth)}\n`, '')}\n\`\`\``;
  };
  const sections = commandsBelow(program).flatMap((command) => {
    const name = nameOf(command);
    const more = furtherReading[name];
    const title = `${name.includes(' ') ? '###' : '##'} ${name}`;
    return [title, fence(command), ...(more === undefined ? [] : [`More: ${more}.`])];
  });
  return `${[
    '# The command line',
    'Run the commands as `npx logstrata <command>` in a project that has Logstrata installed, or in a clone after `npm run build`. This page is ' +
      'what `--help` says, and so is the manual page: `man logstrata` if npm installed Logstrata globally, else ' +
      '`man -l node_modules/logstrata/man/logstrata.1`. `npm run build:manual` writes both.',
    'Answers go to standard output; progress, notes and errors to standard error, so that a pipe carries only the answer. A long command draws a ' +
      'progress bar in a terminal; elsewhere it writes a line every five seconds. With `--json` the answer is one line of JSON. An error is one ' +
      'sentence that begins with `logstrata:`. Several processes can use one data folder: one of them writes, other writing processes commit ' +
      'through it, and any number reads. Two servers cannot share a data folder.',
    fence(program),
    table('exit code', exitCodes),
    table('environment', environment),
    table('file', files),
    ...sections,
  ].join('\n\n')}\n`;
}

/** The OpenAPI document, with the addresses of listeners that nobody has configured. */
export function openApiPage(): string {
  const { listen, console } = defaultConfig.server;
  assert(console !== 'off', 'the console is on by default');
  const [query, ofConsole] = [listen, console].map(({ host, port }) => formatUrl(host, port, false));
  const document = openApi(packageVersion(), ofConsole!, query);
  return `${JSON.stringify(document, null, 2)}\n`;
}

// A step of the build: writes the manual page to where package.json names it, docs/cli.md and docs/openapi.json. SOURCE_DATE_EPOCH (seconds) sets the date in
// the manual page, for reproducible builds.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const epoch = process.env['SOURCE_DATE_EPOCH'];
  const dateMs = epoch === undefined ? Date.now() : Number(epoch) * 1000;
  const root = packageRoot();
  mkdirSync(join(root, 'man'), { recursive: true });
  writeFileSync(join(root, 'man', 'logstrata.1'), manPage(buildProgram(), packageVersion(), dateMs));
  writeFileSync(join(root, 'docs', 'cli.md'), commandPage(buildProgram()));
  writeFileSync(join(root, 'docs', 'openapi.json'), openApiPage());
}
