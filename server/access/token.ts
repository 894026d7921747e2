import { hash, randomBytes } from 'node:crypto';

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
