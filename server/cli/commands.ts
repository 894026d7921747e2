import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseConsole, parseListen } from '../../agents/definition/config.js';
import {
  byteSizeShape,
  durationShape,
  parseByteSize,
  parseDuration,
} from '../../agents/definition/quantities.js';
import { isAgentName, lineFormats, numberFunctions, workersMax } from '../../engine/index.js';
import { agentsOfTokenMax, tokenNameCharactersMax, topDefault } from '../http/http-limits.js';
import { isTokenId, listenerNames } from '../http/token-folder.js';
import { logLevels } from './failure.js';
import { limitDefault } from './options.js';
import { runs, stoppable } from './stoppable.js';
import { colourChoices } from './terminal.js';

// The commands are defined here; the code of a command is loaded when it is run.

/** Makes a parser of an option's value, which says what is expected where the value is not valid. */
function valueOf<T>(parse: (text: string) => T | undefined, expected: string): (text: string) => T {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(expected);
    return value;
  };
}

/**
 * Collects the values of a repeated option. Commander would keep only the last one; the route refuses repeated parameters, and so shall the
 * command.
 */
function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function cacheOption(): Option {
  const what =
    'memory for decoded columns, such as 512mb or 2gb (default: a quarter of all memory, at most 3.5gb)';
  return new Option('--cache <size>', what).argParser(valueOf(parseByteSize, `Expected ${byteSizeShape}.`));
}

function codecOption(byDefault: string): Option {
  const what = `lz4 (fast to read) or zstd (small) (default: ${byDefault})`;
  return new Option('--codec <name>', what).choices(['lz4', 'zstd']);
}

function workersOption(work: string): Option {
  const what = `threads that ${work}, 0 to ${workersMax}; 0 for none (default: one per core, at most 8)`;
  const count = (text: string): number | undefined =>
    /^\d{1,3}$/.test(text) && Number(text) <= workersMax ? Number(text) : undefined;
  return new Option('--workers <n>', what).argParser(
    valueOf(count, `Expected a whole number from 0 to ${workersMax}.`),
  );
}

/** Adds the arguments and options of the commands that take a query. */
function addScan(command: Command, work: string): Command {
  return command
    .argument('<agent>', 'name of the agent')
    .argument('[filters...]', 'field__operator=value, or a text that any field contains')
    .option('--since <time>', "only records from this time on (the agent's first time field)", collect)
    .option('--until <time>', 'only records before this time', collect)
    .option('--after <cursor>', 'only records after this _cursor', collect)
    .option('--before <cursor>', 'only records before this _cursor', collect)
    .addOption(workersOption(work))
    .addOption(cacheOption());
}

const fieldsText = 'only these fields, in this order: time,level,message';

/** Adds the options of all commands that start a server. */
function addServerOptions(command: Command): Command {
  return command
    .option(
      '--listen <address>',
      'host:port (default: server.listen of the configuration, else 127.0.0.1:2111)',
      valueOf(
        parseListen,
        'Expected an address and a port: 127.0.0.1:2111, [::1]:2111, or :2111 for every address of this machine.',
      ),
    )
    .option(
      '--console <address>',
      'host:port of the listener for operators, or "off" (default: server.console of the configuration, else 127.0.0.1:2112)',
      valueOf(parseConsole, 'Expected "off", or an address and a port: 127.0.0.1:2112.'),
    )
    .addOption(
      new Option('--transport <name>', 'HTTP implementation (default: auto)').choices([
        'auto',
        'uws',
        'node',
      ]),
    )
    .option('--no-follow', "don't collect the agents' logs")
    .addOption(
      new Option('--log-level <level>', 'least important event to log')
        .choices(logLevels)
        .default('info')
        .argParser(
          valueOf(
            (text) => logLevels.find((each) => each === text.toLowerCase()),
            `It is one of ${logLevels.join(', ')}.`,
          ),
        ),
    );
}

