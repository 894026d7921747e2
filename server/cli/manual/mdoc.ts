/** Text that mdoc(7) takes as it is. Hyphens are those that one types. */
export function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}

/** Words behind a macro: quoted, so that none of them is a macro itself. */
export function quoted(text: string): string {
  return `"${plain(text).replaceAll('"', '""')}"`;
}

/** Bytes of a line of the source, at most: what the language's own checks ask for. */
const lineBytesMax = 78;

/** Filled text: a line for each sentence, as the language wants it, or several where it is long. */
export function filled(text: string): string {
  const sentences = text
    .trim()
    .replace(/\s+/g, ' ')
    .split(/(?<=[a-z)"][.:]) (?=["A-Z])/);
  return sentences.flatMap(wrapped).map(plain).join('\n');
}

function wrapped(sentence: string): string[] {
  const lines: string[] = [];
  for (const word of sentence.split(' ')) {
    const last = lines.at(-1);
    // A hyphen takes a byte more.
    const isFull = last === undefined || plain(`${last} ${word}`).length > lineBytesMax;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Filled text that begins behind a blank line. */
export function paragraph(text: string): string {
  return `.Pp\n${filled(text)}`;
}

/** Lines as they stand. */
export function literal(lines: readonly string[]): string {
  return ['.Bd -literal', ...lines.map(plain), '.Ed'].join('\n');
}

/** Terms, each with what it means. A term is what stands behind `.It`. */
export function tagged(items: readonly (readonly [tag: string, text: string])[]): string {
  const shown = items.map(([tag, text]) => (text === '' ? `.It ${tag}` : `.It ${tag}\n${filled(text)}`));
  return ['.Bl -tag -width Ds', ...shown, '.El'].join('\n');
}
