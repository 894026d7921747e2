import { hash, randomBytes } from 'node:crypto';

/** Where a server listens: `query` answers the one route, `console` what operators need. */
export const listenerNames = ['query', 'console'] as const;

export type ListenerName = (typeof listenerNames)[number];

/** What is kept of a token. Times are milliseconds since the epoch. */
export interface Token {
  /** Eight hexadecimal digits, by which people and logs name it. It is no secret. */
  readonly id: string;
  /** Of the whole text, 32 bytes. */
  readonly digest: Buffer;
  /** Who or what it is for; null where that was not said. */
  readonly name: string | null;
  /** The agents that it may ask; null for all of them. */
  readonly agents: readonly string[] | null;
  readonly listeners: readonly ListenerName[];
  readonly createdMs: number;
  /** Null for never. */
  readonly expiresMs: number | null;
  readonly revokedMs: number | null;
}

const idPattern = /^[0-9a-f]{8}$/;

/** The text begins with the program's name, so that who finds one in a log knows what it opens. */
const textPattern = /^logstrata_([0-9a-f]{8})_[A-Za-z0-9_-]{43}$/;

/** Whether a text has the form of what a token is called. */
export function isTokenId(text: string): boolean {
  return idPattern.test(text);
}

/** A new token as its holder has it: an identity of its own, and 256 random bits. */
export function newTokenText(): { readonly id: string; readonly text: string } {
  const id = randomBytes(4).toString('hex');
  return { id, text: `logstrata_${id}_${randomBytes(32).toString('base64url')}` };
}

/** Which token a text claims to be; undefined where it has not the form of one. */
export function tokenIdOf(text: string): string | undefined {
  return textPattern.exec(text)?.[1];
}

/**
 * SHA-256 of a token's text. A slow hash protects passwords, which are few enough to be tried; nobody tries 2^256 secrets, at any speed.
 * To the server it would cost a tenth of a second of each request, also of those that anybody may send.
 */
export function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
