import { type AnswerForm, type LineFormat, lineFormats, type Schema } from '../../engine/index.js';
import { badParameter } from '../http/problem.js';
import { didYouMean, listNames } from './suggestion.js';

/** The decoded values of the parameters that say what an answer looks like. */
export interface GivenForm {
  readonly fields: string | undefined;
  readonly format: string | undefined;
}

/** The form that a request asks for; undefined for JSON Lines with all fields. Throws a `ProblemError` that names the parameter. */
export function parseAnswerForm({ fields, format }: GivenForm, schema: Schema): AnswerForm | undefined {
  if (fields === undefined && format === undefined) return undefined;
  return {
    format: format === undefined ? 'jsonl' : parseFormat(format),
    fields: fields === undefined ? null : parseFields(fields, schema),
  };
}

function parseFormat(text: string): LineFormat {
  const format = lineFormats.find((known) => known === text);
  if (format !== undefined) return format;
  throw badParameter(
    'format',
    `"format" must be one of ${lineFormats.join(', ')}, not ${JSON.stringify(text)}${didYouMean(text, lineFormats)}`,
  );
}

/** Indexes of the named fields, in the order in which they are named. An empty text names none: then records have their cursors alone. */
function parseFields(text: string, schema: Schema): number[] {
  const names = schema.fields.map((field) => field.name);
  const fields: number[] = [];
  for (const name of text === '' ? [] : text.split(',')) {
    const field = names.indexOf(name);
    if (field < 0) throw badParameter('fields', unknownField(name, names));
    if (fields.includes(field)) throw badParameter('fields', `"fields" names ${JSON.stringify(name)} twice`);
    fields.push(field);
  }
  return fields;
}

function unknownField(name: string, names: readonly string[]): string {
  if (name === '_cursor') return '"fields" names "_cursor", which every record has anyway: remove it';
  return (
    `unknown field ${JSON.stringify(name)} in "fields"${didYouMean(name, names)}: ` +
    `it takes field names separated by commas. The fields are ${listNames(names)}`
  );
}
