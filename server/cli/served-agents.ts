import {
  type AgentStore,
  type Archive,
  DamageError,
  LogstrataError,
  type StoreStats,
} from '../../engine/index.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { formatCounted, formatTime } from './output/figures.js';
import { describeRetention, retentionOf } from './options/retention.js';

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
    requirePossible(definition);
    const store = await archive.agent(definition.name, definition.schema, retentionOf(definition));
    served.set(definition.name, { definition, store });
  }
  return served;
}

/** Throws `unsupported` for an agent whose files are to be answered from where they lie. */
export function requirePossible({ name, path, archive }: AgentDefinition): void {
  if (archive?.mode !== 'in-place') return;
  const message = `${path}: the agent "${name}" has files in place (archive), which is not possible yet`;
  throw new LogstrataError('unsupported', message, { path });
}

/** The records of an agent, or that they are damaged: then this agent is not served, and the others are. */
async function describeRecords(store: AgentStore): Promise<string> {
  let stats: StoreStats;
  try {
    stats = await store.stats();
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    return 'its records are DAMAGED and not served';
  }
  const { records, timeMinMs, timeMaxMs } = stats;
  const times = timeMinMs === null ? '' : `, ${formatTime(timeMinMs)} to ${formatTime(timeMaxMs)} UTC`;
  return `${formatCounted(records, 'record')}${times}`;
}

/** What a server says about its agents when it starts: fields, records, times, and the notes of their files. */
export async function describeAgents(served: ReadonlyMap<string, ServedAgent>): Promise<string[]> {
  const lines: string[] = [];
  for (const { definition, store } of served.values()) {
    const fields = formatCounted(definition.fields.length, 'field');
    lines.push(`agent    ${definition.name}: ${fields}, ${await describeRecords(store)}`);
    lines.push(`         keeps ${describeRetention(definition.retention)}`);
    for (const note of definition.notes) lines.push(`note     ${note}`);
  }
  return lines;
}
