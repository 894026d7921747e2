import type { AnswerForm, Predicate, Query, ReadableStore } from '../../engine/index.js';

/** The records that a group follows: an agent, filters, and the fields to write. */
export interface Followed {
  readonly agent: string;
  readonly store: ReadableStore;
  readonly predicates: readonly Predicate[];
  readonly form: AnswerForm | undefined;
}

/** The query for all matching records after a position, without a limit. */
export function allAfter({ predicates, form }: Followed, after: Query['after']): Query {
  return { limit: Number.MAX_SAFE_INTEGER, after, predicates, form };
}

/** The position before all records. */
export const beforeAll = { partition: 0, ordinal: 0 };
