import {
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
} from '../../engine/index.js';
import { listenerNames, type ListenerName, type Token } from './token.js';

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
