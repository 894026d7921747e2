/** A part of the text that follows the options in the help of a command. */
export type HelpPiece =
  | { readonly kind: 'title'; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  | { readonly kind: 'examples'; readonly examples: readonly Example[] };

/** A command line, and an explanation, which may be empty. */
export interface Example {
  readonly command: string;
  readonly about: string;
}

/**
 * Splits the text after the options into its parts: titles (`Title:` alone on a line), examples (`  $ command   explanation`), other
 * indented lines, and paragraphs.
 */
export function helpPieces(text: string): HelpPiece[] {
  const pieces: HelpPiece[] = [];
  let paragraph: string[] = [];
  let indented: string[] = [];
  let examples: Example[] = [];
  const end = (): void => {
    if (paragraph.length > 0) pieces.push({ kind: 'paragraph', text: paragraph.join(' ') });
    if (indented.length > 0) pieces.push({ kind: 'lines', lines: indented });
    if (examples.length > 0) pieces.push({ kind: 'examples', examples });
    paragraph = [];
    indented = [];
    examples = [];
  };
  for (const line of text.split('\n')) {
    const [, command, about = ''] = /^ {2}\$ (\S(?:.*?\S)?)(?: {2,}(\S.*))?$/.exec(line) ?? [];
    if (command !== undefined) {
      if (paragraph.length + indented.length > 0) end();
      examples.push({ command, about });
    } else if (line.startsWith('  ')) {
      if (paragraph.length + examples.length > 0) end();
      indented.push(line.slice(2));
    } else if (line === '' || /^[A-Z]\w+:$/.test(line)) {
      end();
      if (line !== '') pieces.push({ kind: 'title', text: line.slice(0, -1) });
    } else {
      if (indented.length + examples.length > 0) end();
      paragraph.push(line);
    }
  }
  end();
  return pieces;
}
