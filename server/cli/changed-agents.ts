import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readAgents, type AgentsFolder } from '../../agents/definition/agent-file.js';
import type { Collection } from '../../agents/collect/collection.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { formatProblem } from '../../agents/definition/config-error.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { Archive } from '../../engine/index.js';
import { agentOfFile, retentionOf } from './options.js';
import { fingerprintOfFile, messageOf, type RereadCause, type Rereadable } from './rereading.js';
import { completed, type ServedAgent, type ServedAgents } from './opened-archive.js';

/** What the changes are applied to. */
export interface ChangedAgentsOptions {
  readonly archive: Archive;
  /** The agents that are served by name. The map is changed when agents change. */
  readonly served: ServedAgents;
  /** Undefined where nothing is collected. */
  readonly collection: Collection | undefined;
  readonly folder: string;
  readonly log: CollectLog;
}

/**
 * Applies changes of the agents' folder to a running server: adds, changes and removes agents. An invalid file is reported, and its agent
 * stays unchanged.
 */
export class ChangedAgents implements Rereadable {
  constructor(private readonly options: ChangedAgentsOptions) {}

  async fingerprint(): Promise<string> {
    return fingerprintOf(this.options.folder);
  }

  async reread(cause: RereadCause): Promise<void> {
    const { archive, folder, log, served } = this.options;
    let found: AgentsFolder;
    try {
      found = readAgents(folder, archive.location);
    } catch (error) {
      log.error({ cause }, `${messageOf(error)}. All agents stay unchanged`);
      return;
    }
    const broken = new Set(found.problems.map(({ file }) => agentOfFile(file)));
    for (const problem of found.problems) {
      const agent = agentOfFile(problem.file);
      const rest = served.has(agent) ? 'it stays unchanged' : 'it is not served';
      log.error({ agent, cause }, `${formatProblem(problem)}: ${rest}`);
    }
    const counts = { added: 0, changed: 0, removed: 0, refused: broken.size };
    for (const definition of found.agents) {
      const before = served.get(definition.name);
      if (before !== undefined && isDeepStrictEqual(before.written, definition)) continue;
      if (!(await this.take(definition, before))) counts.refused++;
      else if (before === undefined) counts.added++;
      else counts.changed++;
    }
    const names = new Set(found.agents.map(({ name }) => name));
    for (const name of served.leftOut.keys()) if (!names.has(name)) served.leftOut.delete(name);
    for (const name of [...served.keys()]) {
      if (names.has(name) || broken.has(name)) continue;
      await this.remove(name);
      counts.removed++;
    }
    log.info({ cause, ...counts }, 'the agents were reloaded');
  }

  /** Tries again to serve the agents that are left out. */
  async retry(): Promise<void> {
    const { archive, folder, served } = this.options;
    if (served.leftOut.size === 0) return;
    try {
      for (const definition of readAgents(folder, archive.location).agents)
        if (served.leftOut.has(definition.name)) await this.take(definition, undefined);
    } catch {
      // The folder can't be read. It is reported when the agents are reloaded.
    }
  }

  /**
   * Serves and collects an agent by its current file. Where that fails, logs it and returns false; the agent stays unchanged, or is left
   * out if it is not served.
   */
  private async take(written: AgentDefinition, before: ServedAgent | undefined): Promise<boolean> {
    const { archive, served, collection, log } = this.options;
    const { name, notes } = written;
    await collection?.remove(name);
    try {
      const definition = await completed(archive, written, before === undefined);
      const store = await archive.redefine(name, definition.schema, retentionOf(definition));
      const taken = { definition, written, store };
      served.set(name, taken);
      served.leftOut.delete(name);
      await collection?.add(taken);
      for (const note of notes) log.info({ agent: name }, note);
      const facts = { agent: name, fields: definition.fields.length };
      log.info(facts, before === undefined ? 'an agent was added' : 'an agent was changed');
      return true;
    } catch (error) {
      const reason = messageOf(error);
      const rest = before === undefined ? 'it is not served' : 'it stays unchanged';
      if (served.leftOut.get(name) !== reason) log.error({ agent: name }, `${reason}: ${rest}`);
      if (before === undefined) served.leftOut.set(name, reason);
      else await collection?.add(before);
      return false;
    }
  }

  /** Removes an agent. Its stored records are kept, and no retention applies to them any more. */
  private async remove(name: string): Promise<void> {
    const { archive, served, collection, log } = this.options;
    const { store } = served.get(name)!;
    await collection?.remove(name);
    served.delete(name);
    await archive.redefine(name, store.schema, undefined);
    log.info({ agent: name }, 'an agent was removed; its records stay stored');
  }
}

/** A text that differs whenever a file of the folder has changed. */
function fingerprintOf(folder: string): string {
  try {
    const files = readdirSync(folder).sort();
    return files.map((file) => `${file} ${fingerprintOfFile(join(folder, file))}`).join('\n');
  } catch (error) {
    return messageOf(error);
  }
}