/** The part of `--help` about filters, for all commands that take them. */
export const filterHelp = `
Filters are words field__operator=value; all of them must hold. Quote what the shell would change.
A word without an operator is a text that any string field contains: timeout is '*__like=timeout'.
  int, float, time   eq ne gt gte lt lte in
  string             exact like prefix suffix (the last three ignore case),
                     ne not_like not_prefix not_suffix, in,
                     regex not_regex: 'message__regex=took [0-9]{4,} ?ms'
  *                  like not_like regex not_regex: any string field:
                     '*__like=timeout'
  bool               eq ne in, with true or false
  time               since until: "2026-11-18 10:00:00", 2026-11-18,
                     or a span back from now: 15m, 2h, 7d
  every field        exists, with true or false
Repeat in to allow several values: level__in=error level__in=warn
Of all words any=<filter> one must hold: any=status__gte=500 any=level__exact=error
any2 to any9 are further such groups.`;

const serveText = `
Examples:
  $ logstrata serve                            answer on 127.0.0.1:2111, only this machine
  $ logstrata serve --listen :2111             answer everybody who reaches this machine
  $ logstrata serve --console off              without the listener for operators on 127.0.0.1:2112
  $ logstrata serve --no-follow                answer queries, but collect no logs
  $ logstrata serve --config reader.yaml       as a reader of a server on another machine (server.reader)
  $ logstrata serve --data /var/lib/logs --agents /etc/logs/agents
  $ curl 'http://127.0.0.1:2111/api/query/nginx?limit=5'`;

const loadText = `
Examples:
  $ logstrata load nginx access.log                one file
  $ logstrata load nginx '/var/log/nginx/access*'  plain, .gz and .zst alike
  $ journalctl -f -o cat | logstrata load app -    standard input
  $ logstrata load app --rejected     rejected lines, after the agent was corrected
  $ logstrata load shop               the files of the agent's archive
  $ logstrata load shop 's3://logs/shop/*.gz'      objects of an object storage

Each file is stored as a whole or not at all. A file whose content is already
stored is skipped, and of one that has grown only the new part is read, even if
it was renamed or compressed. A server on the same data may keep running.
"remove" undoes a load, by the id that is printed with it.

Exit code 1 if a file failed, if all lines are still rejected, and with
--fail-if-nothing if everything was already stored.`;

