/** Escapes a text for mdoc(7). Hyphens are escaped so that they can be copied as ASCII hyphens. */
export function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}

/** Quotes an argument of a macro, so that no word of it is taken for a macro. */
export function quoted(text: string): string {
  return `"${plain(text).replaceAll('"', '""')}"`;
}

/** Maximum length of a line of the source in bytes, which linters of mdoc check. */
const lineBytesMax = 78;

/** Filled text. As mdoc prefers, each sentence begins a new line; long ones are wrapped. */
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
    // Compared in its escaped form, which is longer.
    const isFull = last === undefined || plain(`${last} ${word}`).length > lineBytesMax;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Filled text after a blank line. */
export function paragraph(text: string): string {
  return `.Pp\n${filled(text)}`;
}

/** Lines that are shown unchanged. */
export function literal(lines: readonly string[]): string {
  return ['.Bd -literal', ...lines.map(plain), '.Ed'].join('\n');
}

/** A list of tagged items. A tag is the text after `.It`. */
export function tagged(items: readonly (readonly [tag: string, text: string])[]): string {
  const shown = items.map(([tag, text]) => (text === '' ? `.It ${tag}` : `.It ${tag}\n${filled(text)}`));
  return ['.Bl -tag -width Ds', ...shown, '.El'].join('\n');
}
