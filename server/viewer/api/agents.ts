import type { Field } from '../query/field.js';
import { agentsPath, fieldsPath } from './first-requests.js';
import type { ServerDoor } from './server-door.js';

/** The names of the agents that the token may read, in alphabetical order. Throws a FailureError. */
export async function askAgents(door: ServerDoor, signal?: AbortSignal): Promise<readonly string[]> {
  const { agents } = (await door.getJson(agentsPath, { signal })) as {
    readonly agents: readonly string[];
  };
  return agents;
}

/** The fields of an agent, in the order of its schema. Throws a FailureError. */
export async function askFields(
  door: ServerDoor,
  agent: string,
  signal?: AbortSignal,
): Promise<readonly Field[]> {
  const { schema } = (await door.getJson(fieldsPath(agent), { signal })) as {
    readonly schema: readonly Field[];
  };
  return schema;
}
