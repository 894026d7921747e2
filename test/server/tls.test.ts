import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { createPrivateKey } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { readCertificate, validityWarning, type Certificate } from '../../server/http/certificate.js';
import type { RunningServer } from '../../server/route/server.js';
import { ownCertificate, type OwnCertificate } from './own-certificate.js';
import { serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { parseResponses } from './wire.js';

const old = ownCertificate('old');
const renewed = ownCertificate('renewed');

/** Writes a certificate and a key to new files. */
function written({ cert, key }: OwnCertificate): { cert: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  return files;
}

function certificate(own: OwnCertificate): Certificate {
  return readCertificate(written(own));
}

function serveTls(store = new ScriptedStore(() => [piece(1), piece(2)])): Promise<RunningServer> {
  return serve('node', store, { certificate: certificate(old) });
}

/** A connection to a server. Without an authority, it accepts any certificate. */
async function open(address: string, authority?: string): Promise<TLSSocket> {
  const socket = connect({
    host: '127.0.0.1',
    port: Number(new URL(address).port),
    ...(authority === undefined ? { rejectUnauthorized: false } : { ca: authority }),
  });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return socket;
}

const words = 'GET /api/query/nginx HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** The bytes that a socket has received until it ended, or until `isEnough` of them. */
function received(socket: TLSSocket, isEnough: (bytes: Buffer) => boolean = () => false): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    const end = (): void => resolve(Buffer.concat(chunks));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isEnough(Buffer.concat(chunks))) end();
    });
    socket.on('error', () => undefined);
    socket.on('close', end);
  });
}

/** Sends one request on a socket that stays open. */
async function askOn(socket: TLSSocket): Promise<number> {
  socket.write(words);
  const isWhole = (bytes: Buffer): boolean => parseResponses(bytes, false)[0]?.isWhole === true;
  const bytes = await received(socket, isWhole);
  socket.removeAllListeners('data');
  return parseResponses(bytes, false)[0]!.status;
}

function commonName(socket: TLSSocket): string {
  return String(socket.getPeerCertificate().subject.CN);
}

