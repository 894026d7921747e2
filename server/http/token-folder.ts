import { hash, randomBytes } from 'node:crypto';
import {
  closing,
  choiceField,
  countField,
  DamageError,
  isAgentName,
  listField,
  LogstrataError,
  parseJsonObject,
  textField,
  textOrNullField,
  type JsonObject,
  type Directory,
  isLogstrataError,
  openRealDirectory,
  type ReadableFile,
} from '../../engine/index.js';
import { tokenFileBytesMax, tokensMax } from './http-limits.js';

/** The listeners of a server: `query` has the one route for queries, `console` the routes for operators. */
export const listenerNames = ['query', 'console'] as const;

export type ListenerName = (typeof listenerNames)[number];

/** The stored facts of a token. Times are milliseconds since the epoch. */
export interface Token {
  /** Eight hexadecimal digits that name the token in commands and logs. The id is not secret. */
  readonly id: string;
  /** SHA-256 of the whole text (`digestOf`), 32 bytes. */
  readonly digest: Buffer;
  /** What the token is for, as entered by the user; null where nothing was entered. */
  readonly name: string | null;
  /** The agents that its holder may query; null for all. */
  readonly agents: readonly string[] | null;
  /** The listeners that accept it. */
  readonly listeners: readonly ListenerName[];
  readonly createdMs: number;
  /** Null where it does not expire. */
  readonly expiresMs: number | null;
  /** Null where it was not revoked. */
  readonly revokedMs: number | null;
}

const idPattern = /^[0-9a-f]{8}$/;

/** The text begins with the name of the program, so that a token found in a log shows what it gives access to. */
const textPattern = /^logstrata_([0-9a-f]{8})_[A-Za-z0-9_-]{43}$/;

/** Whether a text has the form of a token's id. */
export function isTokenId(text: string): boolean {
  return idPattern.test(text);
}

/** Makes the text of a new token from a random id and 256 random bits. */
export function newTokenText(): { readonly id: string; readonly text: string } {
  const id = randomBytes(4).toString('hex');
  return { id, text: `logstrata_${id}_${randomBytes(32).toString('base64url')}` };
}

/** The id in a token's text; undefined where the text does not have the form of a token. */
export function tokenIdOf(text: string): string | undefined {
  return textPattern.exec(text)?.[1];
}

/**
 * SHA-256 of a token's text. A slow hash protects passwords, of which an attacker can try many; 2^256 random secrets can't be tried
 * at any speed. A slow hash would also cost the server a tenth of a second for each request, whoever sends it.
 */
export function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Version of the format that this program writes. */
const version = 1;

/** Encodes a token as the JSON content of its file. Times are ISO 8601 in UTC. */
export function tokenFileBytes(token: Token): Buffer {
  const { digest, name, agents, listeners, createdMs, expiresMs, revokedMs } = token;
  const content = {
    version,
    sha256: digest.toString('hex'),
    name,
    agents,
    listeners,
    created: textOfTime(createdMs),
    expires: textOfTime(expiresMs),
    revoked: textOfTime(revokedMs),
  };
  return Buffer.from(`${JSON.stringify(content, undefined, 2)}\n`);
}

/** Parses the content of the file of the token `id`. Throws `damaged`; `unsupported` for a version that a newer program wrote. */
export function parseTokenFile(id: string, text: string): Token {
  const object = parseJsonObject(text, 'the token file');
  const written = countField(object, 'version');
  if (written !== version)
    throw new LogstrataError(
      'unsupported',
      `it has version ${written} of the token file format, but this program supports version ${version}`,
    );
  return {
    id,
    digest: digestField(object),
    name: textOrNullField(object, 'name'),
    agents: agentsField(object),
    listeners: listenersField(object),
    createdMs: timeField(object, 'created'),
    expiresMs: timeOrNullField(object, 'expires'),
    revokedMs: timeOrNullField(object, 'revoked'),
  };
}

function textOfTime(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString();
}

function digestField(object: JsonObject): Buffer {
  const text = textField(object, 'sha256');
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  throw new DamageError('"sha256" should be 64 hexadecimal digits', {});
}

/** Null means all agents. It has to be written: a missing member is damage, and must not widen the rights of the token. */
function agentsField(object: JsonObject): readonly string[] | null {
  if (object['agents'] === null) return null;
  return listField(object, 'agents').map((agent) => {
    if (typeof agent === 'string' && isAgentName(agent)) return agent;
    throw new DamageError('"agents" should be a list of names, or null', {});
  });
}

