import { existsSync } from 'node:fs';
import { FailedTokens } from './failed-tokens.js';
import { ListenerGuard } from './listener-guard.js';
import { listenerNames, type ListenerName, type Token } from './token.js';
import { TokenFolder } from './token-folder.js';

/** What a data folder says of who may ask. */
interface Rights {
  readonly tokens: readonly Token[];
  /** The listeners that require a token. */
  readonly listeners: readonly ListenerName[];
}

/** The tokens of a data folder, which decide who may use the query listener and the console of a server. */
export class Access {
  readonly query: ListenerGuard;
  readonly console: ListenerGuard;
  readonly #location: string;
  readonly #log: (message: string) => void;

  private constructor(location: string, log: (message: string) => void) {
    const failed = new FailedTokens(log);
    this.query = new ListenerGuard('query', failed);
    this.console = new ListenerGuard('console', failed);
    this.#location = location;
    this.#log = log;
  }

  /**
   * Reads the tokens of the data folder at an absolute path; a folder that is still to be made has none. Throws where a token can't be read,
   * as it might be a revoked one.
   */
  static async open(location: string, log: (message: string) => void): Promise<Access> {
    const access = new Access(location, log);
    await access.reload();
    return access;
  }

  /** Reads the tokens again. Throws where one can't be read or the data folder is gone, and keeps the tokens that were read before. */
  async reload(): Promise<readonly Token[]> {
    const { tokens, listeners } = await this.#read();
    for (const guard of [this.query, this.console]) guard.take(tokens, listeners);
    for (const listener of listenerNames) {
      if (tokens.some((token) => token.listeners.includes(listener))) await this.#remember(listener);
      else if (listeners.includes(listener))
        this.#log(
          `the ${listener} listener requires a token, as tokens were made for it, but their files are missing in ${this.#location}/.tokens: ` +
            'restore them, make a token with "logstrata token new", or let everybody in with "logstrata token clear"',
        );
    }
    return tokens;
  }

  /** Tokens that were copied into the folder, or made by an earlier version, came without the file that says that one is required. */
  async #remember(listener: ListenerName): Promise<void> {
    try {
      await (await TokenFolder.open(this.#location)).require([listener]);
    } catch (error) {
      this.#log(
        `${error instanceof Error ? error.message : String(error)}: if the tokens are lost, the ${listener} listener will not require any`,
      );
    }
  }

  /** A text that differs whenever a token was added, removed or revoked, or all were cleared. Throws like `reload`. */
  async fingerprint(): Promise<string> {
    const { tokens, listeners } = await this.#read();
    return [...tokens.map(({ id, revokedMs }) => `${id} ${revokedMs}`), ...listeners].join('\n');
  }

  async #read(): Promise<Rights> {
    // A folder that is still to be made has no tokens; one that is gone, such as an unmounted disk, does not make those here invalid.
    const isNew = !existsSync(this.#location) && !this.query.isClosed && !this.console.isClosed;
    if (isNew) return { tokens: [], listeners: [] };
    const folder = await TokenFolder.open(this.#location);
    return { tokens: await folder.list(), listeners: await folder.listeners() };
  }
}
