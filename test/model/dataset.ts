import type { Position } from '../../engine/core/cursor.js';
import type { Schema } from '../../engine/core/schema.js';

export type Value = null | bigint | number | string;

/** A record as a plain object: its position, and one value for each field in the schema's order. */
export interface ModelRecord {
  readonly position: Position;
  readonly values: readonly Value[];
}

export interface Dataset {
  readonly schema: Schema;
  /** In ascending order of position. */
  readonly records: readonly ModelRecord[];
}
