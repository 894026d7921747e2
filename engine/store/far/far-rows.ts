import type { Predicate } from '../../terms/predicate.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import type { LogstrataError } from '../../terms/errors.js';
import type { Field, Schema } from '../../terms/schema.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { FarAnswer, FarQuestion } from './far-cluster.js';
import type { FarCounted, FarCountQuestion } from './far-count.js';

/** A question, with the filters as they were asked: `condition` is what a cluster understands of them. */
export interface SourceQuestion extends FarQuestion {
  readonly predicates: readonly Predicate[];
  /** The fields that filters name by their places. */
  readonly shown: Schema;
}

/** Who has rows that are in no file of ours. */
export interface FarSource {
  /** The rows that a question asks for, as far as they fit an answer. */
  ask(question: SourceQuestion, signal?: AbortSignal): Promise<FarAnswer>;
  /** How many rows match, where that can be asked; null where they have too many different values for one answer. */
  count?(question: FarCountQuestion, signal?: AbortSignal): Promise<FarCounted | null>;
  /** The first and the last time of the rows that match; null where none has a time. */
  times?(
    question: FarCountQuestion,
    field: Field,
    signal?: AbortSignal,
  ): Promise<readonly [bigint, bigint] | null>;
}

/** Where rows are that are in no file of ours: whoever reads them asks for them. */
export interface FarRows {
  readonly agent: string;
  /** Their copy in a cluster; null where they are asked of the writer on another machine. */
  readonly copy: FarCopy | null;
  /** The fields that they were shipped with. */
  readonly stored: Schema;
  /** Bytes of a row on its way, about. */
  readonly rowBytes: number;
  /** The same for rows that one question can ask for: those of one shard and one set of fields. */
  readonly group: string;
  /** Throws `unavailable` where no far tier is configured. */
  source(): FarSource;
  /** What it means that a range without filters has given fewer rows than it has. */
  lacking(found: number, range: OrdinalRun): LogstrataError;
}
