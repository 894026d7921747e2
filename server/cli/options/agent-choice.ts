import { LogstrataError } from '../../../engine/index.js';
import type { AgentsFolder } from '../../../agents/definition/agent-file.js';
import { ConfigError } from '../../../agents/definition/config-error.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { didYouMean, listNames } from '../../request/suggestion.js';
import type { Settings } from './settings.js';

/** The error for an unknown agent. It suggests the agent with the most similar name, and lists all. */
function unknownAgent(name: string, known: readonly string[], where: string): LogstrataError {
  const there =
    known.length === 0 ? `There are no agents in ${where}.` : `Agents in ${where}: ${listNames(known)}.`;
  return new LogstrataError(
    'not_found',
    `there is no agent ${JSON.stringify(name)}${didYouMean(name, known)}. ${there}`,
  );
}

/** Reads the folder of agent files. Throws `not_found` or `io` where it can't be read. */
export async function readAgentsFolder(settings: Settings): Promise<AgentsFolder> {
  const { readAgents } = await import('../../../agents/definition/agent-file.js');
  return readAgents(settings.agentsFolder, settings.dataFolder);
}

/**
 * All agents of the folder. Throws a `ConfigError` with the problems of all files where one of them is invalid; `not_found` where there are
 * none.
 */
export async function allAgents(settings: Settings): Promise<readonly AgentDefinition[]> {
  const { agents, problems } = await readAgentsFolder(settings);
  if (problems.length > 0) throw new ConfigError(problems);
  if (agents.length === 0) throw new LogstrataError('not_found', noAgents(settings.agentsFolder));
  return agents;
}

/**
 * The agent `name`. Problems in the files of other agents are ignored. Throws a `ConfigError` for problems in its own file; `not_found`
 * where it has no file.
 */
export async function chooseAgent(settings: Settings, name: string): Promise<AgentDefinition> {
  const { agents, problems } = await readAgentsFolder(settings);
  const found = agents.find((agent) => agent.name === name);
  if (found !== undefined) return found;
  const own = problems.filter((problem) => agentOfFile(problem.file) === name);
  if (own.length > 0) throw new ConfigError(own);
  throw unknownAgent(
    name,
    agents.map((agent) => agent.name),
    settings.agentsFolder,
  );
}

/** The name of the agent that a file of the folder defines. */
export function agentOfFile(path: string): string {
  return path.replace(/^.*[\\/]/, '').replace(/\.ya?ml$/, '');
}

/** The message for a folder without agent files, which says how to write one. */
export function noAgents(folder: string): string {
  return (
    `there are no agents in ${folder}: an agent is a file <name>.yaml that describes one kind of log, ` +
    'and "logstrata agent new <name> --log <file>" writes one'
  );
}
