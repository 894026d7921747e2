import { describe, expect, it } from 'vitest';
import { wholeAnswerBytesMax } from '../../server/http/http-limits.js';
import { missingUws, serve } from './running.js';
import { itUnless } from '../needs.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { shout, Wire } from './wire.js';

const pieceBytes = 128 * 1024;
const pieces = wholeAnswerBytesMax / pieceBytes;

/** That many pieces, which arrive one after another. */
const many = new ScriptedStore(({ limit }) => Array.from({ length: limit }, (_, i) => piece(i, pieceBytes)));

function old(rest: string, method = 'GET'): string {
  return `${method} /api/query/nginx${rest}`;
}

describe('HTTP/1.0 on node:http', () => {
  it.each([
    ['without a Host', '?limit=1 HTTP/1.0\r\n\r\n', 1],
    ['with a Host', '?limit=1 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n', 1],
    ['that accepts gzip', '?limit=2 HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n', 2],
    ['for no records', '?limit=0 HTTP/1.0\r\n\r\n', 0],
    ['for the maximum', `?limit=${pieces} HTTP/1.0\r\n\r\n`, pieces],
  ])('is answered with a length, and the connection is closed: %s', async (_what, rest, count) => {
    const { address } = await serve('node', many);
    const { response, wire } = await shout(address, old(rest));
    expect(response).toMatchObject({ status: 200, isWhole: true });
    expect(response!.headers.get('content-length')).toBe(String(count * pieceBytes));
    expect(response!.headers.get('connection')).toBe('close');
    expect(response!.body).toEqual(
      Buffer.concat(Array.from({ length: count }, (_, i) => piece(i, pieceBytes))),
    );
    expect(wire.ending).toBe('end');
  });

  it('is refused if the answer is longer, with a hint to proxy_http_version', async () => {
    const { address } = await serve('node', many);
    const { response } = await shout(address, old(`?limit=${pieces + 1} HTTP/1.0\r\n\r\n`));
    expect(response?.status).toBe(505);
    expect(JSON.parse(response!.body.toString())).toMatchObject({
      detail: expect.stringContaining('proxy_http_version 1.1') as unknown,
    });
    await until(() => many.ended === many.begun, 'the scan ended');
  });

  it('keeps a connection with keep-alive, and answers HEAD', async () => {
    const { address } = await serve('node', many);
    const wire = await Wire.open(address);
    const kept = '?limit=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
    for (const count of [1, 2]) {
      wire.send(old(kept));
      expect((await wire.responses(count)).at(-1)).toMatchObject({ status: 200, isWhole: true });
    }
    wire.socket.destroy();
    const { wire: head } = await shout(address, old('?limit=1 HTTP/1.0\r\n\r\n', 'HEAD'));
    expect(head.text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/);
  });

  it('has its Host header checked if it has one', async () => {
    const { address } = await serve('node', many);
    const { response } = await shout(address, old('?limit=1 HTTP/1.0\r\nHost: evil.example\r\n\r\n'));
    expect(response?.status).toBe(421);
  });
});

itUnless(missingUws, 'HTTP/1.0 is refused on uWebSockets.js', async () => {
  const { address } = await serve('uws', many);
  const { response } = await shout(address, old('?limit=1 HTTP/1.0\r\nHost: x\r\n\r\n'));
  expect(response?.status).toBe(505);
});