it('answers over TLS to clients that trust its certificate', async () => {
  const server = await serveTls();
  expect(server.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(server.transport).toBe('node');
  expect(await askOn(await open(server.address, old.cert))).toBe(200);
  await expect(open(server.address, renewed.cert)).rejects.toThrow();
});

it('gives new connections the renewed certificate, and keeps open connections', async () => {
  const server = await serveTls();
  const kept = await open(server.address);
  expect(await askOn(kept)).toBe(200);
  server.renew(certificate(renewed));
  const fresh = await open(server.address);
  expect(commonName(fresh)).toBe('renewed');
  expect(await askOn(fresh)).toBe(200);
  expect(commonName(kept)).toBe('old');
  expect(await askOn(kept)).toBe(200);
});

it('continues a running answer while the certificate is renewed', async () => {
  let goOn!: () => void;
  const waiting = new Promise<void>((resolve) => (goOn = resolve));
  const store = new ScriptedStore(() => [piece(1), waiting, piece(2)]);
  const server = await serveTls(store);
  const socket = await open(server.address);
  socket.write(words);
  const all = received(socket, (bytes) => parseResponses(bytes, false)[0]?.isWhole === true);
  await until(() => store.begun === 1, 'the scan began');
  server.renew(certificate(renewed));
  goOn();
  const [response] = parseResponses(await all, false);
  expect(response!.body).toEqual(Buffer.concat([piece(1), piece(2)]));
});

it('breaks off an answer that fails, so that it is recognised as incomplete', async () => {
  let fail!: () => void;
  const failing = new Promise<void>((resolve) => (fail = resolve));
  const store = new ScriptedStore(() => [piece(1), failing, new Error('the disk is gone')]);
  const server = await serveTls(store);
  const socket = await open(server.address);
  let ending: string | undefined;
  socket.on('error', (error: NodeJS.ErrnoException) => (ending = error.code));
  // Bytes that are unread when the connection is reset are lost.
  socket.once('data', fail);
  socket.write(words);
  const [response] = parseResponses(await received(socket), false);
  expect(response).toMatchObject({ status: 200, isWhole: false });
  expect(ending).toBe('ECONNRESET');
});

it('does not accept TLS before 1.2, and tells a client that speaks HTTP without TLS what it expects', async () => {
  const { address } = await serveTls();
  const options: RequestOptions = {
    agent: new Agent({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', rejectUnauthorized: false }),
  };
  const failure = await new Promise<unknown>((resolve) =>
    request(`${address}/`, options, (response: IncomingMessage) => resolve(response.statusCode))
      .on('error', resolve)
      .end(),
  );
  expect(failure).toBeInstanceOf(Error);
  const plain = connectPlain({ host: '127.0.0.1', port: Number(new URL(address).port) });
  const chunks: Buffer[] = [];
  plain.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
  plain.write(words);
  await new Promise((resolve) => plain.on('close', resolve));
  const [answer, ...more] = parseResponses(Buffer.concat(chunks), false);
  expect(more).toEqual([]);
  expect(answer).toMatchObject({ status: 400, isWhole: true });
  expect(JSON.parse(answer!.body.toString())).toMatchObject({
    status: 400,
    detail: 'this port expects TLS: begin the address with https://',
  });
  const unknown = connectPlain({ host: '127.0.0.1', port: Number(new URL(address).port) });
  let bytes = 0;
  unknown.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', () => undefined);
  unknown.write(Buffer.alloc(2000, 0xee));
  await new Promise((resolve) => unknown.on('close', resolve));
  // At most a TLS alert.
  expect(bytes).toBeLessThan(20);
});

it('stops although a client has connected and sent nothing', async () => {
  const server = await serveTls();
  const silent = connectPlain({ host: '127.0.0.1', port: Number(new URL(server.address).port) });
  silent.on('error', () => undefined);
  await new Promise((resolve) => silent.on('connect', resolve));
  // Its connection has been accepted by the time that another one is answered.
  await askOn(await open(server.address));
  const closed = new Promise((resolve) => silent.on('close', resolve));
  await server.close({ timeoutMs: 20_000 });
  await closed;
});

it('refuses TLS on uWebSockets.js, and names the transport that supports it', async () => {
  const store = new ScriptedStore(() => []);
  const options = { certificate: certificate(old) };
  await expect(serve('uws', store, options)).rejects.toThrow(/renewed certificate.*use the transport "node"/);
});

it.each([
  ['a missing file', (files: OwnCertificate) => rmSync(files.cert), 'cannot read the certificate'],
  ['no certificate', (files: OwnCertificate) => writeFileSync(files.cert, 'x'), 'contains no certificate'],
  ['no key', (files: OwnCertificate) => writeFileSync(files.key, old.cert), 'contains no private key'],
  [
    "another certificate's key",
    (files: OwnCertificate) => writeFileSync(files.key, renewed.key),
    'does not belong to the certificate',
  ],
  [
    'a key with a passphrase',
    (files: OwnCertificate) =>
      writeFileSync(
        files.key,
        createPrivateKey(old.key).export({
          type: 'pkcs8',
          format: 'pem',
          cipher: 'aes-256-cbc',
          passphrase: 'x',
        }),
      ),
    'has a passphrase',
  ],
])('refuses %s, and names the file', (_what, spoil, message) => {
  const files = written(old);
  spoil(files);
  expect(() => readCertificate(files)).toThrow(message);
  expect(() => readCertificate(files)).toThrow(/logstrata-tls-.*\.pem/);
});

it('warns about a certificate that clients refuse, or soon will', () => {
  const own = certificate(ownCertificate('x', { from: new Date('2026-01-01'), to: new Date('2026-04-01') }));
  const warned = (day: string): string | undefined => validityWarning(own, 'c.pem', Date.parse(day));
  expect(warned('2025-12-31')).toContain('is not valid before 2026-01-01');
  expect(warned('2026-02-01')).toBeUndefined();
  expect(warned('2026-03-25')).toContain('expires on 2026-04-01');
  expect(warned('2026-04-01')).toContain('expired on 2026-04-01');
});
