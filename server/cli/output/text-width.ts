/** Characters that take two columns in terminals: those of East Asian scripts, and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that take no column: combining marks and invisible format characters. */
const narrow = /\p{Mn}|\p{Me}|\p{Cf}/u;
/** Characters that would move the cursor, change colours or end the line. */
const controls = /\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A text in a form that is safe to show on one line: control characters are escaped. */
export function printable(text: string): string {
  return text.replace(controls, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Like `printable`, for a text whose line ends are its own. */
export function printableLines(text: string): string {
  return text.replaceAll(/[^\r\n]+/g, printable);
}

/** A text on one line, with line breaks as `⏎`, tabs as blanks and other control characters escaped. */
export function oneLine(text: string): string {
  return printable(text.replaceAll(/\r?\n/g, '⏎').replaceAll('\t', ' '));
}

/** Columns of a terminal that a text takes. Approximate, as terminals differ for some characters. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

function widthOf(character: string): number {
  if (character < '\u0300') return 1;
  if (narrow.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Cuts a text to at most `most` columns, with an ellipsis in the middle: long texts often have the same beginning and differ at the end. */
export function cutToWidth(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  const characters = [...text];
  const head = takeWidth(characters, Math.ceil((most - 1) / 2));
  const tail = takeWidth(characters.reverse(), Math.floor((most - 1) / 2));
  return `${head.join('')}…${tail.reverse().join('')}`;
}

/** Cuts a text to at most `most` columns, with an ellipsis at the end. */
export function cutEndToWidth(text: string, most: number): string {
  return textWidth(text) <= most ? text : `${takeWidth([...text], most - 1).join('')}…`;
}

/** Wraps a text into lines of at most `most` columns. A line is broken at a blank unless that would leave it less than half full. */
export function wrapToWidth(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = '';
  let width = 0;
  // Index of the last blank in the line, and the columns up to and including that blank.
  let blank = -1;
  let blankWidth = 0;
  for (const character of text) {
    const columns = widthOf(character);
    if (width + columns > most && line !== '') {
      const isAtBlank = character !== ' ' && blankWidth * 2 > most;
      lines.push((isAtBlank ? line.slice(0, blank) : line).trimEnd());
      line = isAtBlank ? line.slice(blank + 1) : '';
      width = isAtBlank ? width - blankWidth : 0;
      blank = -1;
      blankWidth = 0;
      if (line === '' && character === ' ') continue;
    }
    if (character === ' ') {
      blank = line.length;
      blankWidth = width + 1;
    }
    line += character;
    width += columns;
  }
  return [...lines, line];
}

/** The first characters that together take at most `most` columns. */
function takeWidth(characters: readonly string[], most: number): string[] {
  const taken: string[] = [];
  let width = 0;
  for (const character of characters) {
    width += widthOf(character);
    if (width > most) break;
    taken.push(character);
  }
  return taken;
}

/** Pads a text with blanks at the end to `width` columns. */
export function padEndToWidth(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/** Pads a text with blanks at the beginning to `width` columns. */
export function padStartToWidth(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
}
