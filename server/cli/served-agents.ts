import type { AgentStore, Archive } from '../../engine/archive.js';
import type { AgentDefinition } from '../../agents/definition.js';
import { formatCounted, formatTime } from './figures.js';
import { describeRetention } from './retention.js';

/** One agent that a server answers for. */
export interface ServedAgent {
  readonly definition: AgentDefinition;
  readonly store: AgentStore;
}

/** Opens the store of every agent under its current fields. */
export async function openAgents(
  archive: Archive,
  definitions: readonly AgentDefinition[],
): Promise<Map<string, ServedAgent>> {
  const served = new Map<string, ServedAgent>();
  for (const definition of definitions) {
    const store = await archive.agent(definition.name, definition.schema, definition.retention);
    served.set(definition.name, { definition, store });
  }
  return served;
}

/** What a server says about its agents when it starts: fields, records, times, and the notes of their files. */
export async function describeAgents(served: ReadonlyMap<string, ServedAgent>): Promise<string[]> {
  const lines: string[] = [];
  for (const { definition, store } of served.values()) {
    const stats = await store.stats();
    const fields = formatCounted(definition.fields.length, 'field');
    const times =
      stats.timeMinMs === null
        ? ''
        : `, ${formatTime(stats.timeMinMs)} to ${formatTime(stats.timeMaxMs)} UTC`;
    lines.push(`agent    ${definition.name}: ${fields}, ${formatCounted(stats.records, 'record')}${times}`);
    lines.push(`         keeps ${describeRetention(definition.retention)}`);
    for (const note of definition.notes) lines.push(`note     ${note}`);
  }
  return lines;
}
