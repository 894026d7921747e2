import { nearName } from '../../engine/index.js';
import { templateFunctions, type CalledFunction } from './template-functions.js';
import { templateError, type TemplatePiece, type Token } from './template-lexer.js';
import { digitsMax, type TemplateValue } from './template-value.js';

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
  readonly #pieces: readonly TemplatePiece[];
  readonly #fields = new Set<string>();
  /** Variables in scope with their slots, innermost last. */
  readonly #scope: [name: string, slot: number][] = [];
  #variables = 0;
  #piece = 0;
  #tokens: readonly Token[] = [];
  #token = 0;
  #depth = 0;

  constructor(pieces: readonly TemplatePiece[]) {
    this.#pieces = pieces;
  }

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
    while (ending === undefined && this.#piece < this.#pieces.length) {
      const piece = this.#pieces[this.#piece++]!;
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
