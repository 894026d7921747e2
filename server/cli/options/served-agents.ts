import {
  type AgentStore,
  type Archive,
  DamageError,
  isLogstrataError,
  type StoreStats,
  type Trouble,
} from '../../../engine/index.js';
import { hasColumns, type AgentDefinition } from '../../../agents/definition/definition.js';
import { formatCount, formatCounted, formatTime } from '../output/figures.js';
import { withProgress } from '../output/progress.js';
import { describeRetention, retentionOf } from './retention.js';

/** An agent that a server answers for. */
export interface ServedAgent {
  /** The definition with all fields (`completed`). */
  readonly definition: AgentDefinition;
  /** The definition as written in the agent's file, which may leave the fields to the files of its archive. */
  readonly written: AgentDefinition;
  readonly store: AgentStore;
}

/** The agents that a server answers for, by name. */
export class ServedAgents<Agent = ServedAgent> extends Map<string, Agent> {
  /**
   * By name, why an agent whose file is valid can't be served: the files of its archive are not there, or can't be used. Every other agent is
   * served. Requests for it are answered with the reason, and it is tried again now and then (`ChangedAgents`).
   */
  readonly leftOut = new Map<string, string>();

  /** The agents that are left out, as reasons why the server is not ready. */
  get troubles(): Trouble[] {
    return [...this.leftOut].map(([agent, reason]) => ({ agent, reason: `it is not served: ${reason}` }));
  }
}

/** Opens the store of every agent with its current fields and retention. Agents whose archives can't be used are left out. */
export async function openAgents(
  archive: Archive,
  definitions: readonly AgentDefinition[],
): Promise<ServedAgents> {
  const served = new ServedAgents();
  for (const definition of definitions) {
    try {
      const complete = await completed(archive, definition);
      const store = await archive.agent(complete.name, complete.schema, retentionOf(complete));
      served.set(complete.name, { definition: complete, written: definition, store });
    } catch (error) {
      if (definition.archive === undefined || !isLogstrataError(error)) throw error;
      served.leftOut.set(definition.name, error.message);
    }
  }
  return served;
}

/**
 * Adds the fields of the archive's files to a definition that lists none. Throws a `ConfigError` where the files have none, and
 * `ArchiveRefusal` where they can't be used.
 *
 * @param looks whether to look at the files also if nothing of them is needed; by default where the agent has no records yet
 */
export async function completed(
  archive: Archive,
  definition: AgentDefinition,
  looks = false,
): Promise<AgentDefinition> {
  const { name, archive: input } = definition;
  if (input === undefined) return definition;
  const isStored = (await archive.agents()).includes(name);
  if (definition.file === undefined && hasColumns(input) && (looks || !isStored)) {
    const { findFiles } = await import('../../../agents/archive/found-files.js');
    await findFiles(input, archive.location, archive.objects);
  }
  // An agent that lists its fields is not opened here: that would be with its stored fields, not with these.
  if (!input.infersFields) return definition;
  const { completedDefinition } = await import('../../../agents/archive/completed-definition.js');
  const stored = isStored ? (await archive.agent(name)).schema : undefined;
  return withProgress(`reading the archive of ${name}`, (progress) =>
    completedDefinition(definition, stored, archive.location, archive.objects, (read, files) =>
      progress.update(read / files, `${formatCount(read)} of ${formatCounted(files, 'file')}`),
    ),
  );
}

/** The number of records of an agent and their times. An agent with damaged records is reported as such: it is not served, the others are. */
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

/** Lines about the agents for the start of a server: fields, records, times, retention, and the notes on their files. */
export async function describeServedAgents(served: ServedAgents): Promise<string[]> {
  const lines: string[] = [];
  for (const { definition, store } of served.values()) {
    const fields = formatCounted(definition.fields.length, 'field');
    lines.push(`agent    ${definition.name}: ${fields}, ${await describeRecords(store)}`);
    lines.push(`         keeps ${describeRetention(definition.retention)}`);
    for (const note of definition.notes) lines.push(`note     ${note}`);
  }
  for (const [name, reason] of served.leftOut) lines.push(`LEFT OUT ${name} is not served: ${reason}`);
  return lines;
}
