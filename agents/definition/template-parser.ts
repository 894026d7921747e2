import { LogstrataError, nearName } from '../../engine/index.js';
import { templateFunctions, type CalledFunction } from './template-functions.js';
import { digitsMax, type TemplateValue } from './template-value.js';

/** A piece of a template: literal text, or the inside of an action `{{…}}`. */
type TemplatePiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly at: number };

export type TokenKind = 'word' | 'field' | 'variable' | 'string' | 'number' | 'symbol' | 'end';

/** `text` is the word, the name of the field or variable without its sign, the decoded string, or the symbol. */
interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Index of its first character in the template. */
  readonly at: number;
}

/** An error in a template; `at` is an index, which the message gives counted from 1. */
function templateError(message: string, at: number): LogstrataError {
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

/** Syntax tree of a template. */
export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Expression }
  /** `{{$x := …}}` and `{{$x = …}}`: prints nothing. */
  | { readonly kind: 'set'; readonly value: Expression }
  | {
      readonly kind: 'if';
      readonly condition: Expression;
      readonly then: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    };

/** An expression: a literal, a field, a variable, an assignment, `and`/`or` (`choose`), or a function call. */
export type Expression =
  | { readonly kind: 'literal'; readonly value: TemplateValue }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'variable'; readonly slot: number }
  | { readonly kind: 'assign'; readonly slot: number; readonly value: Expression }
  | { readonly kind: 'choose'; readonly stopAt: boolean; readonly values: readonly Expression[] }
  | {
      readonly kind: 'call';
      readonly call: CalledFunction['call'];
      readonly values: readonly Expression[];
    };

/** A parsed template: its nodes, the distinct fields that it uses, and its number of variables. */
export interface ParsedTemplate {
  readonly nodes: readonly TemplateNode[];
  readonly fields: readonly string[];
  readonly variables: number;
}

/** Limit on the nesting of actions and parentheses. People don't write deeper ones, and much deeper ones would exhaust the stack. */
const depthMax = 100;

const unsupported = new Set(['range', 'with', 'define', 'template', 'block', 'break', 'continue', 'call']);

/** Builds the syntax tree. Throws `invalid` with the position in the template. */
export function parseTemplate(pieces: readonly TemplatePiece[]): ParsedTemplate {
  const parser = new TemplateParser(pieces);
  return parser.parse();
}

class TemplateParser {
  readonly #fields = new Set<string>();
  /** Variables in scope with their slots, innermost last. */
  readonly #scope: [name: string, slot: number][] = [];
  #variables = 0;
  #piece = 0;
  #tokens: readonly Token[] = [];
  #token = 0;
  #depth = 0;

  constructor(private readonly pieces: readonly TemplatePiece[]) {}

