import { existsSync } from 'node:fs';
import { FailedTokens } from './failed-tokens.js';
import { ListenerGuard } from './listener-guard.js';
import type { Token } from './token.js';
import { TokenFolder } from './token-folder.js';

/** The tokens of a data folder, which decide who may use the query listener and the console of a server. */
export class Access {
  readonly query: ListenerGuard;
  readonly console: ListenerGuard;
  readonly #location: string;

  private constructor(location: string, log: (message: string) => void) {
    const failed = new FailedTokens(log);
    this.query = new ListenerGuard('query', failed);
    this.console = new ListenerGuard('console', failed);
    this.#location = location;
  }

  /**
   * Reads the tokens of the data folder at an absolute path; a missing folder has none. Throws where a token can't be read, as it
   * might be a revoked one.
   */
  static async open(location: string, log: (message: string) => void): Promise<Access> {
    const access = new Access(location, log);
    await access.reload();
    return access;
  }

  /** Reads the tokens again. Throws where one can't be read, and keeps the tokens that were read before. */
  async reload(): Promise<readonly Token[]> {
    const tokens = await this.#read();
    this.query.take(tokens);
    this.console.take(tokens);
    return tokens;
  }

  /** A text that differs whenever a token was added, removed or revoked. Throws like `reload`. */
  async fingerprint(): Promise<string> {
    const tokens = await this.#read();
    return tokens.map(({ id, revokedMs }) => `${id} ${revokedMs}`).join('\n');
  }

  async #read(): Promise<Token[]> {
    return existsSync(this.#location) ? (await TokenFolder.open(this.#location)).list() : [];
  }
}
