import { shellWord, shownLine } from '../decode/line-text.js';
import { SourceError } from '../sources/source-error.js';

/** Content none of whose lines became a record. */
export interface ContentWithoutRecord {
  readonly path: string;
  /** How messages call the content, if not by its path. */
  readonly title?: string;
  /** Lines that were rejected. */
  readonly lines: number;
  /** The first of them. */
  readonly first: { readonly reason: string; readonly line: Uint8Array };
  /** A command of the shell that prints the first line, where the line itself is no word of one; absent for none. */
  readonly firstLineCommand?: string;
}

/** Why content without a record is not stored as rejected lines: it is most likely another agent's. */
export function noRecordError(agent: string, content: ContentWithoutRecord): SourceError {
  const { path, title = path, lines, first, firstLineCommand: command } = content;
  const none = lines === 1 ? 'Its one line did not become' : `None of its ${lines} lines became`;
  const word = shellWord(first.line) ?? (command === undefined ? null : `"$(${command})"`);
  const hint = word === null ? '' : `\nTry: logstrata check ${agent} --line ${word}`;
  return new SourceError(
    'invalid',
    `${title} was not stored. ${none} a record of agent "${agent}"; the first one: ${first.reason}. ` +
      `It reads: ${shownLine(first.line)}${hint}`,
    { path },
  );
}
