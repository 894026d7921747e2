import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { delimitedSteps } from '../../../agents/decode/delimited-steps.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { readAgentFile } from '../../../agents/definition/agent-file.js';
import { root } from '../../tidy/source-files.js';

const nginx = readAgentFile(join(root, 'agents/nginx.yaml'));

function fieldsOf(line: string): Record<string, unknown> {
  const description = describeLine(nginx, line, { timezone: 'UTC', now: Date.now });
  if (description.outcome !== 'record') throw new Error(`${line} becomes no record`);
  return Object.fromEntries(description.fields.map(({ name, value }) => [name, value]));
}

const head = '203.0.113.9 - - [24/Nov/2026:05:00:01 +0000]';

/** Lines that nginx 1.22 writes for requests that it refuses before they are read completely. */
const refused: [request: string, status: number, fields: Record<string, unknown>][] = [
  // TLS on a port that does not use it.
  [String.raw`\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\xB2\x22`, 400, {}],
  // An RDP scanner, with blanks; and a port that was opened and closed again.
  [String.raw`\x03\x00\x00/*\xE0\x00\x00\x00\x00\x00Cookie: mstshash=Administr`, 400, {}],
  ['', 400, {}],
  // A client whose headers took too long.
  ['-', 408, {}],
  ['get / http/1.1', 400, {}],
  ['GET /a b HTTP/1.1', 400, {}],
  // A request line that is too long has no closing quote.
  [`GET /${'a'.repeat(9000)}`, 414, { method: 'GET', path: `/${'a'.repeat(9000)}`, protocol: null }],
  ['GET /.git/config HTTP/1.1', 403, { method: 'GET', path: '/.git/config', protocol: 'HTTP/1.1' }],
  ['PRI * HTTP/2.0', 400, { method: 'PRI', path: '*', protocol: 'HTTP/2.0' }],
];

describe('the shipped agent for nginx', () => {
  it.each(refused)('reads %j as status %i', (request, status, fields) => {
    const whole = { method: null, path: null, protocol: null, request, ...fields };
    const expected = 'method' in fields ? { ...whole, request: null } : whole;
    const record = fieldsOf(`${head} "${request}" ${status} 157 "-" "-"`);
    expect(record).toMatchObject({ ...expected, status: BigInt(status), remote_addr: '203.0.113.9' });
    expect(record['message']).toBe(
      `${'method' in fields ? `${String(record['method'])} ${String(record['path'])}` : `${request} `} ${status}`,
    );
  });

  it('accepts a quote after a backslash, as Apache writes it', () => {
    const record = fieldsOf(String.raw`${head} "GET /x\"y HTTP/1.1" 404 153`);
    expect(record).toMatchObject({ request: String.raw`GET /x\"y HTTP/1.1`, status: 404n, bytes: 153n });
  });

  it('has a pattern by which kernels split most lines', () => {
    expect(delimitedSteps(nginx.file!.regex!, ['time', 'status'])).not.toBeNull();
  });
});
