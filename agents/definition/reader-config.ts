import { dirname, resolve } from 'node:path';
import { readerLagMsMax } from '../../engine/index.js';
import { durationShape, parseDuration } from './duration.js';
import type { YamlSection } from './yaml-section.js';

/** For a server that stores nothing itself: the server whose archive it answers from; `server.reader` in `config.yaml`. */
export interface ReaderConfig {
  /** Address of the console of the writing server. */
  readonly writer: string;
  /** Absolute path of a file with a token for it; null for none. */
  readonly tokenFile: string | null;
  /** Absolute path of the CA certificates, PEM, for the writer's certificate; null for those of Node. */
  readonly caFile: string | null;
  /** How long information from the writer about its agents is valid, in milliseconds. */
  readonly lagMs: number;
}

const lagMsDefault = 1000;
const addressShape = 'the address of the console of the server that writes, such as https://logs-1:2112';

/** Reads `server.reader`; null where there is none. */
export function readReader(server: YamlSection, path: string): ReaderConfig | null {
  const section = server.section('reader', ['writer', 'token_file', 'ca_file', 'lag']);
  if (section === undefined) return null;
  if (!section.has('writer')) section.missing('writer', addressShape);
  const writer = section.parsed('writer', addressShape, parseAddress) ?? '';
  const file = (key: string): string | null => {
    const text = section.text(key);
    if (text === '') section.problem(section.placeOf(key), `${key} must name a file, not be empty`);
    return text === undefined ? null : resolve(dirname(path), text);
  };
  const caFile = file('ca_file');
  if (caFile !== null && writer.startsWith('http:'))
    section.problem(section.placeOf('ca_file'), 'ca_file is for a writer that is asked over https');
  const lagShape = `${durationShape}, at most ${readerLagMsMax / 1000}s`;
  const parseLag = (text: string): number | undefined => {
    const lagMs = parseDuration(text);
    return lagMs === undefined || lagMs > readerLagMsMax ? undefined : lagMs;
  };
  return {
    writer,
    tokenFile: file('token_file'),
    caFile,
    lagMs: section.parsed('lag', lagShape, parseLag) ?? lagMsDefault,
  };
}

/** Parses an address of scheme, host and port. */
function parseAddress(text: string): string | undefined {
  if (!/^https?:\/\/[^\s/?#@]+\/?$/i.test(text) || !URL.canParse(text)) return undefined;
  return new URL(text).origin;
}
