import {
  functionsOf,
  numberFunctions,
  type Field,
  type NumberAnswer,
  type NumberAnswers,
  type NumberFunction,
} from '../../engine/index.js';
import { badParameter } from './problem.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';

/** Most fields whose numbers one count may ask for. */
const fieldsMax = 4;

/** The fields whose numbers are asked for, and the functions. */
export interface NumbersRequest {
  readonly fields: readonly Field[];
  readonly functions: readonly NumberFunction[];
}

/**
 * Parses the values of `of` and `fn`, each of which may be a list separated by commas; undefined where neither is given. Throws a
 * `ProblemError` (400).
 */
export function parseNumbers(
  ofTexts: readonly string[],
  fnTexts: readonly string[],
  fields: readonly Field[],
): NumbersRequest | undefined {
  const [names, wanted] = [ofTexts, fnTexts].map((texts) => [
    ...new Set(texts.flatMap((text) => text.split(','))),
  ]);
  if (names!.length === 0 && wanted!.length === 0) return undefined;
  if (names!.length === 0)
    throw badParameter('fn', '"fn" tells the numbers of a field: name the field with "of", such as of=bytes');
  const of = names!.map((name) => fieldNamed('of', name, fields));
  if (of.length > fieldsMax)
    throw badParameter('of', `numbers of more than ${fieldsMax} fields in one request`);
  if (wanted!.length === 0)
    throw badParameter(
      'of',
      `"of" needs the numbers to tell of a field: add ${exampleOf(of)}. They are ${listNames(numberFunctions)}`,
    );
  const functions = wanted!.map(functionOf);
  for (const { name, type } of of)
    for (const fn of functions)
      if (!functionsOf(type).includes(fn))
        throw badParameter(
          'fn',
          `field "${name}" is of type ${type} and has no "${fn}": of its values, fn can be ${listNames(functionsOf(type))}`,
        );
  return { fields: of, functions };
}

function exampleOf(fields: readonly Field[]): string {
  return fields.every(({ type }) => functionsOf(type).includes('avg')) ? 'fn=avg,p99' : 'fn=distinct';
}

/** The field with a name among those of the agent. Throws a `ProblemError` (400) that names the parameter. */
export function fieldNamed(parameter: string, name: string, fields: readonly Field[]): Field {
  const found = fields.find((field) => field.name === name);
  if (found !== undefined) return found;
  const known = fields.map((field) => field.name);
  throw badParameter(
    parameter,
    `unknown field ${JSON.stringify(name)}${didYouMean(name, known)}. The fields are ${listNames(known)}`,
  );
}

function functionOf(text: string): NumberFunction {
  const found = numberFunctions.find((fn) => fn === text);
  if (found === undefined)
    throw badParameter(
      'fn',
      `"fn" can be ${listNames(numberFunctions)}, not ${JSON.stringify(text)}${didYouMean(text, numberFunctions)}`,
    );
  return found;
}

/** The numbers of a group as JSON: `{"bytes":{"avg":1.5}}`. */
export function numbersJson({ fields, functions }: NumbersRequest, answers: NumberAnswers): string {
  const ofFields = fields.map(({ name }, i) => {
    const members = functions.map((fn, k) => `${JSON.stringify(fn)}:${numberJson(fn, answers[i]![k]!)}`);
    return `${JSON.stringify(name)}:{${members.join(',')}}`;
  });
  return `{${ofFields.join(',')}}`;
}

/** A sum that a double can't hold exactly is a text; bounds are integers with all digits, like values elsewhere. */
function numberJson(fn: NumberFunction, value: NumberAnswer): string {
  if (typeof value !== 'bigint') return JSON.stringify(value);
  const isText = fn === 'sum' && !Number.isSafeInteger(Number(value));
  return isText ? `"${value}"` : String(value);
}

/** The titles of the columns that a group's numbers have in a table. */
export function numberTitles({ fields, functions }: NumbersRequest): string[] {
  return fields.flatMap(({ name }) => functions.map((fn) => `${name}_${fn}`));
}

/** A group's numbers as cells of a table. A missing one is empty. */
export function numberCells(answers: NumberAnswers): string[] {
  return answers.flat().map((value) => (value === null || !isFiniteNumber(value) ? '' : String(value)));
}

function isFiniteNumber(value: number | bigint): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}
