import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { listenerNames, type Token, TokenFolder } from '../../server/http/token-folder.js';
import { ownCertificate } from '../server/own-certificate.js';
import { run } from './here.js';
import { fetchAlone, start, workFolder, type Running } from './process.js';

const anyPorts = ['--listen', '127.0.0.1:0', '--console', '127.0.0.1:0'];

interface Served {
  readonly process: Running;
  readonly route: string;
  readonly console: string;
}

async function serve(folder: string, words: readonly string[] = anyPorts): Promise<Served> {
  const process = start(folder, ['serve', '--no-follow', ...words]);
  await process.shows('serving ');
  const [, operators] = /^viewer {3}(\S+)$/m.exec(process.output())!;
  const [, route] = /^serving {2}(\S+)\/api/m.exec(process.output())!;
  return { process, route: route!, console: operators! };
}

async function stop({ process }: Served): Promise<string> {
  process.child.kill('SIGTERM');
  const { code, stderr } = await process.finished;
  expect(code).toBe(0);
  return stderr;
}

/** Creates a token, and returns the printed one. */
async function newToken(
  folder: string,
  ...words: string[]
): Promise<{ text: string; id: string; said: string }> {
  const { code, stdout, stderr } = await run(folder, ['token', 'new', ...words]);
  expect(code).toBe(0);
  const text = stdout.trimEnd();
  return { text, id: text.split('_')[1]!, said: stderr };
}

/** Creates a token without starting a process. */
async function madeToken(
  folder: string,
  rights: Partial<Omit<Token, 'id' | 'digest'>> = {},
): Promise<{ text: string; id: string }> {
  const tokens = await TokenFolder.open(join(folder, 'data/store'), { create: true });
  const { text, token } = await tokens.add({
    name: null,
    agents: null,
    listeners: listenerNames,
    createdMs: Date.now(),
    expiresMs: null,
    revokedMs: null,
    ...rights,
  });
  return { text, id: token.id };
}

const bearer = (text: string): Record<string, string> => ({ authorization: `Bearer ${text}` });

