import { lineFormatOf, type AgentDefinition } from '../definition/definition.js';
import { JsonValues } from './json-values.js';
import { MultilineRecords, type RecordEnds, singleLines } from './line-framing.js';

/** How an agent's lines form records. */
export function recordEndsOf(definition: AgentDefinition): RecordEnds {
  const lines = lineFormatOf(definition);
  if (lines?.values !== undefined) return new JsonValues(lines.values.records);
  return lines?.multiline === undefined ? singleLines : new MultilineRecords(lines.multiline);
}
