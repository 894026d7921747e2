/** Maximum nesting: deeper, the indentation would be far larger than the content. */
const depthMax = 64;
/** Longer texts are shown unformatted. */
const charsMax = 2_000_000;

/** Whether a text is a JSON object or array that is worth formatting. */
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
 * Formats JSON with two blanks per level. Works on the text, so numbers keep all digits. Expects valid JSON; returns a text that is nested
 * more than 64 levels deep or longer than two million characters unchanged.
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

/** The index after the closing quote of the string that begins at `begin`. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
