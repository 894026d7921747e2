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

/** Control sequences of terminals (ECMA-48, 5.4): they colour text, and a page shows them as boxes. */
const terminalCodes = /\u001b\[[0-?]*[ -/]*[@-~]/g;

/** A text as a page shows it: without what only a terminal understands. */
export function shownText(text: string): string {
  return text.includes('\u001b') ? text.replace(terminalCodes, '') : text;
}

/** What a value is as text: a string as it is, and nothing for null. */
export function valueText(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
