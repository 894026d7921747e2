/** Cuts a text to `columns` characters, with an ellipsis at the end. */
export function clip(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 1)}…`;
}

/** A text of a log on one line: line breaks become `⏎`, other control characters `·`. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', '⏎').replaceAll(/\p{Cc}/gu, '·');
}
