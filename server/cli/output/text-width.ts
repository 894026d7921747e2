/** Characters that terminals give two columns: those of East Asian scripts, and pictures. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Those that they give none: what is set above or below others, and joiners. */
const narrow = /\p{Mn}|\p{Me}|\p{Cf}/u;
/** Those that would move the cursor or change colours; line ends, too. */
const controls = /\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A text that may hold anything as it is shown on one line: what a terminal would act on is escaped. */
export function printable(text: string): string {
  return text.replace(controls, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Columns of a terminal that a text takes, about: terminals differ in some characters. */
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

/** The text, or its beginning and its end around an ellipsis where it takes more columns than `most`: texts that begin alike end otherwise. */
export function cutToWidth(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  const characters = [...text];
  const head = takeWidth(characters, Math.ceil((most - 1) / 2));
  const tail = takeWidth(characters.reverse(), Math.floor((most - 1) / 2));
  return `${head.join('')}…${tail.reverse().join('')}`;
}

/** The text, or its beginning and an ellipsis where it takes more columns than `most`. */
export function cutEndToWidth(text: string, most: number): string {
  return textWidth(text) <= most ? text : `${takeWidth([...text], most - 1).join('')}…`;
}

/** The text in lines of at most `most` columns. They end at blanks where that leaves no line less than half full. */
export function wrapToWidth(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = '';
  let width = 0;
  // Where the last blank of the line is, and the columns up to and with it.
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

/** The first characters that take no more columns than `most`. */
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

/** The text with blanks behind it up to a width. */
export function padEndToWidth(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/** The text with blanks before it up to a width. */
export function padStartToWidth(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
}
