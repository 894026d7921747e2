/** A text of at most so many columns. */
export function clip(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 1)}…`;
}

/** A text of a log as one line that does nothing to a terminal. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', '⏎').replaceAll(/\p{Cc}/gu, '·');
}
