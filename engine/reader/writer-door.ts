import type { Schema } from '../terms/schema.js';
import type { RowsAnswer, RowsQuestion } from './rows-between.js';

/** A question about an agent's records, with what the answer must fit. */
export interface DoorQuestion extends RowsQuestion {
  readonly agent: string;
  /** The fields that it names by their places. */
  readonly schema: Schema;
  /** Stands for them (`schemaTag`). Throws `conflict` where the writer has others by now. */
  readonly tag: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * How a reader reaches the writer on another machine. All throw `unavailable`, with the writer's address, where it can't be reached or
 * refuses.
 */
export interface WriterDoor {
  /** Where the writer is, for messages. */
  readonly address: string;
  /** Names of the agents that it answers for. */
  agents(): Promise<readonly string[]>;
  /** The border of an agent as it is now (`encodeBorder`). */
  border(agent: string, knownTag: string | null): Promise<string>;
  rows(question: DoorQuestion): Promise<RowsAnswer>;
}
