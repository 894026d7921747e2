import {
  type Directory,
  isLogstrataError,
  LogstrataError,
  openRealDirectory,
  type ReadableFile,
} from '../../engine/index.js';
import { tokenFileBytesMax, tokensMax } from './access-limits.js';
import { digestOf, isTokenId, listenerNames, newTokenText, type ListenerName, type Token } from './token.js';
import { parseTokenFile, tokenFileBytes } from './token-file.js';

/**
 * Subfolder of the data folder: a service can write there, while its configuration may belong to another user. No agent can have
 * this name.
 */
const folderName = '.tokens';
const fileEnding = '.json';

/** Only the owner may read the files: they say which programs query what. */
const fileMode = 0o600;

/**
 * File of the data folder that says that a listener requires a token, whatever has become of the tokens. Its name has no dot in front, so that
 * a copy made with `cp -r data/*` has it, and begins with a character with which no agent's name does.
 */
function markerOf(listener: ListenerName): string {
  return `_${listener}-requires-token`;
}

const markerText =
  'This listener requires a token, even if the folder .tokens is missing. "logstrata token clear" removes this file.\n';

/**
 * The tokens of a data folder. Each token has a file of its own, so that two commands at the same time do not undo each other's
 * changes. A file is created or replaced atomically, once its content is durable. Revoked and expired tokens are kept, for `token list`. A
 * listener for which a token was made requires one until `clear`, also where the files of the tokens are lost.
 */
export class TokenFolder {
  readonly #directory: Directory;

  private constructor(directory: Directory) {
    this.#directory = directory;
  }

  /** Opens the tokens of the data folder at an absolute path. Creates a missing folder where `create` is set. Throws `not_found`, `io`. */
  static async open(location: string, options?: { readonly create: boolean }): Promise<TokenFolder> {
    return new TokenFolder(await openRealDirectory(location, options));
  }

  /** The tokens in `directory`, which is a copy of a data folder. */
  static of(directory: Directory): TokenFolder {
    return new TokenFolder(directory);
  }