describe('logstrata token', () => {
  it('creates tokens that a server accepts after SIGHUP, until they are revoked', async () => {
    const folder = workFolder();
    const served = await serve(folder);
    const status = async (address: string, path: string, text?: string): Promise<number> =>
      (await fetchAlone(`${address}${path}`, text === undefined ? {} : bearer(text))).status;
    const reload = async (count: number): Promise<void> => {
      served.process.child.kill('SIGHUP');
      await served.process.shows(`"tokens":${count},"msg":"the tokens were reloaded"`);
    };
    const query = '/api/query/app?limit=1';
    expect(await status(served.route, query)).toBe(200);
    const first = await newToken(folder, '--name', 'grafana', '--agent', 'nginx', 'ap');
    expect(first.said).toContain('there is no agent "ap" yet (did you mean "app"?)');
    expect(first.said).toContain(`token ${first.id} is for nginx, ap at both listeners, until `);
    expect(first.said).toContain('It is the first token for the query listener, which requires a token');
    // Until SIGHUP, the server requires no token.
    expect(await status(served.route, query)).toBe(200);
    await reload(1);
    expect(await status(served.route, query)).toBe(401);
    expect(await status(served.route, query, first.text)).toBe(403);
    expect(await status(served.route, '/api/query/nginx', first.text)).toBe(200);
    const second = await newToken(folder, '--listener', 'query', '--expires', 'never');
    expect(second.said).not.toContain('the first');
    await reload(2);
    expect(await status(served.route, query, second.text)).toBe(200);
    expect(await status(served.console, query, second.text)).toBe(401);
    expect(await status(served.console, '/api/schema/nginx', first.text)).toBe(200);
    expect(await status(served.console, '/livez')).toBe(200);
    const revoked = await run(folder, ['token', 'revoke', first.id]);
    expect(revoked.stdout).toContain(`revoked  ${first.id} (grafana) at `);
    served.process.child.kill('SIGHUP');
    while ((await status(served.route, '/api/query/nginx', first.text)) !== 401)
      await new Promise((resolve) => setTimeout(resolve, 20));
    // The commands that read files directly need no token.
    expect((await run(folder, ['query', 'nginx', '--limit', '1'])).code).not.toBe(2);
    expect(await stop(served)).toContain('127.0.0.1 has sent a wrong token');
  });

  it('says that a server that watches its files needs no signal', async () => {
    const folder = workFolder();
    const { said } = await newToken(folder);
    expect(said).toContain('A running server reads it when it receives SIGHUP.');
    writeFileSync(join(folder, 'config.yaml'), 'watch: true\n');
    const { id, said: then } = await newToken(folder);
    expect(then).toContain('A running server reads it within seconds.');
    for (const words of [
      ['revoke', id],
      ['clear', '--yes'],
    ]) {
      const { stdout } = await run(folder, ['token', ...words]);
      expect(stdout).toMatch(/a running server applies it within seconds$/m);
    }
  });

  it('lists tokens, and deletes all of them only on confirmation', async () => {
    const folder = workFolder();
    const { id } = await madeToken(folder, { name: 'a script', expiresMs: Date.now() + 86_400_000 });
    const { text } = await madeToken(folder, {
      agents: ['app'],
      listeners: ['console'],
      createdMs: Date.now() + 1,
    });
    const list = await run(folder, ['token', 'list']);
    const [, , ...rows] = list.stdout.trimEnd().split('\n');
    expect(rows[0]).toMatch(new RegExp(`^${id} +a script +all +both +.* in force$`));
    expect(rows[1]).toMatch(/ - +app +console .* for ever +in force$/);
    for (const line of list.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(list.stdout).not.toContain(text.slice(20));
    const json = JSON.parse((await run(folder, ['token', 'list', '--json'])).stdout) as object[];
    expect(json).toMatchObject([
      { id, agents: null },
      { agents: ['app'], expiresMs: null },
    ]);
    const refused = await run(folder, ['token', 'clear']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('this removes 2 tokens');
    expect((await run(folder, ['token', 'clear', '--yes'])).stdout).toContain('removed  2 tokens');
    expect((await run(folder, ['token', 'list'])).stdout).toContain('require none');
  });

  it.each([
    [['token', 'new', '--expires', 'soon'], 'It is "never", or a duration'],
    [['token', 'new', '--agent', 'a/b'], 'It is not a valid agent name'],
    [['token', 'revoke', 'grafana'], 'eight hexadecimal digits'],
  ])('refuses %j', async (words, complaint) => {
    const { code, stderr } = await run(workFolder(), words);
    expect(code).toBe(2);
    expect(stderr).toContain(complaint);
  });
});

it('a listener that other machines can reach warns if there are no tokens, and the console is disabled', async () => {
  const folder = workFolder();
  const open = await serve(folder, ['--listen', '0.0.0.0:0', '--console', '127.0.0.1:0']);
  expect(await stop(open)).toContain('everybody who reaches this machine can query it');
  const refused = await run(folder, ['serve', '--console', '0.0.0.0:0']);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('logstrata token new --listener console');
  await madeToken(folder);
  const closed = await serve(folder, ['--listen', '0.0.0.0:0', '--console', '0.0.0.0:0']);
  expect((await fetchAlone(`${closed.console}/api/agents`)).status).toBe(401);
  expect(await stop(closed)).toContain('tokens and records cross the network unencrypted');
  writeFileSync(join(folder, 'config.yaml'), 'server: { trusted_proxies: 127.0.0.1 }\n');
  const behindProxy = await serve(folder, ['--listen', '0.0.0.0:0', '--console', '127.0.0.1:0']);
  expect(await stop(behindProxy)).not.toContain('"level":40');
});

it('a server does not start with an invalid token file, and keeps its tokens if the file becomes invalid', async () => {
  const folder = workFolder();
  const { text, id } = await madeToken(folder);
  const served = await serve(folder);
  const path = join(folder, 'data/store/.tokens', `${id}.json`);
  writeFileSync(path, '{');
  served.process.child.kill('SIGHUP');
  await served.process.shows('the tokens stay unchanged');
  expect((await fetchAlone(`${served.route}/api/query/app`)).status).toBe(401);
  expect((await fetchAlone(`${served.route}/api/query/app`, bearer(text))).status).toBe(200);
  await stop(served);
  const refused = await run(folder, ['serve', ...anyPorts]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`the token file ${path} can't be used`);
  expect(refused.stderr).toContain('remove it and make another token');
});

it('tokens can be revoked and cleared next to an unusable token file', async () => {
  const folder = workFolder();
  const { id } = await madeToken(folder);
  writeFileSync(join(folder, 'data/store/.tokens/0badf00d.json'), '{');
  const revoked = await run(folder, ['token', 'revoke', id]);
  expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringContaining(`revoked  ${id} at `)]);
  const unknown = await run(folder, ['token', 'revoke', '00000000']);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('there is no token 00000000')]);
  const cleared = await run(folder, ['token', 'clear', '--yes']);
  expect([cleared.code, cleared.stdout]).toEqual([0, expect.stringContaining('removed  2 tokens')]);
  expect((await run(folder, ['token', 'list'])).stdout).toContain('require none');
});

