/** A value as an answer gives it. A whole number that a double does not hold is a bigint, with every digit. */
export type Value = string | number | bigint | boolean | null;

/** One record of an answer. */
export interface LogRecord {
  readonly cursor: string;
  /** The JSON object as the server wrote it. */
  readonly line: string;
  /** The fields, in the order of the agent's file. */
  readonly values: ReadonlyMap<string, Value>;
}

/** What a value is as text: a string as it is, and nothing for null. */
export function valueText(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
