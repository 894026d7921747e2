import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Collection } from '../../agents/collect/collection.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { readAgents, type AgentsFolder } from '../../agents/definition/agent-file.js';
import { formatProblem } from '../../agents/definition/config-error.js';
import type { TlsFiles } from '../../agents/definition/config.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { Archive } from '../../engine/index.js';
import type { Access } from '../http/access.js';
import { readCertificate, validityWarning, type Certificate } from '../http/certificate.js';
import { completed, type ServedAgent, type ServedAgents } from './opened-archive.js';
import { agentOfFile, retentionOf, type Settings } from './options.js';

/** Why something is read again: a signal, or a change of the watched files. */
export type RereadCause = 'SIGHUP' | 'watch';

/** A part of the configuration that a running server can read again. */
export interface Rereadable {
  /** A text that differs whenever the source has changed. */
  fingerprint(): Promise<string>;
  /** Reads the source again and applies it. Never rejects: errors are logged, and the previous state stays. */
  reread(cause: RereadCause): Promise<void>;
  /** Tries again what has failed. Called now and then. Never rejects. */
  retry?(): Promise<void>;
}

/** Milliseconds between two checks of watched files. Notifications of the system are not used, as some file systems send none. */
const watchMs = 2000;

/** Milliseconds between two attempts at what has failed. */
const retryMs = 60_000;

/** Reads things again at SIGHUP and, where watching is on, when they have changed. */
export class Rereading {
  #working: Promise<void> = Promise.resolve();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #onSignal = (): void => this.#next(() => this.around(() => this.#rereadAll()));

  /** @param around wraps the work that a signal causes, to report it to the service manager */
  constructor(
    private readonly things: readonly Rereadable[],
    private readonly around: (work: () => Promise<void>) => Promise<void>,
  ) {}

  /** Starts to listen for SIGHUP and, with `watch`, to watch. Changes after this has resolved are noticed. */
  async listen(watch: boolean): Promise<void> {
    process.on('SIGHUP', this.#onSignal);
    this.#every(retryMs, async () => {
      for (const thing of this.things) await thing.retry?.();
    });
    if (!watch) return;
    const seen = new Map<Rereadable, string>();
    await this.#look(seen);
    this.#every(watchMs, () => this.#look(seen));
  }

  #every(ms: number, work: () => Promise<void>): void {
    this.#timers.push(setInterval(() => this.#next(work), ms).unref());
  }

  /** Stops listening, and waits for the current reading. Afterwards SIGHUP ends the process, as by default. */
  async close(): Promise<void> {
    process.off('SIGHUP', this.#onSignal);
    this.#timers.forEach(clearInterval);
    await this.#working;
  }

  /** Queues work, so that only one runs at a time. */
  #next(work: () => Promise<void>): void {
    this.#working = this.#working.then(work);
  }

  async #rereadAll(): Promise<void> {
    for (const thing of this.things) await thing.reread('SIGHUP');
  }

  /** Reads the things again whose fingerprint has changed. The first call only takes the fingerprints. */
  async #look(seen: Map<Rereadable, string>): Promise<void> {
    for (const thing of this.things) {
      const before = seen.get(thing);
      const now = await thing.fingerprint().catch(messageOf);
      seen.set(thing, now);
      if (before !== undefined && before !== now) await thing.reread('watch');
    }
  }
}

/** A text that differs whenever the file has changed. */
export function fingerprintOfFile(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'gone' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
}

/** The message of an error, for a log. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The tokens of a running server, which are reloaded when they change. */
export function changedTokens(access: Access, log: CollectLog): Rereadable {
  return {
    fingerprint: () => access.fingerprint(),
    reread: async (cause) => {
      try {
        const tokens = await access.reload();
        log.info({ cause, tokens: tokens.length }, 'the tokens were reloaded');
      } catch (error) {
        log.error({ cause }, `${messageOf(error)}: the tokens stay unchanged`);
      }
    },
  };
}

/** A certificate, and the listeners that use it. */
export class OwnCertificate implements Rereadable {
  readonly #files: TlsFiles;
  readonly #log: CollectLog;
  #current: Certificate;
  readonly #listeners: { renew(certificate: Certificate): void }[] = [];

  /** Reads the certificate. Throws a `LogstrataError` that says what is wrong with it. */
  constructor(files: TlsFiles, log: CollectLog) {
    this.#files = files;
    this.#log = log;
    this.#current = readCertificate(files, true);
    this.#warn();
  }

  /** The certificate as it was read last. */
  get current(): Certificate {
    return this.#current;
  }

  /** Adds a listener, which gets the certificates that are read later. */
  isOf(listener: { renew(certificate: Certificate): void }): void {
    this.#listeners.push(listener);
  }

  async fingerprint(): Promise<string> {
    const { cert, key } = this.#files;
    return `${fingerprintOfFile(cert)} ${fingerprintOfFile(key)}`;
  }

  /** Reads the certificate again. Open connections keep the old one. Where it can't be read, that is logged and the old one stays. */
  reread(cause: RereadCause): Promise<void> {
    const { cert } = this.#files;
    try {
      this.#current = readCertificate(this.#files);
      for (const listener of this.#listeners) listener.renew(this.#current);
      const { names, expiresMs } = this.#current;
      this.#log.info(
        { cause, cert, names, until: new Date(expiresMs).toISOString() },
        'the certificate was reloaded',
      );
      this.#warn();
    } catch (error) {
      this.#log.error({ cause, cert }, `${messageOf(error)}: the certificate stays unchanged`);
    }
    return Promise.resolve();
  }

  #warn(): void {
    const warning = validityWarning(this.#current, this.#files.cert, Date.now());
    if (warning !== undefined) this.#log.warn({}, warning);
  }
}

/** The certificates of the query listener and the console, which may be the same object; undefined where a listener does not use TLS. */
export interface OwnCertificates {
  readonly query: OwnCertificate | undefined;
  readonly console: OwnCertificate | undefined;
  /** Each certificate once. It passes itself on to all its listeners. */
  readonly all: readonly OwnCertificate[];
}

/** Reads the certificates of the configuration. Throws a `LogstrataError` that says what is wrong with one. */
export function readCertificates({ config: { server } }: Settings, log: CollectLog): OwnCertificates {
  const query = server.tls === null ? undefined : new OwnCertificate(server.tls, log);
  const console = server.consoleTls === null ? query : new OwnCertificate(server.consoleTls, log);
  return { query, console, all: [...new Set([query, console])].filter((each) => each !== undefined) };
}

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
    const { folder } = this.options;
    const files = (await readdir(folder)).sort();
    return files.map((file) => `${file} ${fingerprintOfFile(join(folder, file))}`).join('\n');
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
