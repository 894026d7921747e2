import type { Caller } from '../access/caller.js';
import { ProblemError } from '../http/problem.js';
import { parseAgentPath } from '../request/query-request.js';

/**
 * The agent in a raw path `/api/{what}/{agent_name}`, as `find` gives it for its name. Throws like `parseAgentPath`; 403 for an agent
 * that the caller may not query, 404 for an unknown one.
 */
export function agentOfPath<T>(
  rawPath: string,
  what: string,
  caller: Caller,
  find: (name: string) => T | undefined,
): { readonly name: string; readonly found: T } {
  const name = parseAgentPath(rawPath, what);
  caller.assertMay(name);
  const found = find(name);
  if (found === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
  return { name, found };
}
