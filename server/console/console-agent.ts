import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { AgentStore } from '../../engine/index.js';

/** An agent that the console shows. */
export interface ConsoleAgent {
  readonly definition: AgentDefinition;
  readonly store: AgentStore;
}

/** The agents that are served, by name: those of the moment at which it is asked. */
export type ConsoleAgents = ReadonlyMap<string, ConsoleAgent>;