function listenersField(object: JsonObject): readonly ListenerName[] {
  return listField(object, 'listeners').map((_, i) =>
    choiceField(object['listeners'] as JsonObject, String(i), listenerNames),
  );
}

function timeField(object: JsonObject, key: string): number {
  const timeMs = Date.parse(textField(object, key));
  if (Number.isNaN(timeMs)) throw new DamageError(`"${key}" should be a time`, {});
  return timeMs;
}

function timeOrNullField(object: JsonObject, key: string): number | null {
  return object[key] === null ? null : timeField(object, key);
}

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
  private constructor(private readonly directory: Directory) {}

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
    if (ids.length > tokensMax) throw tooMany(this.directory.location);
    const tokens: Token[] = [];
    for (const id of ids) tokens.push(await this.#read(id));
    return tokens.sort((a, b) => a.createdMs - b.createdMs);
  }

  /** The listeners that require a token: one has been made for them since the tokens were last cleared. */
  async listeners(): Promise<ListenerName[]> {
    const names = await this.directory.list('');
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
      await this.directory.syncDirectory('');
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
    if ((await this.#ids()).length >= tokensMax) throw tooMany(this.directory.location);
    // Before the token: a command that ends in between must not leave the listener open to everybody once the token is lost.
    await this.require(wanted.listeners);
    await this.directory.makeDirectory(folderName);
    for (;;) {
      const { id, text } = newTokenText();
      const token = { ...wanted, id, digest: digestOf(text) };
      const written = await this.#writeAside(token);
      try {
        // Unlike a rename, a link fails where a token with this id exists, instead of replacing it.
        await this.directory.link(written, pathOf(id));
      } catch (error) {
        if (isLogstrataError(error) && error.code === 'exists') continue;
        throw error;
      } finally {
        await this.directory.remove(written);
      }
      await this.directory.syncDirectory(folderName);
      return { token, text };
    }
  }

  /** Revokes a token at `nowMs`, and returns it. A token that is revoked already keeps its time. Throws `not_found`. */
  async revoke(id: string, nowMs: number): Promise<Token> {
    const token = await this.#read(id);
    if (token.revokedMs !== null) return token;
    const revoked = { ...token, revokedMs: nowMs };
    await this.directory.rename(await this.#writeAside(revoked), pathOf(id));
    await this.directory.syncDirectory(folderName);
    return revoked;
  }

  /** Replaces all tokens by those of `source`, and the listeners that require one; used to update a copy of a data folder. */
  async copy(source: TokenFolder): Promise<void> {
    const tokens = await source.list();
    const listeners = [...(await source.listeners()), ...tokens.flatMap((token) => token.listeners)];
    await this.require(listeners);
    const over = (await this.#ids()).filter((id) => !tokens.some((token) => token.id === id));
    if (tokens.length > 0) await this.directory.makeDirectory(folderName);
    for (const token of tokens) {
      const path = pathOf(token.id);
      if (this.directory.replacesWhole === true) await this.#write(path, tokenFileBytes(token), fileMode);
      else await this.directory.rename(await this.#writeAside(token), path);
    }
    for (const id of over) await this.directory.remove(pathOf(id));
    if (tokens.length > 0 || over.length > 0) await this.directory.syncDirectory(folderName);
    await this.#open(listenerNames.filter((listener) => !listeners.includes(listener)));
  }

  /** Removes all tokens. Afterwards no token is needed. */
  async clear(): Promise<void> {
    await this.directory.removeDirectory(folderName);
    await this.#open(listenerNames);
  }

  async #open(listeners: readonly ListenerName[]): Promise<void> {
    for (const listener of listeners) await this.directory.remove(markerOf(listener));
    await this.directory.syncDirectory('');
  }

  async #ids(): Promise<string[]> {
    const names = await this.directory.list(folderName);
    return names
      .filter((name) => name.endsWith(fileEnding))
      .map((name) => name.slice(0, -fileEnding.length))
      .filter(isTokenId);
  }

  async #read(id: string): Promise<Token> {
    const path = pathOf(id);
    const absolute = `${this.directory.location}/${path}`;
    const file = await this.directory.openRead(path);
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
    await this.directory.remove(path);
    await this.#write(path, tokenFileBytes(token), fileMode);
    return path;
  }

  async #write(path: string, bytes: Uint8Array, mode?: number): Promise<void> {
    await closing(this.directory.create(path, mode), async (file) => {
      await file.write(0, bytes);
      await file.sync();
    });
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