  /**
   * All tokens, oldest first. Throws where a token can't be read, as it might be a revoked one. Throws `limit` for more than
   * `tokensMax`.
   */
  async list(): Promise<Token[]> {
    const ids = await this.#ids();
    if (ids.length > tokensMax) throw tooMany(this.#directory.location);
    const tokens: Token[] = [];
    for (const id of ids) tokens.push(await this.#read(id));
    return tokens.sort((a, b) => a.createdMs - b.createdMs);
  }

  /** The listeners that require a token: one has been made for them since the tokens were last cleared. */
  async listeners(): Promise<ListenerName[]> {
    const names = await this.#directory.list('');
    return listenerNames.filter((listener) => names.includes(markerOf(listener)));
  }

  /** Makes listeners require a token until `clear`, durably. */
  async require(listeners: readonly ListenerName[]): Promise<void> {
    const known = await this.listeners();
    for (const listener of new Set(listeners)) {
      if (known.includes(listener)) continue;
      try {
        await this.#write(markerOf(listener), Buffer.from(markerText));
      } catch (error) {
        // Another command has just made it.
        if (!isLogstrataError(error) || error.code !== 'exists') throw error;
      }
      await this.#directory.syncDirectory('');
    }
  }

  /** Number of token files, unreadable ones included. */
  async count(): Promise<number> {
    return (await this.#ids()).length;
  }

  /**
   * Creates a token. Returns it with its text, which is stored nowhere: the file has only the digest. Throws `limit`, `io`,
   * `disk_full`.
   */
  async add(wanted: Omit<Token, 'id' | 'digest'>): Promise<{ readonly token: Token; readonly text: string }> {
    if ((await this.#ids()).length >= tokensMax) throw tooMany(this.#directory.location);
    // Before the token: a command that ends in between must not leave the listener open to everybody once the token is lost.
    await this.require(wanted.listeners);
    await this.#directory.makeDirectory(folderName);
    for (;;) {
      const { id, text } = newTokenText();
      const token = { ...wanted, id, digest: digestOf(text) };
      const written = await this.#writeAside(token);
      try {
        // Unlike a rename, a link fails where a token with this id exists, instead of replacing it.
        await this.#directory.link(written, pathOf(id));
      } catch (error) {
        if (isLogstrataError(error) && error.code === 'exists') continue;
        throw error;
      } finally {
        await this.#directory.remove(written);
      }
      await this.#directory.syncDirectory(folderName);
      return { token, text };
    }
  }

  /** Revokes a token at `nowMs`, and returns it. A token that is revoked already keeps its time. Throws `not_found`. */
  async revoke(id: string, nowMs: number): Promise<Token> {
    const token = await this.#read(id);
    if (token.revokedMs !== null) return token;
    const revoked = { ...token, revokedMs: nowMs };
    await this.#directory.rename(await this.#writeAside(revoked), pathOf(id));
    await this.#directory.syncDirectory(folderName);
    return revoked;
  }

  /** Replaces all tokens by those of `source`, and the listeners that require one; used to update a copy of a data folder. */
  async copy(source: TokenFolder): Promise<void> {
    const tokens = await source.list();
    const listeners = [...(await source.listeners()), ...tokens.flatMap((token) => token.listeners)];
    await this.require(listeners);
    const over = (await this.#ids()).filter((id) => !tokens.some((token) => token.id === id));
    if (tokens.length > 0) await this.#directory.makeDirectory(folderName);
    for (const token of tokens) {
      const path = pathOf(token.id);
      if (this.#directory.replacesWhole === true) await this.#write(path, tokenFileBytes(token), fileMode);
      else await this.#directory.rename(await this.#writeAside(token), path);
    }
    for (const id of over) await this.#directory.remove(pathOf(id));
    if (tokens.length > 0 || over.length > 0) await this.#directory.syncDirectory(folderName);
    await this.#open(listenerNames.filter((listener) => !listeners.includes(listener)));
  }

  /** Removes all tokens. Afterwards no token is needed. */
  async clear(): Promise<void> {
    await this.#directory.removeDirectory(folderName);
    await this.#open(listenerNames);
  }

  async #open(listeners: readonly ListenerName[]): Promise<void> {
    for (const listener of listeners) await this.#directory.remove(markerOf(listener));
    await this.#directory.syncDirectory('');
  }

  async #ids(): Promise<string[]> {
    const names = await this.#directory.list(folderName);
    return names
      .filter((name) => name.endsWith(fileEnding))
      .map((name) => name.slice(0, -fileEnding.length))
      .filter(isTokenId);
  }

  async #read(id: string): Promise<Token> {
    const path = pathOf(id);
    const absolute = `${this.#directory.location}/${path}`;
    const file = await this.#directory.openRead(path);
    try {
      return parseTokenFile(id, await textOf(file));
    } catch (error) {
      if (!isLogstrataError(error) || error.path !== undefined) throw error;
      // An unsupported file may be fine for a newer program, so it should not be removed.
      const remedy = error.code === 'unsupported' ? '' : ': remove it and make another token';
      throw new LogstrataError(
        error.code,
        `the token file ${absolute} can't be used: ${error.message}${remedy}`,
        {
          path: absolute,
          cause: error,
        },
      );
    } finally {
      await file.close();
    }
  }

  /**
   * Writes a token durably under a temporary name, and returns its path for the caller to link or rename. A temporary file that a crash
   * leaves behind is ignored.
   */
  async #writeAside(token: Token): Promise<string> {
    const path = `${folderName}/${token.id}.${process.pid}.new`;
    await this.#directory.remove(path);
    await this.#write(path, tokenFileBytes(token), fileMode);
    return path;
  }

  async #write(path: string, bytes: Uint8Array, mode?: number): Promise<void> {
    const file = await this.#directory.create(path, mode);
    try {
      await file.write(0, bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

function pathOf(id: string): string {
  return `${folderName}/${id}${fileEnding}`;
}

async function textOf(file: ReadableFile): Promise<string> {
  const bytes = await file.read(0, tokenFileBytesMax + 1);
  if (bytes.length > tokenFileBytesMax)
    throw new LogstrataError('limit', `it has more than ${tokenFileBytesMax} bytes`);
  return new TextDecoder().decode(bytes);
}

function tooMany(location: string): LogstrataError {
  return new LogstrataError(
    'limit',
    `there are already ${tokensMax} tokens in ${location}/${folderName}, the maximum: remove the files of revoked tokens there`,
  );
}
