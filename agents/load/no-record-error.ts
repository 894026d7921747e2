import { shellWord, shownLine } from '../decode/line-text.js';
import { SourceError } from '../sources/source-error.js';

/** Content of which no line became a record. */
export interface ContentWithoutRecord {
  readonly path: string;
  /** Name of the content in messages, if not its path. */
  readonly title?: string;
  /** Number of rejected lines. */
  readonly lines: number;
  /** The first rejected line. */
  readonly first: { readonly reason: string; readonly line: Uint8Array };
  /** A shell command that prints the first line, for a line that can't be quoted as a shell word; absent for none. */
  readonly firstLineCommand?: string;
}

/** The error for content without a record. It is not stored as rejected lines, because it most likely belongs to another agent. */
export function noRecordError(agent: string, content: ContentWithoutRecord): SourceError {
  const { path, title = path, lines, first, firstLineCommand: command } = content;
  const none = lines === 1 ? 'Its one line did not become' : `None of its ${lines} lines became`;
  const word = shellWord(first.line) ?? (command === undefined ? null : `"$(${command})"`);
  const hint = word === null ? '' : `. Try: logstrata check ${agent} --line ${word}`;
  return new SourceError(
    'invalid',
    `${title} was not stored. ${none} a record of agent "${agent}"; the first one: ${first.reason}. ` +
      `The line: ${shownLine(first.line)}${hint}`,
    { path },
  );
}
