import {
  type Directory,
  isLogstrataError,
  LogstrataError,
  openRealDirectory,
  type ReadableFile,
} from '../../engine/index.js';
import { tokenFileBytesMax, tokensMax } from './access-limits.js';
import { digestOf, isTokenId, newTokenText, type Token } from './token.js';
import { parseTokenFile, tokenFileBytes } from './token-file.js';

/** In the data folder, which a service may write to where its configuration is not its own. No agent has this name. */
const folderName = '.tokens';
const fileEnding = '.json';

/** Only who the data belong to reads them: they name the programs that ask, and what may be asked. */
const fileMode = 0o600;

/**
 * The tokens of a data folder, each a file of its own: so of two commands at once neither undoes what the other did. A file appears and
 * changes in one step, with its content on the disk. A revoked or expired token stays: were the last one to go, all would be let in.
 */
export class TokenFolder {
  readonly #directory: Directory;

  private constructor(directory: Directory) {
    this.#directory = directory;
  }

  /** The tokens of the data folder at an absolute path, which is made where it is missing and `create` says so. Throws `not_found`, `io`. */
  static async open(location: string, options?: { readonly create: boolean }): Promise<TokenFolder> {
    return new TokenFolder(await openRealDirectory(location, options));
  }

  /** The tokens of a copy of a data folder. */
  static of(directory: Directory): TokenFolder {
    return new TokenFolder(directory);
  }

  /** All tokens, in the order in which they were made. Throws for one that can't be read: it might be one that was revoked. */
  async list(): Promise<Token[]> {
    const ids = await this.#ids();
    if (ids.length > tokensMax) throw tooMany(this.#directory.location);
    const tokens: Token[] = [];
    for (const id of ids) tokens.push(await this.#read(id));
    return tokens.sort((a, b) => a.createdMs - b.createdMs);
  }

  /** How many tokens there are, those included that can't be read. */
  async count(): Promise<number> {
    return (await this.#ids()).length;
  }

  /** Makes a token, and gives its text, of which only the digest is kept. Throws `limit`, `io`, `disk_full`. */
  async add(wanted: Omit<Token, 'id' | 'digest'>): Promise<{ readonly token: Token; readonly text: string }> {
    if ((await this.#ids()).length >= tokensMax) throw tooMany(this.#directory.location);
    await this.#directory.makeDirectory(folderName);
    for (;;) {
      const { id, text } = newTokenText();
      const token = { ...wanted, id, digest: digestOf(text) };
      const written = await this.#write(token);
      try {
        // Unlike a rename this takes no other token's place.
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

  /** Takes a token's rights away at `nowMs`, and gives it; one that is revoked stays so. Throws `not_found`. */
  async revoke(id: string, nowMs: number): Promise<Token> {
    const token = await this.#read(id);
    if (token.revokedMs !== null) return token;
    const revoked = { ...token, revokedMs: nowMs };
    await this.#directory.rename(await this.#write(revoked), pathOf(id));
    await this.#directory.syncDirectory(folderName);
    return revoked;
  }

  /** Has these tokens and no others: of a copy. */
  async replace(tokens: readonly Token[]): Promise<void> {
    const over = (await this.#ids()).filter((id) => !tokens.some((token) => token.id === id));
    if (tokens.length > 0) await this.#directory.makeDirectory(folderName);
    for (const token of tokens) {
      const written = await this.#write(token);
      if (written !== pathOf(token.id)) await this.#directory.rename(written, pathOf(token.id));
    }
    for (const id of over) await this.#directory.remove(pathOf(id));
    if (tokens.length > 0 || over.length > 0) await this.#directory.syncDirectory(folderName);
  }

  /** Removes every token. From then on none is asked for. */
  async clear(): Promise<void> {
    await this.#directory.removeDirectory(folderName);
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
      // A newer program can read one that is unsupported.
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

  /** Writes a token to a file of another name, unless one is replaced in one step, durably, and gives its path. What a crash leaves of it is no token. */
  async #write(token: Token): Promise<string> {
    const isWhole = this.#directory.replacesWhole === true;
    const path = isWhole ? pathOf(token.id) : `${folderName}/${token.id}.${process.pid}.new`;
    if (!isWhole) await this.#directory.remove(path);
    const file = await this.#directory.create(path, fileMode);
    try {
      await file.write(0, tokenFileBytes(token));
      await file.sync();
    } finally {
      await file.close();
    }
    return path;
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
    `there are ${tokensMax} tokens in ${location}/${folderName}, which is the most: remove files of revoked ones there`,
  );
}
