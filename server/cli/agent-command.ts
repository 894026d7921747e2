import type { Command } from 'commander';
import { lineFormatOf, type AgentDefinition } from '../../agents/definition/definition.js';
import { formatProblem } from '../../agents/definition/config-error.js';
import { noAgents, readAgentsFolder, readSettings, type GlobalFlags } from './options.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { formatCounted, formatTable, printJson, printLines, screenWidth, tell } from './terminal.js';
import type { NewFlags } from './agent-new.js';

interface ListFlags extends GlobalFlags {
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata agent new mysite --log /var/log/nginx/access.log
  $ logstrata agent new shop --log '/var/log/shop/*.json' --print
  $ logstrata agent list

"new" reads the beginning and the end of the log, recognises the format of its
lines and writes agents/<name>.yaml. It recognises access logs, JSON, logfmt,
syslog, and lines that begin with a time, such as those of Go, Java, Python and
PostgreSQL, including the stack traces that follow them.`;

function describeReading(agent: AgentDefinition): string {
  const { file, archive, system } = agent;
  if (file !== undefined) return `${file.directory}/${file.namePattern}`;
  if (archive !== undefined) return archive.globs.map(({ glob }) => glob).join(', ');
  return system === undefined ? '' : 'this machine';
}

function describeFormat(agent: AgentDefinition): string {
  const lines = lineFormatOf(agent);
  if (lines !== undefined)
    return lines.multiline === undefined ? lines.format : `${lines.format}, several lines`;
  return agent.system === undefined ? 'files in place' : 'figures';
}

async function list(flags: ListFlags): Promise<number> {
  const settings = await readSettings(flags);
  const { agents, problems } = await readAgentsFolder(settings);
  if (flags.json === true) {
    const known = agents.map((agent) => ({
      name: agent.name,
      path: agent.path,
      format: describeFormat(agent),
      reads: describeReading(agent),
      fields: agent.fields.length,
    }));
    await printJson({ agents: known, problems });
  } else if (agents.length > 0) {
    const rows = agents.map((agent) => [
      agent.name,
      describeFormat(agent),
      formatCounted(agent.fields.length, 'field'),
      describeReading(agent),
    ]);
    await printLines(formatTable(['agent', 'format', 'fields', 'reads'], rows, [], screenWidth()));
  }
  for (const problem of problems) tell(formatProblem(problem));
  if (agents.length === 0 && problems.length === 0) tell(noAgents(settings.agentsFolder));
  return agents.length > 0 && problems.length === 0 ? exitDone : exitFailed;
}

/** Adds `logstrata agent` with its subcommands: `new` writes the file of an agent from a log, `list` lists the agents. */
export function addAgentCommand(program: Command): void {
  const agent = program
    .command('agent')
    .summary('make an agent file from a log; list agents')
    .description('Makes an agent file from a log, and lists the agents.')
    .addHelpText('after', examples);
  agent
    .command('new')
    .description('Reads a log and writes an agent file for it.')
    .argument('<agent>', 'name of the agent and of its file')
    .argument('[logs...]', 'the log, as with --log')
    .option('--log <file...>', 'the log: one or more files or globs; also .gz and .zst')
    .option('--print', 'print the agent file instead of writing it')
    .option('--force', 'replace an existing agent file')
    .action(async (name: string, logs: readonly string[], _flags: unknown, command: Command) => {
      const flags = command.optsWithGlobals<NewFlags>();
      const log = [...(flags.log ?? []), ...logs];
      if (log.length === 0)
        throw new UsageError(
          'no log is named',
          `For example: logstrata agent new ${name} --log /var/log/nginx/access.log`,
        );
      const { newAgent } = await import('./agent-new.js');
      process.exitCode = await newAgent(name, log, flags);
    });
  agent
    .command('list')
    .description('Lists the agents and what they read.')
    .option('--json', 'print the result as JSON')
    .action(async (_flags: unknown, command: Command) => {
      process.exitCode = await list(command.optsWithGlobals<ListFlags>());
    });
}
