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

/** Characters that change the direction of the text after them. With them a log line could show its characters in another order. */
const directionCodes = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text as shown in the page: without control sequences of terminals, and with codes like `\u202e` in place of direction controls. */
export function shownText(text: string): string {
  const plain = text.includes('\u001b') ? text.replace(terminalCodes, '') : text;
  return plain.replace(directionCodes, (code) => `\\u${code.charCodeAt(0).toString(16)}`);
}

/** A value as text; empty for null. */
export function valueText(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
