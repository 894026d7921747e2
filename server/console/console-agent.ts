import type { FieldDefinition } from '../../agents/definition/definition.js';
import type { ReadableStore } from '../../engine/index.js';

/** What of an agent's definition the console shows. */
export interface ShownDefinition {
  readonly fields: readonly Pick<FieldDefinition, 'name' | 'type' | 'description'>[];
}

/** An agent that the console shows. */
export interface ConsoleAgent {
  readonly definition: ShownDefinition;
  readonly store: ReadableStore;
}

/** The agents that are served, by name: those of the moment at which it is asked. */
export type ConsoleAgents = ReadonlyMap<string, ConsoleAgent>;