  parse(): ParsedTemplate {
    const { nodes, ending } = this.#nodes();
    if (ending !== undefined)
      throw templateError(`unexpected {{${ending.text}}} without an {{if}}`, ending.at);
    return { nodes, fields: [...this.#fields], variables: this.#variables };
  }

  /** Parses nodes up to an `else` or `end`, or to the end of the template. */
  #nodes(): { nodes: TemplateNode[]; ending: Token | undefined } {
    const nodes: TemplateNode[] = [];
    const scopeLength = this.#scope.length;
    let ending: Token | undefined;
    while (ending === undefined && this.#piece < this.pieces.length) {
      const piece = this.pieces[this.#piece++]!;
      if (piece.kind === 'text') {
        nodes.push(piece);
        continue;
      }
      this.#tokens = piece.tokens;
      this.#token = 0;
      const first = this.#peek();
      if (first.kind === 'word' && (first.text === 'else' || first.text === 'end')) ending = this.#next();
      else nodes.push(this.#action(piece.at));
    }
    this.#scope.length = scopeLength;
    return { nodes, ending };
  }

  #action(at: number): TemplateNode {
    const first = this.#peek();
    if (first.kind === 'end') throw templateError('the action is empty', at);
    if (first.kind === 'word' && first.text === 'if') {
      this.#next();
      return this.#if(at);
    }
    if (first.kind === 'word' && unsupported.has(first.text)) {
      throw templateError(
        `{{${first.text}}} is not supported; only if and else are, since fields are plain values`,
        first.at,
      );
    }
    const value = this.#statement();
    this.#expectEnd();
    return value.kind === 'assign' ? { kind: 'set', value } : { kind: 'print', value };
  }

  #if(at: number): TemplateNode {
    if (++this.#depth > depthMax) throw templateError(`more than ${depthMax} levels`, at);
    const scopeLength = this.#scope.length;
    const condition = this.#statement();
    this.#expectEnd();
    const { nodes: then, ending } = this.#nodes();
    let otherwise: readonly TemplateNode[] = [];
    if (ending === undefined) throw templateError('the {{if}} has no {{end}}', at);
    if (ending.text === 'end') {
      this.#expectEnd();
    } else if (this.#peek().kind === 'word' && this.#peek().text === 'if') {
      this.#next();
      otherwise = [this.#if(ending.at)];
    } else {
      this.#expectEnd();
      const rest = this.#nodes();
      if (rest.ending === undefined) throw templateError('the {{if}} has no {{end}}', at);
      if (rest.ending.text === 'else')
        throw templateError('a second {{else}} for one {{if}}', rest.ending.at);
      this.#expectEnd();
      otherwise = rest.nodes;
    }
    this.#scope.length = scopeLength;
    this.#depth--;
    return { kind: 'if', condition, then, otherwise };
  }

  /** Parses `pipeline`, `$x := pipeline` or `$x = pipeline`. */
  #statement(): Expression {
    const first = this.#peek();
    const sign = this.#tokens[this.#token + 1];
    if (first.kind !== 'variable' || sign?.kind !== 'symbol' || (sign.text !== ':=' && sign.text !== '=')) {
      return this.#pipeline();
    }
    this.#token += 2;
    const value = this.#pipeline();
    if (sign.text === '=') return { kind: 'assign', slot: this.#slotOf(first), value };
    const slot = this.#variables++;
    this.#scope.push([first.text, slot]);
    return { kind: 'assign', slot, value };
  }

  /** Parses commands joined by `|`; the value of each becomes the last argument of the next. */
  #pipeline(): Expression {
    if (++this.#depth > depthMax) throw templateError(`more than ${depthMax} levels`, this.#peek().at);
    let value = this.#command(undefined);
    while (this.#peek().kind === 'symbol' && this.#peek().text === '|') {
      this.#next();
      value = this.#command(value);
    }
    this.#depth--;
    return value;
  }

  #command(piped: Expression | undefined): Expression {
    const first = this.#peek();
    const name = first.text;
    if (first.kind === 'word' && !['true', 'false', 'nil'].includes(name)) {
      this.#next();
      return this.#call(first, piped);
    }
    const value = this.#operand();
    if (value === 'record')
      throw templateError('"." is the whole record: name a field, such as {{.message}}', first.at);
    if (piped !== undefined) throw templateError('only a function can follow "|"', first.at);
    if (this.#startsOperand(this.#peek())) {
      throw templateError(
        'a value takes no arguments; functions come first, as in {{eq .a "b"}}',
        this.#peek().at,
      );
    }
    return value;
  }

  #call(nameToken: Token, piped: Expression | undefined): Expression {
    const name = nameToken.text;
    const callee = templateFunctions.get(name);
    if (callee === undefined) {
      const names = [...templateFunctions.keys()];
      throw templateError(
        `unknown function "${name}"${nearName(name, names)}; the functions are ${names.join(', ')}; a field begins with a point: .${name}`,
        nameToken.at,
      );
    }
    const values: (Expression | 'record')[] = [];
    while (this.#startsOperand(this.#peek())) values.push(this.#operand());
    if (piped !== undefined) values.push(piped);
    if (values.length < callee.argumentsMin || values.length > callee.argumentsMax) {
      const range =
        callee.argumentsMin === callee.argumentsMax
          ? `${callee.argumentsMin}`
          : `at least ${callee.argumentsMin}`;
      throw templateError(`${name} has ${values.length} arguments, but takes ${range}`, nameToken.at);
    }
    if (name === 'index' && values[0] === 'record') return this.#fieldByKey(values[1]!, nameToken);
    const expressions = values.filter((value) => value !== 'record');
    if (expressions.length < values.length)
      throw templateError('"." is the whole record: name a field, such as .message', nameToken.at);
    if ('stopAt' in callee) return { kind: 'choose', stopAt: callee.stopAt, values: expressions };
    return { kind: 'call', call: callee.call, values: expressions };
  }

  /** Parses `index . "x-request-id"`: a field whose name is not an identifier. */
  #fieldByKey(key: Expression | 'record', nameToken: Token): Expression {
    if (key === 'record' || key.kind !== 'literal' || typeof key.value !== 'string') {
      throw templateError('index of the record needs the name of a field in quotes', nameToken.at);
    }
    return this.#field(key.value);
  }

  #startsOperand(token: Token): boolean {
    return token.kind === 'symbol' ? token.text === '(' || token.text === '.' : token.kind !== 'end';
  }

