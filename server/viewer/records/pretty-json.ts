/** Deeper than this, indenting would make a text of another order of size than what it shows. */
const depthMax = 64;
/** Longer texts are shown as they are. */
const charsMax = 2_000_000;

/** Whether a text is a JSON object or list, which is worth being shown in lines. */
export function isJsonTree(text: string): boolean {
  const first = text.trimStart()[0];
  if ((first !== '{' && first !== '[') || text.length > charsMax) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * JSON in lines, two blanks a level. Works on the text and leaves each number as it is written. Takes valid JSON; gives back what is
 * nested deeper than 64 levels, or longer than two million characters, as it came.
 */
export function prettyJson(text: string): string {
  if (text.length > charsMax) return text;
  const parts: string[] = [];
  let depth = 0;
  let at = 0;
  const newLine = (): void => void parts.push('\n', '  '.repeat(depth));
  while (at < text.length) {
    const character = text[at]!;
    const begin = at;
    at += 1;
    if (character === '"') {
      at = endOfString(text, begin);
      parts.push(text.slice(begin, at));
    } else if (character === '{' || character === '[') {
      const close = nextVisible(text, at);
      const isEmpty = text[close] === '}' || text[close] === ']';
      parts.push(isEmpty ? `${character}${text[close]!}` : character);
      if (isEmpty) at = close + 1;
      else if ((depth += 1) > depthMax) return text;
      else newLine();
    } else if (character === '}' || character === ']') {
      depth -= 1;
      newLine();
      parts.push(character);
    } else if (character === ',') {
      parts.push(character);
      newLine();
    } else if (character === ':') {
      parts.push(': ');
    } else if (character > ' ') {
      parts.push(character);
    }
  }
  return parts.join('');
}

function nextVisible(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** Behind the closing quote of the string that begins at `begin`. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
