/**
 * Bounds of a column chunk. Pruning may keep too much and never drops a match: a missing bound means "may match".
 * Bounds are inclusive. Those of strings are unsigned bytes; those of floats are never NaN.
 */
export interface ZoneMap {
  readonly nullCount: number;
  readonly rows: number;
  readonly min: bigint | number | Uint8Array | null;
  readonly max: bigint | number | Uint8Array | null;
}
