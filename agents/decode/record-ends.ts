import { isOfContainers, lineFormatOf, type AgentDefinition } from '../definition/definition.js';
import { ContainerRecords } from './container-records.js';
import { JsonValues } from './json-values.js';
import { MultilineRecords, type RecordEnds, singleLines } from './line-framing.js';

/** How an agent's lines form records. */
export function recordEndsOf(definition: AgentDefinition): RecordEnds {
  const lines = lineFormatOf(definition);
  if (lines?.values !== undefined) return new JsonValues(lines.values.records);
  if (lines !== undefined && isOfContainers(lines)) return new ContainerRecords(lines);
  return lines?.multiline === undefined ? singleLines : new MultilineRecords(lines.multiline);
}
