import { lineKeysOf, type LineKeys } from '../../kernels/json-rows.js';
import type { Schema } from '../../terms/schema.js';
import type { AnswerForm, Query } from '../plan/query.js';

/** The fields of an answer in its order, and the keys of their values. */
export interface WrittenFields {
  readonly schema: Schema;
  /** Indices of the fields in the schema. Columns of other fields are not read. */
  readonly fields: readonly number[];
  readonly keys: LineKeys;
}

const ofSchemas = new WeakMap<Schema, WrittenFields>();
const ofForms = new WeakMap<AnswerForm, WrittenFields>();

/** The fields of the answer to a query. Returns the same object for the same form and schema, so that tables made from it can be reused. */
export function writtenFields(schema: Schema, { form }: Query): WrittenFields {
  const known = form === undefined ? ofSchemas.get(schema) : ofForms.get(form);
  if (known?.schema === schema) return known;
  const fields = form?.fields ?? schema.fields.map((_, field) => field);
  const names = fields.map((field) => schema.fields[field]!.name);
  const written = { schema, fields, keys: lineKeysOf(names, form?.format) };
  if (form === undefined) ofSchemas.set(schema, written);
  else ofForms.set(form, written);
  return written;
}
