import { LogstrataError } from '../../engine/index.js';

/** A piece of a template: literal text, or the inside of an action `{{…}}`. */
export type TemplatePiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly at: number };

export type TokenKind = 'word' | 'field' | 'variable' | 'string' | 'number' | 'symbol' | 'end';

/** `text` is the word, the name of the field or variable without its sign, the decoded string, or the symbol. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Index of its first character in the template. */
  readonly at: number;
}

/** An error in a template; `at` is an index, which the message gives counted from 1. */
export function templateError(message: string, at: number): LogstrataError {
  return new LogstrataError('invalid', `template, character ${at + 1}: ${message}`, { offset: at });
}

/** Splits a template at its actions; trims (`{{-`, `-}}`) are applied and comments removed. Throws `invalid`. */
export function lexTemplate(template: string): TemplatePiece[] {
  const pieces: TemplatePiece[] = [];
  let at = 0;
  let trimNext = false;
  while (at < template.length) {
    const open = template.indexOf('{{', at);
    let text = open < 0 ? template.slice(at) : template.slice(at, open);
    if (trimNext) text = text.replace(/^[ \t\r\n]+/, '');
    if (open < 0) {
      addText(pieces, text);
      break;
    }
    const trimmed = template[open + 2] === '-' && isBlank(template[open + 3]);
    addText(pieces, trimmed ? withoutBlanks(text) : text);
    const inside = open + (trimmed ? 3 : 2);
    const comment = /^[ \t\r\n]*\/\*/.exec(template.slice(inside));
    const end =
      comment === null ? lexAction(template, inside, open, pieces) : commentEnd(template, inside, open);
    trimNext = template[end - 1] === '-';
    at = template.indexOf('}}', end) + 2;
  }
  return pieces;
}

function addText(pieces: TemplatePiece[], text: string): void {
  if (text !== '') pieces.push({ kind: 'text', text });
}

/** Removes the blanks at the end of a text. */
function withoutBlanks(text: string): string {
  let end = text.length;
  while (isBlank(text[end - 1])) end--;
  return text.slice(0, end);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\r' || character === '\n';
}

/** Index of the `}}` that closes a comment. */
function commentEnd(template: string, inside: number, open: number): number {
  const close = template.indexOf('*/', inside);
  if (close < 0) throw templateError('the comment is not closed with "*/"', open);
  const behind = /^(?:[ \t\r\n]+-)?\}\}/.exec(template.slice(close + 2));
  if (behind === null)
    throw templateError('a comment must be the whole action: "}}" must follow "*/"', close);
  return close + 2 + behind[0].length - 2;
}

const wordPattern = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const fieldPattern = /\.([\p{L}_][\p{L}\p{Nd}_]*)/uy;
const variablePattern = /\$([\p{L}_][\p{L}\p{Nd}_]*)/uy;
const numberPattern = /[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)/y;
const symbolPattern = /:=|[|()=.,]/y;

/** Adds the action's tokens as one piece and returns the index of its `}}`. */
function lexAction(template: string, inside: number, open: number, pieces: TemplatePiece[]): number {
  const tokens: Token[] = [];
  let at = inside;
  let blankBefore = true;
  for (;;) {
    if (at >= template.length) throw templateError('the action is not closed with "}}"', open);
    if (template.startsWith('}}', at) || (blankBefore && template.startsWith('-}}', at))) break;
    if (isBlank(template[at])) {
      at++;
      blankBefore = true;
      continue;
    }
    const [token, end] = lexToken(template, at);
    const before = tokens.at(-1)?.kind;
    // Accept `.a.b` here: the parser rejects it with a better message than a missing blank.
    const chained = token.kind === 'field' && (before === 'field' || before === 'variable');
    const glued = !blankBefore && !chained && token.kind !== 'symbol' && before !== 'symbol';
    if (glued)
      throw templateError(`a blank is missing before ${JSON.stringify(template.slice(at, end))}`, at);
    tokens.push(token);
    at = end;
    blankBefore = false;
  }
  const end = template[at] === '-' ? at + 1 : at;
  tokens.push({ kind: 'end', text: '', at });
  pieces.push({ kind: 'action', tokens, at: open });
  return end;
}

function lexToken(template: string, at: number): [Token, number] {
  const quote = template[at];
  if (quote === '"' || quote === '`' || quote === "'") return lexQuoted(template, at, quote);
  const patterns: readonly [TokenKind, RegExp, number][] = [
    ['word', wordPattern, 0],
    ['variable', variablePattern, 1],
    ['number', numberPattern, 0],
    ['field', fieldPattern, 1],
    ['symbol', symbolPattern, 0],
  ];
  for (const [kind, pattern, group] of patterns) {
    pattern.lastIndex = at;
    const match = pattern.exec(template);
    if (match !== null) return [{ kind, text: match[group]!, at }, at + match[0].length];
  }
  throw templateError(`unexpected ${JSON.stringify(String.fromCodePoint(template.codePointAt(at)!))}`, at);
}

/** Reads Go's quoted forms: `"…"` with escapes, `` `…` `` without, and 'c', which is the number of a character. */
function lexQuoted(template: string, at: number, quote: string): [Token, number] {
  let end = at + 1;
  while (end < template.length && template[end] !== quote) {
    if (quote !== '`' && template[end] === '\n') break;
    end += quote !== '`' && template[end] === '\\' ? 2 : 1;
  }
  if (template[end] !== quote) throw templateError(`the string is not closed with ${quote}`, at);
  const raw = template.slice(at + 1, end);
  const text = quote === '`' ? raw : unescapeGo(raw, at + 1);
  if (quote !== "'") return [{ kind: 'string', text, at }, end + 1];
  if ([...text].length !== 1)
    throw templateError('single quotes hold one character; use double quotes for a string', at);
  return [{ kind: 'number', text: String(text.codePointAt(0)), at }, end + 1];
}

const simpleEscapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

function unescapeGo(raw: string, at: number): string {
  return raw.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))/gsu,
    (
      whole: string,
      hex: string,
      short: string,
      long: string,
      octal: string,
      letter: string,
      index: number,
    ) => {
      const digits = hex ?? short ?? long;
      if (digits !== undefined || octal !== undefined) {
        const code = digits !== undefined ? parseInt(digits, 16) : parseInt(octal, 8);
        if (code <= 0x10ffff) return String.fromCodePoint(code);
      }
      const simple = simpleEscapes[letter];
      if (simple === undefined) throw templateError(`unknown escape ${JSON.stringify(whole)}`, at + index);
      return simple;
    },
  );
}
