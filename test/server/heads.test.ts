import { expect, it } from 'vitest';
import { itUnless } from '../needs.js';
import { describeOnTransports, missingUws, serve } from './running.js';
import { piece, ScriptedStore } from './scripted-store.js';
import { ask, shout, Wire } from './wire.js';

const host = 'Host: x\r\n';
const line = 'GET /api/query/nginx HTTP/1.1\r\n';
const two = (): ScriptedStore => new ScriptedStore(() => [piece(1), piece(2)]);

function headers(count: number, bytes = 1): string {
  return Array.from({ length: count }, (_, i) => `H${i}: ${'x'.repeat(bytes)}\r\n`).join('');
}

/** The bytes sent, and the expected status. One number applies to both transports; undefined is a closed connection without answer. */
type Case = readonly [
  what: string,
  packets: string | readonly string[],
  status: number | { readonly node: number | undefined; readonly uws: number | undefined },
];

const refused: readonly Case[] = [
  ['HTTP/0.9', `GET /api/query/nginx HTTP/0.9\r\n${host}\r\n`, 505],
  ['HTTP/0.9 in its original form', 'GET /api/query/nginx\r\n\r\n', 505],
  ['HTTP/1.2', `GET /api/query/nginx HTTP/1.2\r\n${host}\r\n`, { node: 400, uws: 505 }],
  ['HTTP/2.0', `GET /api/query/nginx HTTP/2.0\r\n${host}\r\n`, 505],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', { node: 400, uws: 505 }],
  ['HTTP/3', `GET /api/query/nginx HTTP/3\r\n${host}\r\n`, { node: 400, uws: 505 }],
  ['a method in lowercase', `get /api/query/nginx HTTP/1.1\r\n${host}\r\n`, { node: 400, uws: 405 }],
  ['an unknown method', `FOO /api/query/nginx HTTP/1.1\r\n${host}\r\n`, { node: 400, uws: 405 }],
  ['CONNECT', `CONNECT example.com:80 HTTP/1.1\r\n${host}\r\n`, { node: undefined, uws: 505 }],
  ['a long line', `GET /api/query/nginx?message__like=${'x'.repeat(17_000)} HTTP/1.1\r\n${host}\r\n`, 414],
  [
    'a long line in two packets',
    [`GET /api/query/nginx?message__like=${'x'.repeat(9000)}`, `${'x'.repeat(9000)} HTTP/1.1\r\n${host}\r\n`],
    414,
  ],
  ['a line without an end', `GET /api/query/nginx?message__like=${'x'.repeat(100_000)}`, 431],
  [
    'a line without an end, in packets',
    Array.from({ length: 8 }, (_, i) => `${i === 0 ? 'GET /' : ''}${'x'.repeat(10_000)}`),
    431,
  ],
  ['a long header', `${line}${host}Cookie: ${'x'.repeat(33_000)}\r\n\r\n`, 431],
  ['a header without an end', [`${line}${host}Cookie: `, 'x'.repeat(50_000), 'x'.repeat(50_000)], 431],
  ['many long headers', `${line}${host}${headers(90, 900)}\r\n`, 431],
  ['no Host', `${line}\r\n`, 400],
  ['two Hosts', `${line}${host}${host}\r\n`, 400],
  ['a blank before the colon', `${line}${host}Foo : bar\r\n\r\n`, 400],
  ['a folded header', `${line}${host}Foo: a\r\n b\r\n\r\n`, 400],
  ['a header without a colon', `${line}${host}Foo\r\n\r\n`, 400],
  [
    'a blank in the target',
    `GET /api/query/nginx?message__like=a b HTTP/1.1\r\n${host}\r\n`,
    { node: 400, uws: 505 },
  ],
  ['raw bytes in the target', `GET /api/query/nginx?message__like=\xc3\xa9 HTTP/1.1\r\n${host}\r\n`, 400],
  ['two lengths', `${line}${host}Content-Length: 0\r\nContent-Length: 4\r\n\r\nabcd`, 400],
  ['a length and chunks', `${line}${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ['an invalid length', `${line}${host}Content-Length: +0\r\n\r\n`, 400],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', { node: 400, uws: 505 }],
];

describeOnTransports('on %s', (transport) => {
  it.each(refused)('refuses %s, and closes the connection', async (_what, packets, statuses) => {
    const store = two();
    const { address } = await serve(transport, store);
    const { response } = await shout(address, ...(typeof packets === 'string' ? [packets] : packets));
    const status = typeof statuses === 'number' ? statuses : statuses[transport];
    expect(response?.status).toBe(status);
    if (response !== undefined) expect(response.headers.get('connection')).toBe('close');
    expect(store.begun).toBe(0);
  });

  it('refuses an old version in a request after one of the current version, too', async () => {
    const { address } = await serve(transport, two());
    const wire = await Wire.open(address);
    wire.send(`${line}${host}\r\n`);
    await wire.responses(1);
    wire.send('GET /api/query/nginx HTTP/0.9\r\n\r\n');
    await wire.closed();
    const responses = await wire.responses(2);
    expect(responses.map(({ status }) => status)).toEqual([200, 505]);
  });

  it.each([
    ['', 400],
    [' ', 400],
    ['a b', 400],
    ['a/b', 400],
    ['a@b', 400],
    ['a?b', 400],
    ['a#b', 400],
    ['a\\b', 400],
    ['<a>', 400],
    ['"a"', 400],
    ['a^b', 400],
    ['a|b', 400],
    ['{a}', 400],
    ['a%zz', 400],
    ['a%2', 400],
    ['a\xe9b', 400],
    ['a\tb', 400],
    ['http://a', 400],
    ['a:80:80', 400],
    ['a:b', 400],
    ['a:-1', 400],
    ['a:65536', 400],
    ['a:000080', 400],
    [':80', 400],
    ['::1', 400],
    ['[::1', 400],
    ['[::1]x', 400],
    ['[::1]80', 400],
    ['[1.2.3.4]', 400],
    ['[]', 400],
    ['[fe80::1%25eth0]', 400],
    ['x, x', 400],
    ['x'.repeat(300), 400],
    ['127.0.0.1:2111', 200],
    ['127.0.0.1:', 200],
    ['[::1]:2111', 200],
    ['[2001:db8::1]', 200],
    ['localhost', 200],
    ['LOCALHOST:80', 200],
  ])('answers "Host: %s" with %s', async (name, status) => {
    const hosts: string[] = [];
    const { address } = await serve(transport, two(), { hosts });
    const { response } = await shout(address, `${line}Host: ${name}\r\nConnection: close\r\n\r\n`);
    expect(response?.status).toBe(status);
  });
});

itUnless(missingUws, 'refuses the absolute form of a target on uWebSockets.js', async () => {
  const { address } = await serve('uws', two());
  expect((await ask(address, 'http://127.0.0.1/api/query/nginx?limit=5')).status).toBe(505);
});

it('accepts the absolute form of a target, with a host, on node:http', async () => {
  const { address } = await serve('node', two());
  for (const [target, status] of [
    ['http://127.0.0.1/api/query/nginx?limit=5', 200],
    ['HTTP://127.0.0.1:80/api/query/nginx', 200],
    ['http://127.0.0.1', 404],
    ['http:///api/query/nginx', 400],
    ['http://a@127.0.0.1/api/query/nginx', 400],
    ['http://127.0.0.1:b/api/query/nginx', 400],
    ['http:/api/query/nginx', 400],
    ['ftp://127.0.0.1/api/query/nginx', 400],
    ['api/query/nginx', 400],
  ] as const)
    expect([target, (await ask(address, target)).status]).toEqual([target, status]);
});
