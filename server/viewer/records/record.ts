/** A value of a record. An integer that a double can't represent exactly is a bigint. */
export type Value = string | number | bigint | boolean | null;

/** A record of a response. */
export interface LogRecord {
  readonly cursor: string;
  /** The JSON object as sent by the server. */
  readonly line: string;
  /** The values by field, in the order of the response. */
  readonly values: ReadonlyMap<string, Value>;
}

/** Control sequences of terminals (ECMA-48, 5.4), which set colours. In a page they would appear as boxes. */
const terminalCodes = /\u001b\[[0-?]*[ -/]*[@-~]/g;

/** A text as shown in the page: without control sequences of terminals. */
export function shownText(text: string): string {
  return text.includes('\u001b') ? text.replace(terminalCodes, '') : text;
}

/** A value as text; empty for null. */
export function valueText(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
