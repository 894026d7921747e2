import { existsSync } from 'node:fs';
import { FailedTokens } from './failed-tokens.js';
import { ListenerGuard } from './listener-guard.js';
import type { Token } from './token.js';
import { TokenFolder } from './token-folder.js';

/** Who may ask a server: the tokens of its data folder, at each of its listeners. */
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

  /** Reads the tokens of an absolute data folder, which need not be there yet. Throws for one that can't be read: it might be one that was revoked. */
  static async open(location: string, log: (message: string) => void): Promise<Access> {
    const access = new Access(location, log);
    await access.reload();
    return access;
  }

  /** Reads the tokens anew. Throws, and goes by those that it has, where one can't be read. */
  async reload(): Promise<readonly Token[]> {
    const tokens = await this.#read();
    this.query.take(tokens);
    this.console.take(tokens);
    return tokens;
  }

  /** A text that changes with the tokens. */
  async fingerprint(): Promise<string> {
    const tokens = await this.#read();
    return tokens.map(({ id, revokedMs }) => `${id} ${revokedMs}`).join('\n');
  }

  async #read(): Promise<Token[]> {
    return existsSync(this.#location) ? (await TokenFolder.open(this.#location)).list() : [];
  }
}
