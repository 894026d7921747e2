import type { Column } from '../../columns/column.js';
import { lineKeysOf, type LineKeys, type LineTable } from '../../kernels/json-rows.js';
import type { Schema } from '../../terms/schema.js';
import type { AnswerForm, Query } from '../plan/query.js';

/** A row group as pages are written from it. */
export interface PageTable {
  readonly table: LineTable;
  /** Rows that are known to be too many for one piece. */
  rowsTooMany: number;
}

/** The fields that an answer has, in its order, and what stands before their values. */
export interface WrittenFields {
  readonly schema: Schema;
  /** Their places in the schema. Columns of other fields are not read. */
  readonly fields: readonly number[];
  readonly keys: LineKeys;
  /** Of row groups that are in memory, by the columns of all fields. */
  readonly tables: WeakMap<readonly Column[], PageTable>;
}

const ofSchemas = new WeakMap<Schema, WrittenFields>();
const ofForms = new WeakMap<AnswerForm, WrittenFields>();

/** What the answer to a query is written from: the same object for the same form of the same schema, so that what is made of it is kept. */
export function writtenFields(schema: Schema, { form }: Query): WrittenFields {
  const known = form === undefined ? ofSchemas.get(schema) : ofForms.get(form);
  if (known?.schema === schema) return known;
  const fields = form?.fields ?? schema.fields.map((_, field) => field);
  const names = fields.map((field) => schema.fields[field]!.name);
  const written = { schema, fields, keys: lineKeysOf(names, form?.format), tables: new WeakMap() };
  if (form === undefined) ofSchemas.set(schema, written);
  else ofForms.set(form, written);
  return written;
}