describe('server.tls', () => {
  const old = ownCertificate('old');
  const renewed = ownCertificate('renewed');

  function configured(): { folder: string; put: (certificate: { cert: string; key: string }) => void } {
    const folder = workFolder();
    mkdirSync(join(folder, 'tls'));
    const put = ({ cert, key }: { cert: string; key: string }): void => {
      writeFileSync(join(folder, 'tls/new.pem'), cert);
      renameSync(join(folder, 'tls/new.pem'), join(folder, 'tls/cert.pem'));
      writeFileSync(join(folder, 'tls/key.pem'), key);
    };
    put(old);
    writeFileSync(
      join(folder, 'config.yaml'),
      'server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n  listen: 127.0.0.1:0\n  console: 127.0.0.1:0\n',
    );
    return { folder, put };
  }

  function get(url: string, ca: string): Promise<number> {
    return new Promise((resolve, reject) => {
      request(url, { ca, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      })
        .on('error', reject)
        .end();
    });
  }

  /** The name in the certificate that a server presents. */
  function nameOf(url: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(
        { host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false },
        () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.end();
        },
      );
      socket.on('error', reject);
    });
  }

  it('is the certificate of both listeners, and is read again at SIGHUP', async () => {
    const { folder, put } = configured();
    const served = await serve(folder, []);
    expect(served.route).toMatch(/^https:/);
    expect(await get(`${served.route}/api/query/app`, old.cert)).toBe(200);
    expect(await get(`${served.console}/livez`, old.cert)).toBe(200);
    put(renewed);
    served.process.child.kill('SIGHUP');
    await served.process.shows('the certificate was reloaded');
    await served.process.shows('the agents were reloaded');
    for (const url of [served.route, served.console]) expect(await nameOf(url)).toBe('renewed');
    // If only one of the two files has been replaced, the server keeps its certificate.
    put({ cert: old.cert, key: renewed.key });
    served.process.child.kill('SIGHUP');
    await served.process.shows('does not belong to the certificate');
    expect(await nameOf(served.route)).toBe('renewed');
    // A pipe that nobody writes to stops neither this nor what comes after it.
    rmSync(join(folder, 'tls/cert.pem'));
    execFileSync('mkfifo', [join(folder, 'tls/cert.pem')]);
    served.process.child.kill('SIGHUP');
    await served.process.shows('it is a pipe, a file was expected: the certificate stays unchanged');
    expect(await nameOf(served.route)).toBe('renewed');
    // The two listeners share a certificate, so it is reported once.
    expect((await stop(served)).match(/the certificate was reloaded/g)).toHaveLength(1);
  });

  it('must exist and be valid when a server starts', async () => {
    const { folder, put } = configured();
    put({ cert: renewed.cert, key: old.key });
    const refused = await run(folder, ['serve']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('does not belong to the certificate');
    writeFileSync(join(folder, 'config.yaml'), 'server:\n  tls: { cert: tls/cert.pem }\n');
    expect((await run(folder, ['serve'])).stderr).toContain(
      'config.yaml:2:8: key is missing: the file with its private key, PEM',
    );
    const uws = configured();
    const words = ['serve', '--transport', 'uws'];
    expect((await run(uws.folder, words)).stderr).toContain(`"uws" can't be used`);
  });
});

it('server.query_bytes_max refuses a query that would read more, and states how much that is', async () => {
  const folder = workFolder();
  writeFileSync(join(folder, 'config.yaml'), 'server: { query_bytes_max: 1kb }\n');
  expect((await run(folder, ['load', 'app', 'data/samples/app.log'])).code).toBe(0);
  const served = await serve(folder);
  const refused = await fetchAlone(`${served.route}/api/query/app?limit=5000`);
  expect(refused.status).toBe(400);
  expect(((await refused.json()) as { detail: string }).detail).toMatch(
    /^this query may have to read [\d,]+ bytes, but the maximum for a query is 1,024: ask for a shorter time/,
  );
  const early = await fetchAlone(`${served.route}/api/query/app?time__until=2020-01-01`);
  expect(early.status).toBe(200);
  await stop(served);
});
