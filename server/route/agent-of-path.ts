import type { Caller } from '../access/caller.js';
import { ProblemError } from '../http/problem.js';
import { parseAgentPath } from '../request/query-request.js';

/** Agents by name, and those that a server leaves out. */
export interface AgentsByName<T> {
  get(name: string): T | undefined;
  /** By name, why an agent that has a file can't be served for now. */
  readonly leftOut?: ReadonlyMap<string, string> | undefined;
}

/**
 * The agent in a raw path `/api/{what}/{agent_name}`. Throws like `parseAgentPath`; 403 for an agent that the caller may not query, 503 with
 * the reason for one that is left out, 404 for an unknown one.
 */
export function agentOfPath<T>(
  rawPath: string,
  what: string,
  caller: Caller,
  agents: AgentsByName<T>,
): { readonly name: string; readonly found: T } {
  const name = parseAgentPath(rawPath, what);
  caller.assertMay(name);
  const found = agents.get(name);
  if (found !== undefined) return { name, found };
  const reason = agents.leftOut?.get(name);
  if (reason === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
  throw new ProblemError(503, `the agent "${name}" can't be served: ${reason}`, {
    headers: { 'Retry-After': '60' },
  });
}
