import type { Predicate } from '../../terms/predicate.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import type { LogstrataError } from '../../terms/errors.js';
import type { Field, Schema } from '../../terms/schema.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { FarAnswer, FarQuestion } from './far-cluster.js';
import type { FarCounted, FarCountQuestion } from './far-count.js';

/** A question, with the original filters. `condition` is the part of them that a cluster can evaluate. */
export interface SourceQuestion extends FarQuestion {
  readonly predicates: readonly Predicate[];
  /** The schema that the filters refer to by field index. */
  readonly shown: Schema;
}

/** A source of rows that are in no local file. */
export interface FarSource {
  /** The rows that a question asks for, as many as fit into an answer. */
  ask(question: SourceQuestion, signal?: AbortSignal): Promise<FarAnswer>;
  /** Counts the matching rows, if the source can count; null if they have too many distinct values for one answer. */
  count?(question: FarCountQuestion, signal?: AbortSignal): Promise<FarCounted | null>;
  /** The first and the last time of the matching rows; null if none has a time. */
  times?(
    question: FarCountQuestion,
    field: Field,
    signal?: AbortSignal,
  ): Promise<readonly [bigint, bigint] | null>;
}

/** A set of rows that are in no local file, and how to ask for them. */
export interface FarRows {
  readonly agent: string;
  /** The copy in a cluster; null if the rows are asked of the writer on another machine. */
  readonly copy: FarCopy | null;
  /** The schema with which they were shipped. */
  readonly stored: Schema;
  /** Estimated bytes of a row in an answer. */
  readonly rowBytes: number;
  /** Equal for rows that one question can ask for together: those of one shard and one schema. */
  readonly group: string;
  /** Throws `unavailable` if no far tier is configured. */
  source(): FarSource;
  /** The error for a range without filters that returned fewer rows than it has. */
  lacking(found: number, range: OrdinalRun): LogstrataError;
}
