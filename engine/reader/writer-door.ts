import type { Schema } from '../terms/schema.js';
import type { RowsAnswer, RowsQuestion } from './rows-between.js';

/** A request for an agent's rows, with the schema that it was written for. */
export interface DoorQuestion extends RowsQuestion {
  readonly agent: string;
  /** The schema that `fields` and `predicates` refer to by index. */
  readonly schema: Schema;
  /** The hash of that schema (`schemaTag`). The request fails with `conflict` when the writer has another schema by now. */
  readonly tag: string;
  readonly signal?: AbortSignal | undefined;
}

/** The agents of a writer. */
export interface WriterAgents {
  /** Names of the agents that the writer answers for. */
  readonly served: readonly string[];
  /** By name, why the writer has left out an agent. */
  readonly leftOut: ReadonlyMap<string, string>;
}

/**
 * A reader's connection to the writer on another machine. Each method throws `unavailable`, with the writer's address, when the
 * writer can't be reached or refuses.
 */
export interface WriterDoor {
  /** The writer's address, for messages. */
  readonly address: string;
  agents(): Promise<WriterAgents>;
  /** The agent's current border, encoded by `encodeBorder`. `knownTag` is the tag of the units that the reader has; null for none. */
  border(agent: string, knownTag: string | null): Promise<string>;
  rows(question: DoorQuestion): Promise<RowsAnswer>;
}