function addStoringCommands(program: Command): void {
  addServerOptions(program.command('serve'))
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .summary('collect logs and answer queries over HTTP')
    .description(
      "Collects the agents' logs and answers GET /api/query/<agent> over HTTP until it is stopped (SIGINT, SIGTERM).",
    )
    .addHelpText('after', serveText)
    .action(stoppable(async () => (await import('./serve.js')).serve, ['SIGINT', 'SIGTERM']));
  program
    .command('load')
    .summary('store log files, or standard input')
    .description('Stores log files: plain, gzip or zstd, recognised by their content. "-" is standard input.')
    .argument('<agent>', 'name of the agent')
    .argument('[files...]', "files or patterns, or - (default: those of the agent's archive)")
    .option('--rejected', 'load the lines that were rejected before')
    .option('--again', 'store files again that are already stored')
    .option('--merge', 'sort all files together and store them as one, or not at all')
    .option(
      '--beyond-retention',
      'also store records older than retention.period, and keep them for that long from now',
    )
    .option('--force', 'store files without any readable time, ordered by the time of the load')
    .option('--fail-if-nothing', 'exit code 1 if everything is already stored')
    .addOption(codecOption('lz4'))
    .addOption(workersOption('parse and write'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', loadText)
    .action(stoppable(async () => (await import('./load.js')).load));
}

const queryText = `${filterHelp}

Examples:
  $ logstrata query nginx                                    the newest ${limitDefault} records
  $ logstrata query app timeout --since 2h                   what the last two hours say of timeouts
  $ logstrata query app,nginx --since 15m                    two agents in one list
  $ logstrata query nginx status__gte=500 time__since=2h     errors of the last two hours
  $ logstrata query nginx 'user_agent__like=bot' --limit 10 --explain
  $ logstrata query nginx --after 072a5f0000000123           the records after that one
  $ logstrata query nginx --fields time,status,path --csv    three fields, for a spreadsheet
  $ logstrata query nginx status__gte=500 -n 5 --follow      the newest 5, and then new ones`;

const countText = `${filterHelp}

Steps are a number and a unit: s, m, h, d, w, mo (months), y. Days and longer begin at local midnight.

Examples:
  $ logstrata count nginx status__gte=500                    how many errors there are
  $ logstrata count nginx time__since=1d --by time:1h        records of each hour of the last day
  $ logstrata count nginx --by remote_addr --top 20          the 20 most frequent addresses
  $ logstrata count nginx --by time:1d --by status --csv     days and status codes, for a spreadsheet
  $ logstrata count nginx --by path --of bytes --fn avg,p99  sizes of the answers for each path`;

function addAskingCommands(program: Command): void {
  addScan(program.command('query'), 'read and search')
    .summary('query records and print them')
    .description(
      'Prints the matching records, oldest first: in a terminal as aligned lines, elsewhere as JSON Lines, like the HTTP route.',
    )
    .option('-n, --limit <n>', `maximum number of records (default: ${limitDefault})`, collect)
    .option('--fields <names>', fieldsText, collect)
    .option('-f, --follow', 'go on printing new records as they arrive, until Ctrl-C')
    .addOption(new Option('--jsonl', 'print JSON Lines').conflicts(['json', 'csv', 'table']))
    .addOption(new Option('--json', 'print one JSON array').conflicts(['csv', 'table']))
    .addOption(new Option('--csv', 'print CSV with a header').conflicts('table'))
    .option('--table', 'print aligned lines, even if the output is not a terminal')
    .addOption(
      new Option('--wrap', 'print aligned lines, with long values wrapped instead of cut').conflicts([
        'jsonl',
        'json',
        'csv',
      ]),
    )
    .addOption(
      new Option('--color <when>', 'colours: auto, always or never').choices(colourChoices).default('auto'),
    )
    .option('--explain', 'print to standard error how the query was understood and what it cost')
    .addHelpText('after', queryText)
    .action(stoppable(async () => (await import('./query.js')).query));
  addScan(program.command('count'), 'read and count')
    .summary('count records, by time and by value, and sum up their numbers')
    .description(
      'Counts the matching records exactly: all together, per time bucket, per most frequent value of a field, or both. ' +
        'Shows sums, averages, bounds, percentiles and the number of different values of other fields.',
    )
    .option(
      '--by <what>',
      'a time field with a step, such as time:1h, or another field; at most one of each',
      collect,
    )
    .option('--of <field>', 'a field whose numbers to show for each of them; up to four', collect)
    .option('--fn <list>', `which: ${numberFunctions.join(', ')}`, collect)
    .option('--top <n>', `number of most frequent values to show (default: ${topDefault})`, collect)
    .option(
      '--zone <zone>',
      'time zone of the buckets (default: server.timezone of the configuration)',
      collect,
    )
    .addOption(new Option('--csv', 'print CSV with a header and times in milliseconds').conflicts('json'))
    .addOption(new Option('--json', 'print JSON, like /api/count of the console').conflicts('csv'))
    .option('--explain', 'print the cost of the count to standard error')
    .addHelpText('after', countText)
    .action(stoppable(async () => (await import('./count.js')).count));
  program
    .command('mcp')
    .summary('let a language model ask, over the Model Context Protocol')
    .description(
      'Answers a client of the Model Context Protocol on standard input and output, until it closes them.',
    )
    .addOption(workersOption('read and search'))
    .addHelpText('after', mcpText)
    .action(stoppable(async () => (await import('./mcp.js')).mcp));
}

const mcpText = `
A client of the Model Context Protocol, such as an assistant in an editor, runs this command; docs/mcp.md has the lines for its configuration.
It has tools for the agents and their fields, pages of records, counts, and the neighbours of a record. Nothing can be changed with them.
It needs the package @modelcontextprotocol/server: npm install @modelcontextprotocol/server

Examples:
  $ logstrata mcp --config /etc/logstrata/config.yaml`;

const statsText = `
Examples:
  $ logstrata stats           one line an agent
  $ logstrata stats nginx     everything about one agent
  $ logstrata stats --json    for scripts: an array of objects`;

const agentText = `
Examples:
  $ logstrata agent new mysite --log /var/log/nginx/access.log
  $ logstrata agent new shop --log '/var/log/shop/*.json' --print
  $ logstrata agent list

"new" reads the beginning and the end of the log, recognises the format of its
lines and writes agents/<name>.yaml. It recognises access logs, JSON, logfmt,
syslog, and lines that begin with a time, such as those of Go, Java, Python and
PostgreSQL, including the stack traces that follow them.`;

const checkText = `
Examples:
  $ logstrata check                             all agents: fields, files, mistakes
  $ logstrata check nginx --line "$(tail -1 access.log)"    what one line becomes
  $ tail -1 app.log | logstrata check app --line -          from standard input
  $ logstrata check nginx --file access.log     what a whole file becomes

Exit code 1 if a file has an error or a line would be rejected.`;

function addLookingCommands(program: Command): void {
  program
    .command('stats')
    .summary('show what the archive holds')
    .description('Shows what the archive holds: records, times, files and sizes.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', statsText)
    .action(runs(async () => (await import('./stats.js')).stats));
  const agent = program
    .command('agent')
    .summary('make an agent file from a log; list agents')
    .description('Makes an agent file from a log, and lists the agents.')
    .addHelpText('after', agentText);
  agent
    .command('new')
    .description('Reads a log and writes an agent file for it.')
    .argument('<agent>', 'name of the agent and of its file')
    .argument('[logs...]', 'the log, as with --log')
    .option('--log <file...>', 'the log: one or more files or globs; also .gz and .zst')
    .option('--print', 'print the agent file instead of writing it')
    .option('--force', 'replace an existing agent file')
    .action(runs(async () => (await import('./agent.js')).newAgent));
  agent
    .command('list')
    .description('Lists the agents and what they read.')
    .option('--json', 'print the result as JSON')
    .action(runs(async () => (await import('./agent.js')).listAgents));
  program
    .command('check')
    .summary('check the agent files, or show what lines become')
    .description('Checks the configuration and the agent files, and shows what lines become.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--line <text>', 'a line of the log; - reads it from standard input')
    .option('--file <file...>', 'log files: show what all their lines become, store nothing')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', checkText)
    .action(runs(async () => (await import('./check.js')).check));
}

const verifyText = `
Examples:
  $ logstrata verify                  read every byte of every agent
  $ logstrata verify nginx            read every byte of one agent
  $ logstrata verify --json           for scripts: an array of reports
  $ logstrata verify --far            count the far tier, on each of its servers
  $ logstrata verify nginx --repair   while no server runs on the same data

Exit code 1 if anything is damaged; after a repair, if records are lost.`;

const compactText = `
Examples:
  $ logstrata compact                     all agents
  $ logstrata compact nginx --codec zstd  one agent, as small as it gets

Cursors and answers stay the same. Fields get the filters that "index" in the agent file asks for. A server on the same data may keep running; it compacts by itself where that pays off.
Replaced files are removed after the longest query time, so other tools may still see them until then.`;

const backupText = `
Examples:
  $ logstrata backup /mnt/backup/logs                all agents; run again, it copies only what is new
  $ logstrata backup /mnt/backup/logs --agent nginx  one of them
  $ logstrata backup s3://backups/logs               the same, in an object storage
  $ logstrata verify --data /mnt/backup/logs         read every byte of the copy

A server on the same data may keep running. The copy is a data folder: to restore, stop the server and copy it back.
Exit code 1 if an agent could not be copied; the other agents are copied.`;

function addKeepingCommands(program: Command): void {
  program
    .command('verify')
    .summary('read every byte and check the checksums')
    .description('Reads every byte that belongs to a record and checks the checksums.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .option('--far', 'instead, count the records of the far tier on each of its servers')
    .option('--repair', 'repair damage: keep all intact records, put damaged files aside, show what is lost')
    .option('--yes', 'with --repair: adopt files that no manifest lists, without asking')
    .addHelpText('after', verifyText)
    .action(stoppable(async () => (await import('./maintenance.js')).verify));
  program
    .command('compact')
    .summary('seal hot records and merge small segments')
    .description(
      'Seals hot records, merges small segments, and compresses old segments with the smaller codec.',
    )
    .argument('[agent]', 'name of an agent (default: all)')
    .addOption(codecOption('lz4, and zstd for days older than storage.zstd_after'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', compactText)
    .action(stoppable(async () => (await import('./maintenance.js')).compact));
  program
    .command('backup')
    .summary('copy the data folder, even while a server writes to it')
    .description('Updates a copy of the data folder with all that is committed now. Copies only what is new.')
    .argument('<folder>', 'new or existing place of the copy: a folder, or s3://bucket/prefix')
    .option('--agent <name>', 'one agent (default: all)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', backupText)
    .action(stoppable(async () => (await import('./maintenance.js')).backup));
}

const removeText = `
Examples:
  $ logstrata stats nginx                         lists the loads, with their ids
  $ logstrata remove nginx --load 079bd70000000001
  $ logstrata remove nginx --since 2026-11-17 --until 2026-11-18
  $ logstrata remove nginx --yes                  all records, without asking

It shows what would be removed and asks first. The cursor of a removed record is
never given to another one. Files of a removed load can be loaded again. A
server on the same data may keep running.`;

const retentionText = `
Examples:
  $ logstrata check nginx            show the retention, and how many records a change removes
  $ logstrata retention apply nginx  remove them now, without waiting for retention.grace

A server on the same data may keep running. It must have read the same file (SIGHUP).`;

function addRemovingCommands(program: Command): void {
  program
    .command('remove')
    .summary('remove records: a load, a range of times, or all')
    .description(
      'Removes records of an agent: those of one load, of a range of times, those ahead of the clock, or all.',
    )
    .argument('<agent>', 'name of the agent, even if it has no agent file any more')
    .option('--load <id>', 'the records of this load; "stats" lists the loads')
    .option('--since <time>', 'records from this time on, as in a filter')
    .option('--until <time>', 'records before this time')
    .option('--ahead', 'records in hours ahead of the clock; new ones are placed by the clock again')
    .option('--yes', 'remove without asking')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', removeText)
    .action(stoppable(async () => (await import('./maintenance.js')).remove));
  const retention = program
    .command('retention')
    .summary('apply a stricter retention at once')
    .description('Applies the retention of an agent file.')
    .addHelpText('after', retentionText);
  retention
    .command('apply')
    .description(
      'Applies the retention of the agent file now: removes the records beyond it without waiting for retention.grace.',
    )
    .argument('<agent>', 'name of the agent')
    .option('--json', 'print the result as JSON')
    .action(runs(async () => (await import('./maintenance.js')).applyRetention));
}

const exportText = `${filterHelp}

Examples:
  $ logstrata export nginx --format jsonl | gzip > nginx.jsonl.gz
  $ logstrata export nginx --format parquet --output nginx.parquet
  $ logstrata export nginx,app --format csv --fields path --output web.csv
  $ logstrata export nginx -n 1000 --format parquet --output newest.parquet
  $ duckdb -c "SELECT status, count(*) FROM 'nginx.parquet' GROUP BY 1"

Writes all matching records, oldest first, with their _cursor. More than 4 million records, or very scattered ones,
take several Parquet files: nginx.parquet, nginx-2.parquet, …`;

const importText = `
Examples:
  $ logstrata import fugo /var/lib/fugo/fugo.db
  $ logstrata import fugo fugo.db --agent nginx app
  $ logstrata import fugo fugo.db --offsets /var/lib/fugo/offsets.yaml

Records keep their cursors, so clients can go on with the cursors that they have
saved. The agent files of the service can be used unchanged: copy its agents
folder first. Stop the service before the import. Its offsets file, offsets.yaml
beside the database unless named, says from where to go on reading each log.

The records of an agent are stored as a whole or not at all. If run again, the
command imports what was added since. Exit code 1 if a table was not
imported.`;

const indexText = `
Examples:
  $ logstrata index web           attach new files of the archive, and index those that have no index
  $ logstrata index web --again   rebuild all indexes, for example after verify has found a damaged one

Files are only read. If the command is stopped, run it again to continue. A server on the same data does
all of this by itself, and may keep running.

Exit code 1 if a file can't be read.`;

function addMovingCommands(program: Command): void {
  addScan(program.command('export'), 'read and search')
    .summary('write matching records to a file')
    .description('Writes all matching records, oldest first, as JSON Lines, JSON, CSV or a Parquet file.')
    .addOption(
      new Option('--format <name>', 'format').choices([...lineFormats, 'parquet']).makeOptionMandatory(),
    )
    .option('--output <file>', 'file to write; - is standard output, not for parquet (default: -)')
    .option('--force', 'replace the file if it exists')
    .option(
      '-n, --limit <n>',
      'maximum number of records: the newest, or with --after the first (default: all)',
      collect,
    )
    .option('--fields <names>', fieldsText, collect)
    .addOption(codecOption('zstd'))
    .addHelpText('after', exportText)
    .action(stoppable(async () => (await import('./export.js')).exportRecords));
  const command = program
    .command('import')
    .summary('import the records of another service, with their cursors')
    .description('Imports the records of another service. They keep their cursors.')
    .addHelpText('after', importText);
  command
    .command('fugo')
    .description(
      'Imports the database of a Fugo service: the records of all agents, and how far their logs were read.',
    )
    .argument('<file>', 'the database, fugo.db')
    .option('--agent <name...>', 'only these agents (default: all that have an agent file)')
    .option(
      '--offsets <file>',
      'file with how far the service has read its logs (default: offsets.yaml beside the database)',
    )
    .option('--no-offsets', 'read the logs from their beginning')
    .addOption(codecOption('lz4'))
    .addOption(workersOption('parse and write'))
    .option('--json', 'print the result as JSON')
    .action(stoppable(async () => (await import('./import.js')).importDatabase));
  program
    .command('index')
    .summary('attach and index the files of an archive')
    .description('Attaches the files of an archive that is queried in place, and indexes them.')
    .argument('<agent>', 'name of the agent')
    .addOption(workersOption('read and index'))
    .option('--again', 'also index files again that have an index')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', indexText)
    .action(stoppable(async () => (await import('./index-archive.js')).index));
}

const farText = `
Examples:
  $ logstrata far ship          records older than storage.far.after, of all agents
  $ logstrata far ship nginx    of one agent
  $ logstrata far fetch nginx --since 2026-11-17 --until 2026-11-18
                                bring a day back
  $ logstrata verify --far      check that the far tier has all records

Cursors and answers stay the same. A server on the same data may keep running; it ships by itself.`;

function addFarCommand(program: Command): void {
  const far = program
    .command('far')
    .summary('ship old records to a ClickHouse cluster, and bring them back')
    .description('Moves records to a far tier and back: storage.far in the configuration.')
    .addHelpText('after', farText);
  far
    .command('ship')
    .description(
      'Ships old records (storage.far.after), and removes local files that were shipped long enough ago.',
    )
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .action(stoppable(async () => (await import('./maintenance.js')).ship));
  far
    .command('fetch')
    .description('Brings units back. They stay here until "far ship" is run again.')
    .argument('<agent>', 'name of an agent')
    .option('--since <time>', 'units with records from this time on, as in a filter (default: all)')
    .option('--until <time>', 'units with records before this time')
    .option('--json', 'print the result as JSON')
    .action(stoppable(async () => (await import('./maintenance.js')).fetchBack));
}

const expiresDefault = '90d';

/** Parses a lifetime to milliseconds; Infinity for `never`. */
const readExpires = valueOf((text) => {
  if (text.trim().toLowerCase() === 'never') return Infinity;
  const spanMs = parseDuration(text);
  // A longer lifetime would exceed the range of `Date`.
  return spanMs !== undefined && spanMs > 0 && spanMs < 8e15 ? spanMs : undefined;
}, `It is "never", or ${durationShape}.`);

function readAgent(text: string, before: readonly string[] = []): readonly string[] {
  if (!isAgentName(text)) throw new InvalidArgumentError('It is not a valid agent name.');
  const agents = [...new Set([...before, text])];
  if (agents.length > agentsOfTokenMax)
    throw new InvalidArgumentError(`A token can name at most ${agentsOfTokenMax} agents.`);
  return agents;
}

const tokenText = `
Examples:
  $ logstrata token new --name grafana                      all agents, both listeners, for 90 days
  $ logstrata token new --agent nginx --listener query      only queries of one agent
  $ logstrata token list
  $ logstrata token revoke 1f3a90c2
  $ curl -H "Authorization: Bearer $TOKEN" 127.0.0.1:2111/api/query/nginx

A listener requires a token as soon as one was made for it. A running server reads changed tokens when it receives
SIGHUP ("systemctl reload logstrata"), or by itself with "watch: true" in the configuration.`;

function addTokenCommand(program: Command): void {
  const token = program
    .command('token')
    .summary('make, list and revoke the tokens that listeners require')
    .description('Manages the access tokens of a data folder.')
    .addHelpText('after', tokenText);
  token
    .command('new')
    .description('Makes a token and prints it, only this once, to standard output.')
    .option('--agent <name...>', 'agents that it may read (default: all)', readAgent)
    .addOption(
      new Option('--listener <name>', 'listener that accepts it')
        .choices([...listenerNames, 'both'])
        .default('both'),
    )
    .addOption(
      new Option('--expires <span>', 'time until it expires, or "never"')
        .argParser(readExpires)
        .default(readExpires(expiresDefault), expiresDefault),
    )
    .option(
      '--name <who>',
      'who or what uses it, shown in the list',
      valueOf(
        (text) => (text.length <= tokenNameCharactersMax && !/\p{Cc}/u.test(text) ? text : undefined),
        `Expected at most ${tokenNameCharactersMax} printable characters.`,
      ),
    )
    .option('--json', 'print the result as JSON')
    .action(runs(async () => (await import('./token.js')).makeToken));
  token
    .command('list')
    .description('Lists the tokens, including expired and revoked ones.')
    .option('--json', 'print the result as JSON')
    .action(runs(async () => (await import('./token.js')).listTokens));
  token
    .command('revoke')
    .description('Revokes a token. It stays in the list.')
    .argument(
      '<id>',
      'the token, as "list" shows it',
      valueOf(
        (text) => (isTokenId(text) ? text : undefined),
        'Expected eight hexadecimal digits, as "logstrata token list" shows them.',
      ),
    )
    .action(runs(async () => (await import('./token.js')).revokeToken));
  token
    .command('clear')
    .description('Removes all tokens: from then on the listeners require none.')
    .option('--yes', 'do it')
    .action(runs(async () => (await import('./token.js')).clearTokens));
}

const demoText = `
Examples:
  $ logstrata demo                    load the samples, serve on 127.0.0.1:2111, print example queries
  $ logstrata demo --listen :8080     on another port`;

function addDemoCommand(program: Command): void {
  addServerOptions(program.command('demo'))
    .summary('load the sample logs and serve them')
    .description(
      'Loads the sample logs of this package, unless they are loaded already, serves them, and prints queries to try.',
    )
    .addHelpText('after', demoText)
    .action(stoppable(async () => (await import('./demo.js')).demo));
}

/** Adds all commands but `completion` and `help` to the program, in the order in which the help lists them. */
export function addCommands(program: Command): void {
  for (const add of [
    addStoringCommands,
    addAskingCommands,
    addLookingCommands,
    addKeepingCommands,
    addRemovingCommands,
    addMovingCommands,
    addFarCommand,
    addTokenCommand,
    addDemoCommand,
  ])
    add(program);
}
