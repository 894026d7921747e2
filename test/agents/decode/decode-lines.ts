import type { AgentDefinition, FieldDefinition, FileInput } from '../../../agents/definition/definition.js';
import { createRecordDecoder, type RecordDecoderOptions } from '../../../agents/decode/record-decoder.js';
import { BatchBuilder } from '../../../engine/columns/batch-builder.js';
import type { UnreadableField } from '../../../agents/decode/value-writer.js';
import { columnValue } from '../../../engine/columns/column.js';
import type { Value } from '../../model/rows.js';
import { makeSchema } from '../../../engine/core/schema.js';

export interface Decoded {
  readonly rows: Value[][];
  readonly rejected: { readonly reason: string; readonly line: string; readonly start: number }[];
  readonly unreadableValues: number;
  readonly replacedBytes: number;
  readonly nulBytes: number;
  readonly unreadable: UnreadableField[];
  /** What is kept of rejected lines where that is not the line itself. */
  readonly texts: string[];
}

type FieldShape = Partial<FieldDefinition> & { readonly name: string };

export function agent(fields: readonly FieldShape[], file: Partial<FileInput>): AgentDefinition {
  const full = fields.map((field): FieldDefinition => ({ type: 'string', source: field.name, ...field }));
  return {
    name: 'test',
    path: 'agents/test.yaml',
    fields: full,
    schema: makeSchema(full.map(({ name, type }) => ({ name, type }))),
    file: { directory: '/logs', namePattern: '.*', format: 'json', ...file },
    notes: [],
  };
}

export const noon = Date.UTC(2026, 10, 21, 12);

/** Decodes all lines, and checks that the bytes around the range do not matter. */
export function decodeLines(
  definition: AgentDefinition,
  input: string | Uint8Array,
  options: Partial<RecordDecoderOptions> = {},
): Decoded {
  const lines = typeof input === 'string' ? Buffer.from(input) : input;
  const bytes = Buffer.concat([Buffer.from('{"x"\n'), lines, Buffer.from('"\n}1')]);
  const end = 5 + lines.length;
  const decoder = createRecordDecoder(definition, {
    captures: new Map(),
    timezone: 'UTC',
    written: { byMs: noon },
    ...options,
  });
  const builder = new BatchBuilder(definition.schema);
  const rows: Value[][] = [];
  const rejected: { reason: string; line: string; start: number }[] = [];
  const texts: string[] = [];
  for (let at = 5; at < end;) {
    const next = decoder.decode(bytes, at, end, builder, (reason, from, to, text) => {
      if (text !== undefined) texts.push(Buffer.from(text).toString());
      rejected.push({ reason, line: bytes.toString('latin1', from, to), start: from - 5 });
    });
    if ((next <= at && builder.rows === 0) || next > end)
      throw new Error(`the decoder went from ${at} to ${next} of ${end}`);
    at = next;
    const batch = builder.finish();
    for (let row = 0; row < batch.length; row++) {
      rows.push(batch.columns.map((column) => columnValue(column, row)));
    }
  }
  const { unreadableValues, replacedBytes, nulBytes } = decoder.counters;
  const unreadable = decoder.counters.takeFields();
  return { rows, rejected, unreadableValues, replacedBytes, nulBytes, unreadable, texts };
}