  #operand(): Expression | 'record' {
    const token = this.#next();
    switch (token.kind) {
      case 'field':
        return this.#behindField(this.#field(token.text));
      case 'variable':
        return this.#behindField({ kind: 'variable', slot: this.#slotOf(token) });
      case 'string':
        return { kind: 'literal', value: token.text };
      case 'number':
        return { kind: 'literal', value: numberLiteral(token) };
      case 'word':
        return this.#wordOperand(token);
      case 'symbol':
        if (token.text === '.') return 'record';
        if (token.text === '(') return this.#parenthesis(token);
        throw templateError(`unexpected "${token.text}"`, token.at);
      case 'end':
        throw templateError('a value is missing', token.at);
    }
  }

  #wordOperand(token: Token): Expression {
    if (token.text === 'true' || token.text === 'false')
      return { kind: 'literal', value: token.text === 'true' };
    if (token.text === 'nil') return { kind: 'literal', value: undefined };
    if (templateFunctions.has(token.text)) {
      throw templateError(`a call among arguments needs parentheses: (${token.text} …)`, token.at);
    }
    throw templateError(
      `unexpected "${token.text}": fields begin with a point, as in .${token.text}`,
      token.at,
    );
  }

  #parenthesis(open: Token): Expression {
    const value = this.#pipeline();
    const close = this.#next();
    if (close.kind !== 'symbol' || close.text !== ')')
      throw templateError('the parenthesis is not closed with ")"', open.at);
    return value;
  }

  /** Rejects `.a.b`: fields are plain values without fields of their own. */
  #behindField(value: Expression): Expression {
    const token = this.#peek();
    const before = this.#tokens[this.#token - 1]!;
    if (token.kind === 'field' && token.at === before.at + before.text.length + 1) {
      throw templateError(
        `".${before.text}" has no fields of its own; write (index . "…") for a key with a point`,
        token.at,
      );
    }
    return value;
  }

  #field(name: string): Expression {
    this.#fields.add(name);
    return { kind: 'field', name };
  }

  #slotOf(token: Token): number {
    const found = this.#scope.findLast(([name]) => name === token.text);
    if (found === undefined) throw templateError(`unknown variable "$${token.text}"`, token.at);
    return found[1];
  }

  #peek(): Token {
    return this.#tokens[this.#token]!;
  }

  #next(): Token {
    const token = this.#tokens[this.#token]!;
    if (token.kind !== 'end') this.#token++;
    return token;
  }

  #expectEnd(): void {
    const token = this.#peek();
    if (token.kind !== 'end') throw templateError(`unexpected ${JSON.stringify(token.text)}`, token.at);
  }
}

function numberLiteral(token: Token): TemplateValue {
  const digits = token.text.replace(/^[+-]/, '');
  const negative = token.text.startsWith('-');
  if (digits.length > digitsMax) throw templateError(`a number has at most ${digitsMax} digits`, token.at);
  if (/^(?:0[xX][0-9a-fA-F]+|\d+)$/.test(digits)) return negative ? -BigInt(digits) : BigInt(digits);
  return Number(token.text);
}
