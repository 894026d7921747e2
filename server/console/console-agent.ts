import type { FieldDefinition } from '../../agents/definition/definition.js';
import type { ReadableStore } from '../../engine/index.js';
import type { AgentsByName } from '../route/query-route.js';

/** The part of an agent's definition that the console shows. */
export interface ShownDefinition {
  readonly fields: readonly Pick<FieldDefinition, 'name' | 'type' | 'description'>[];
}

/** An agent as the console uses it. */
export interface ConsoleAgent {
  readonly definition: ShownDefinition;
  readonly store: ReadableStore;
}

/** The agents by name. The map is live: it always holds the agents that are served at present. */
export type ConsoleAgents = ReadonlyMap<string, ConsoleAgent> & AgentsByName<ConsoleAgent>;
