import { assertNever } from '../../engine/index.js';
import { lexTemplate, parseTemplate, type Expression, type TemplateNode } from './template-parser.js';
import { isTrue, lengthOf, textOf, type TemplateValue, stepsOfCall, TemplateWork } from './template-value.js';

/** Returns a parsed field's text, or undefined where the line has no such field. */
export type FieldSource = (name: string) => string | undefined;

/** A compiled template. */
export interface Template {
  /** The distinct parsed fields that the template uses. */
  readonly fields: readonly string[];
  /** Set where the template consists only of texts with fields between them. */
  readonly flat: FlatTemplate | undefined;
  /**
   * Renders the template. A missing field is the empty string. Throws `TemplateOverrun` where `work` has no steps left; a
   * flat template takes none, since its output is only its texts and fields.
   */
  render(get: FieldSource, work?: TemplateWork): string;
}

/** The usual kind of template: texts with fields between them. `texts` has one element more than `names`. */
export interface FlatTemplate {
  readonly texts: readonly string[];
  readonly names: readonly string[];
}

/**
 * Compiles a template in the syntax of Go's text/template (https://pkg.go.dev/text/template), as far as it is meaningful for
 * the plain values of a line: `{{.field}}`, `if`, `else`, `end`, variables, pipelines, parentheses, comments, trimming, and
 * the functions of `template-functions.ts`. Throws `invalid` with the position in the template.
 */
export function compileTemplate(text: string): Template {
  const { nodes, fields, variables } = parseTemplate(lexTemplate(text));
  const flat = flatten(nodes);
  if (flat !== undefined) return { fields, flat, render: (get) => renderFlat(flat, get) };
  return {
    fields,
    flat,
    render: (get, work = new TemplateWork()) =>
      renderNodes(nodes, { get, work, variables: new Array<TemplateValue>(variables) }),
  };
}

function flatten(nodes: readonly TemplateNode[]): FlatTemplate | undefined {
  const texts = [''];
  const names: string[] = [];
  for (const node of nodes) {
    if (node.kind === 'text') {
      texts[texts.length - 1] += node.text;
    } else if (node.kind === 'print' && node.value.kind === 'field') {
      names.push(node.value.name);
      texts.push('');
    } else {
      return undefined;
    }
  }
  return { texts, names };
}

function renderFlat(template: FlatTemplate, get: FieldSource): string {
  const { texts, names } = template;
  let text = texts[0]!;
  for (let i = 0; i < names.length; i++) text += (get(names[i]!) ?? '') + texts[i + 1]!;
  return text;
}

interface Frame {
  readonly get: FieldSource;
  readonly work: TemplateWork;
  readonly variables: TemplateValue[];
}

function renderNodes(nodes: readonly TemplateNode[], frame: Frame): string {
  let text = '';
  for (const node of nodes) {
    switch (node.kind) {
      case 'text':
        frame.work.take(node.text.length);
        text += node.text;
        break;
      case 'print': {
        const value = evaluate(node.value, frame);
        frame.work.take(lengthOf(value));
        text += textOf(value);
        break;
      }
      case 'set':
        evaluate(node.value, frame);
        break;
      case 'if':
        text += renderNodes(isTrue(evaluate(node.condition, frame)) ? node.then : node.otherwise, frame);
        break;
      default:
        assertNever(node);
    }
  }
  return text;
}

function evaluate(expression: Expression, frame: Frame): TemplateValue {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'field': {
      const value = frame.get(expression.name);
      frame.work.take(stepsOfCall + lengthOf(value));
      return value;
    }
    case 'variable':
      return frame.variables[expression.slot];
    case 'assign':
      return (frame.variables[expression.slot] = evaluate(expression.value, frame));
    case 'choose':
      return choose(expression.stopAt, expression.values, frame);
    case 'call': {
      const { work } = frame;
      work.take(stepsOfCall);
      const values: TemplateValue[] = [];
      for (const argument of expression.values) {
        const value = evaluate(argument, frame);
        work.take(lengthOf(value));
        values.push(value);
      }
      const result = expression.call(values, work);
      work.take(lengthOf(result));
      return result;
    }
    default:
      return assertNever(expression);
  }
}

/**
 * `and` gives the first value that is not true, `or` the first that is; if there is none, both give the last. Later values
 * are not evaluated.
 */
function choose(stopAt: boolean, values: readonly Expression[], frame: Frame): TemplateValue {
  let result: TemplateValue;
  for (const value of values) {
    result = evaluate(value, frame);
    if (isTrue(result) === stopAt) return result;
  }
  return result;
}
